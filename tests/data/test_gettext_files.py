"""Catalogues: what is read of them, and what is refused."""

import os
import struct

import pytest
from catalogue_maker import write_mo, write_po

from foveate.data.gettext.files import CatalogueMessage, read_catalogue
from foveate.errors import UserError

MESSAGES = {
    "Open": "Ouvrir",
    "menu\x04Open": "Ouverture",
    "%d file\0%d files": "%d fichier\0%d fichiers",
    "Close": "",
    "translator-credits": "Jean",
}
EXPECTED = {
    CatalogueMessage(("", "Open", False), "Open", "Ouvrir"),
    CatalogueMessage(("menu", "Open", False), "Open", "Ouverture"),
    CatalogueMessage(("", "%d file", False), "%d file", "%d fichier"),
    CatalogueMessage(("", "%d file", True), "%d files", "%d fichiers"),
}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1"])
def test_mo(tmp_path, order, charset):
    messages = {**MESSAGES, "Summer": "Été"}
    path = write_mo(tmp_path / "fish.mo", messages, charset, order)
    assert set(read_catalogue(path)) == {*EXPECTED, CatalogueMessage(("", "Summer", False), "Summer", "Été")}


@pytest.mark.parametrize(("charset", "message"), [("punycode", "which is none of texts"), ("klingon", "unknown enc")])
def test_mo_of_what_is_no_encoding(tmp_path, charset, message):
    path = write_mo(tmp_path / "fish.mo", MESSAGES, "ISO-8859-1", "<")
    path.write_bytes(path.read_bytes().replace(b"ISO-8859-1", charset.encode().ljust(10)))
    with pytest.raises(UserError, match=f"cannot read the catalogue .*{message}"):
        list(read_catalogue(path))


@pytest.mark.parametrize("name", ["fish.mo", "fish.po"])
def test_a_sparse_catalogue_is_not_read(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UserError, match=r"has 10,240 MiB; the limit is 128 MiB"):
        list(read_catalogue(tmp_path / name))


def test_po(tmp_path):
    text = """msgid "Open"
msgstr "Ouvrir"

msgctxt "menu"
msgid "Open"
msgstr ""
"Ouver"
"ture"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

msgid "Close"
msgstr ""

#, fuzzy
msgid "Clothes"
msgstr "Fermer"

#~ msgid "Old"
#~ msgstr "Vieux"
"""
    assert set(read_catalogue(write_po(tmp_path / "fr.po", text))) == EXPECTED


@pytest.mark.parametrize("forms", ["een", "een\0twee\0veel"])
def test_only_the_last_of_one_or_three_forms_is_known_to_be_the_plural(tmp_path, forms):
    path = write_mo(tmp_path / "fish.mo", {"one\0many": forms})
    assert list(read_catalogue(path)) == [CatalogueMessage(("", "one", True), "many", forms.split("\0")[-1])]


def test_the_plural_formula_is_never_run(tmp_path):
    """gettext of Python's library would compile it."""
    formula = f"nplurals=2; plural=__import__('os').mkdir('{tmp_path}/run') or {'(' * 10_000}n"
    assert set(read_catalogue(write_mo(tmp_path / "fish.mo", MESSAGES, plural=formula))) == EXPECTED
    assert not os.path.exists(tmp_path / "run")


def test_letters_of_another_charset_are_marked(tmp_path):
    path = write_mo(tmp_path / "fish.mo", {"Summer": "Été"}, "ISO-8859-1")
    path.write_bytes(path.read_bytes().replace(b"ISO-8859-1", b"UTF-8     "))
    (message,) = read_catalogue(path)
    assert message.translation == "\ufffdt\ufffd"


def damaged(whole: bytes) -> dict[str, bytes]:
    return {
        "": b"",
        "no catalogue": b"PK\x03\x04" + whole[4:],
        "short": whole[:21],
        "cut off in a table": whole[:40],
        "a number of messages": whole[:8] + struct.pack("<I", 2**31) + whole[12:],
        "messages over one another": whole[:28] + struct.pack("<6I", *[len(whole), 0] * 3) + whole[52:],
        "no charset": whole.replace(b"charset=UTF-8", b"charset=zip32"),
        "no text": whole.replace(b"charset=UTF-8", b"charset=rot13"),
    }


@pytest.mark.parametrize("harm", damaged(b"").keys())
def test_damaged(tmp_path, harm):
    path = write_mo(tmp_path / "fish.mo", MESSAGES)
    path.write_bytes(damaged(path.read_bytes())[harm])
    with pytest.raises(UserError, match=r"^cannot read the catalogue .*fish\.mo: .+$"):
        list(read_catalogue(path))


def test_damaged_po(tmp_path):
    path = write_po(tmp_path / "fr.po", 'msgid "Open"\nmessage "Ouvrir"\n')
    with pytest.raises(UserError, match=r"^cannot read the catalogue .*fr\.po: .*line 5"):
        list(read_catalogue(path))
    with pytest.raises(UserError, match="No such file"):
        list(read_catalogue(tmp_path / "de.mo"))
