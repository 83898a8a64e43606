"""XML files: what is read, and what is refused before it takes memory."""

import os
from pathlib import Path

import pytest

from foveate.errors import UserError
from foveate.xml_files import read_xml

LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))


def test_elements_and_attributes(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<?xml version="1.0" encoding="latin-1"?><map><node x="é">b</node></map>', "latin-1"
    )
    (node,) = read_xml(tmp_path / "a.xml", "map")
    assert (node.tag, node.attrib, node.text) == ("node", {"x": "é"}, "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<map>", "a.xml is not a map: no element found: line 1, column 5"),
        ("<a>" * 140_000, "a.xml is not a map: its elements are nested more than 100 deep"),
        (f'<!DOCTYPE x [<!ENTITY a0 "lol">{LAUGHS}]><map>&a9;</map>', "a.xml is not a map: it has a document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><map/>', "a.xml is not a map: it has a document type"),
        ('<?xml version="1.0" encoding="klingon"?><map/>', "a.xml is not a map: unknown encoding"),
        (
            '<?xml version="1.0" encoding="shift_jis"?><map/>',
            "not a map: multi-byte encodings are not supported",
        ),
        (None, "there is no map"),
    ],
)
def test_what_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.xml").write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read_xml(tmp_path / "a.xml", "map")
    assert "\n" not in str(caught.value)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(UserError, match="could not read"):
            read_xml(place, "map")
