"""`foveate bench mechanisms`: what is trained and measured, with tiny sizes."""

from pathlib import Path

import pytest
import torch
from rich.console import Console

from foveate.errors import UserError
from foveate.experiments import compare, mechanisms
from foveate.experiments.mechanisms import ENCODERS, IGNORED, MECHANISMS, Mechanisms

TINY = {
    "steps": 1,
    "batch": 2,
    "length": 3,
    "pairs": 3,
    "vocabulary": 5,
    "context": 8,
    "width": 8,
    "side": 4,
    "long": 9,
    "repeats": 1,
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n\n".join(f"line {number} of a small text" for number in range(60)), encoding="utf-8")
    return file


def test_a_table_and_a_picture(tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "memory", lambda *_: 2**20)
    found = compare("mechanisms", Mechanisms(out=tmp_path, data=(text,), **TINY), Console(quiet=True))
    assert [row[0] for row in found.tables[0].rows] == [*MECHANISMS, *ENCODERS]
    assert all(row[-1] == "1" for row in found.tables[0].rows)
    assert "chance is 20.0" in found.notes[0]
    assert len(found.raw) == len(MECHANISMS) + len(ENCODERS)


def test_what_is_asked(text: Path) -> None:
    tasks = mechanisms._tasks(Mechanisms(data=(text,), **TINY))
    copied, labels = tasks["copying"][0](4)
    assert torch.equal(labels[:, 3:], copied[:, :3])
    assert (copied[:, 3] == 5).all()
    assert torch.equal(copied[:, 4:], copied[:, :2])
    sorted_, labels = tasks["sorting"][0](4)
    assert torch.equal(labels[:, 3:], sorted_[:, :3].sort(-1).values)
    tokens, labels = tasks["recall"][1](4)
    for row, own in zip(tokens.tolist(), labels.tolist(), strict=True):
        pairs = dict(zip(row[0:6:2], row[1:6:2], strict=True))
        assert len(pairs) == 3
        assert [pairs[key] for key in row[7::2]] == own[7::2]
        assert own[:7] == [IGNORED] * 7
    fewer = [tasks["recall"][0](4)[0].shape[1] for _ in range(30)]
    assert {*fewer} == {5, 9, 13}
    pictures, labels = tasks["pictures"][0](40)
    for picture, own in zip(pictures[:, :-1].unflatten(1, (4, 4)), labels, strict=True):
        (above,), (below,) = ({*half[half > 0].tolist()} for half in picture.split(2))
        assert (above == below) == own[-1]
        assert (picture > 0).sum() == 8
    assert {*labels[:, -1].tolist()} == {0, 1}
    assert (labels[:, :-1] == IGNORED).all()
    read, labels = tasks["prose"][0](4)
    assert torch.equal(read[:, 1:], labels[:, :-1])


def test_some_of_them_alone(tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "memory", lambda *_: 2**20)
    some = Mechanisms(out=tmp_path, data=(text,), **TINY, mechanisms=("contextual positions", "softmax"))
    found = compare("mechanisms", some, Console(quiet=True))
    assert [row[0] for row in found.tables[0].rows] == ["contextual positions", "softmax"]
    with pytest.raises(UserError, match="mechanisms"):
        compare("mechanisms", Mechanisms(**TINY, mechanisms=("none",)), Console(quiet=True))


def test_translations_are_a_task_of_those_who_have_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "memory", lambda *_: 2**20)
    files = tmp_path / "read.txt", tmp_path / "written.txt"
    for file, letter in zip(files, "ab", strict=True):
        file.write_text("\n".join(f"{letter}{number}" for number in range(60)), encoding="utf-8")
    options = {"out": tmp_path, "mechanisms": ("softmax", "LSTM", "convolution"), "tasks": ("translation",)}
    with pytest.raises(UserError, match="--translation SOURCE TARGET"):
        compare("mechanisms", Mechanisms(**TINY, **options), Console(quiet=True))
    asked = Mechanisms(translation=files, **TINY, **options)
    tokens, labels = mechanisms._tasks(asked)["translation"][0](20)
    for row, own in zip(tokens.tolist(), labels.tolist(), strict=True):
        size = row.index(256)
        read, written = bytes(row[:size]), bytes(row[size + 1 : 2 * size + 1])
        assert written == read.replace(b"a", b"b")
        assert own[size : 2 * size + 1] == [*written, 256]
        assert {*own[:size], *own[2 * size + 1 :]} <= {IGNORED}
    found = compare("mechanisms", asked, Console(quiet=True))
    assert found.tables[0].headings[1] == "translation, bits a byte"


def test_wrong_sizes(text: Path) -> None:
    with pytest.raises(UserError, match="vocabulary is 2, but must be at least 3"):
        compare("mechanisms", Mechanisms(data=(text,), **{**TINY, "vocabulary": 2}), Console(quiet=True))
    with pytest.raises(UserError, match="the number of bytes of the text to test on"):
        compare("mechanisms", Mechanisms(data=(text,), **{**TINY, "context": 900}), Console(quiet=True))
