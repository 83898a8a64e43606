"""Parallel text: what is read, counted and refused."""

import gzip
import io
import sys
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from catalogue_maker import write_mo

from foveate.data.text.files import read_sentences
from foveate.data.text.parallel_corpus import PairCounts, ParallelText
from foveate.errors import UserError


def write(path: Path, content: str | bytes) -> Path:
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_aligned_files(tmp_path, ending):
    source = write(tmp_path / f"train.en{ending}", "A dog.\nTwo cats.\n")
    target = write(tmp_path / f"train.fr{ending}", "Un chien.\nDeux chats.\n")
    text = ParallelText.from_paths([source, target])
    assert text.name == f"train.en{ending}"
    assert list(text) == list(text) == [("A dog.", "Un chien."), ("Two cats.", "Deux chats.")]
    assert list(text.sources()) == ["A dog.", "Two cats."]
    assert list(text.targets()) == ["Un chien.", "Deux chats."]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_one_table(tmp_path, ending):
    text = ParallelText.from_paths([write(tmp_path / f"pairs.tsv{ending}", "A dog.\tUn chien.\nTwo.\tDeux.")])
    assert list(text) == [("A dog.", "Un chien."), ("Two.", "Deux.")]


def test_text_is_normalised_and_stripped(tmp_path):
    decomposed = unicodedata.normalize("NFD", "élève")
    path = write(tmp_path / "pairs.tsv", f"\ufeff  pupil \t {decomposed}\u00a0\r\n")
    assert len(decomposed) == 7
    assert list(ParallelText.from_tsv(path)) == [("pupil", "élève")]
    assert list(ParallelText.from_pairs([(" pupil", decomposed)])) == [("pupil", "élève")]


def test_only_line_feeds_end_a_line(tmp_path):
    source = write(tmp_path / "en", "one\u2028and a half\x0b\nthree\n")
    target = write(tmp_path / "fr", "un\x85et demi\ntrois\n")
    assert [pair.source for pair in ParallelText.from_files(source, target).pairs()] == ["one\u2028and a half", "three"]


def test_empty_sides_are_left_out_counted_and_reported():
    text = ParallelText.from_pairs([("a", "b"), ("", "c"), ("d", " "), ("", ""), ("e", "f")], "talk")
    assert list(text) == [("a", "b"), ("e", "f")]
    assert [pair.line for pair in text.pairs()] == [1, 5]
    assert text.check() == PairCounts(kept=2, empty=3, first_empty=2)
    assert text.report == "talk: 2 pairs, 3 left out for an empty side (first on line 2)"


def test_folders_of_catalogues(tmp_path):
    write_mo(tmp_path / "fr/LC_MESSAGES/fish.mo", {"_Open": "_Ouvrir", "OK": "OK", "Close": "Fermer"})
    text = ParallelText.from_paths([tmp_path], ("en", "fr"))
    assert list(text.pairs()) == [(1, "Close", "Fermer"), (2, "Open", "Ouvrir")]
    assert text.report == f"{tmp_path}, en-fr: 2 pairs; left out: 1 untranslated"
    assert list(ParallelText.from_paths([tmp_path, tmp_path / "fr"], ("fr", "en"))) == [
        ("Fermer", "Close"),
        ("Ouvrir", "Open"),
    ]
    with pytest.raises(UserError, match="is a folder: name the two languages of its catalogues"):
        ParallelText.from_paths([tmp_path])
    with pytest.raises(UserError, match=r"fish\.mo is a catalogue: give the folder that it lies in"):
        ParallelText.from_paths([tmp_path / "fr/LC_MESSAGES/fish.mo"])
    (tmp_path / "fr/LC_MESSAGES/fish.mo").write_bytes(b"fish")
    with pytest.raises(UserError, match="en-fr: no pair is left; left out: 1 damaged files"):
        ParallelText.from_paths([tmp_path], ("en", "fr")).check()


def test_what_is_compressed_needs_no_ending_that_says_so(tmp_path):
    (tmp_path / "pairs").write_bytes(gzip.compress(b"a\tb\n"))
    assert list(ParallelText.from_paths([tmp_path / "pairs"])) == [("a", "b")]


def test_held_out_pairs_share_no_sentence_with_the_rest():
    pairs = [(f"a{number}", f"B{number % 499}" if number % 2 else f"b{number % 499}") for number in range(997)]
    text = ParallelText.from_pairs([("", "empty"), *pairs], "talk")
    learn, held = text.held_out(20)
    assert (learn.name, held.name) == ("talk", "talk, held out")
    assert sorted([*learn, *held]) == sorted(pairs)
    assert 48 <= held.check().kept <= 50
    for side in ("sources", "targets"):
        assert not {text.casefold() for text in getattr(learn, side)()} & {
            text.casefold() for text in getattr(held, side)()
        }
    assert [list(part) for part in text.held_out(20)] == [list(learn), list(held)]
    with pytest.raises(UserError, match="talk: its pairs share sentences, so that none can be held out"):
        ParallelText.from_pairs([("a", "b")] * 41, "talk").held_out(20)


def test_lines_without_a_pair_after_the_last_one_are_left_to_the_rest():
    pairs = [(f"a{number}", f"b{number}") for number in range(23)]
    learn, held = ParallelText.from_pairs([*pairs, ("hello", ""), ("", "")], "talk").held_out(11)
    assert sorted([*learn, *held]) == sorted(pairs)
    assert (learn.check().empty, held.check().empty) == (2, 0)


def test_what_a_reader_leaves_out_is_reported():
    text = ParallelText("talk", lambda: [("a", "b"), ("", "c")], left_out=lambda: {"odd": 3, "repeated": 1234})
    report = "talk: 1 pairs, 1 left out for an empty side (first on line 2); left out: 1,234 repeated, 3 odd"
    assert text.report == report


def test_report_of_a_whole_text():
    assert ParallelText.from_pairs([("a", "b")] * 1237, "talk").report == "talk: 1,237 pairs"


def test_a_blank_line_of_a_table_is_an_empty_pair(tmp_path):
    text = ParallelText.from_tsv(write(tmp_path / "pairs.tsv", "a\tb\n\n \n\tc\n"))
    assert text.check() == PairCounts(kept=1, empty=3, first_empty=2)


def test_check_reads_once():
    passes = []
    text = ParallelText("talk", lambda: passes.append(1) or [("a", "b")])
    assert text.check() is text.check()
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("source", "target", "complaint"),
    [
        ("a\nb\nc\n", "a\nb\n", "{fr} has 2 lines but {en} has 3: line 3 of en is the first without a partner"),
        ("a\n", "a\nb\nc\nd\ne\n", "{en} has 1 lines but {fr} has 5: line 2 of fr is the first without a partner"),
        ("", "a\n", "{en} is empty"),
        ("a\n", "", "{fr} is empty"),
        ("\n\n", "a\n\n", "en: none of the 2 pairs has text on both sides"),
        ("a\nbc\xe9\n".encode("latin-1"), "a\nb\n", "{en} is not UTF-8: see byte 4 (line 2); save it as UTF-8"),
    ],
)
def test_files_that_do_not_fit(tmp_path, source, target, complaint):
    text = ParallelText.from_files(write(tmp_path / "en", source), write(tmp_path / "fr", target))
    with pytest.raises(UserError) as caught:
        text.check()
    assert str(caught.value).startswith(complaint.format(en=tmp_path / "en", fr=tmp_path / "fr"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("a\tb\nab\n", "line 2: 0 tabs, but a line must be source<TAB>target"), ("a\tb\tc\n", "line 1: 2 tabs")],
)
def test_a_table_with_another_number_of_tabs(tmp_path, content, complaint):
    with pytest.raises(UserError, match=complaint):
        ParallelText.from_tsv(write(tmp_path / "pairs.tsv", content)).check()


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*train\.en"):
        ParallelText.from_tsv(tmp_path / "train.en").check()
    with pytest.raises(UserError, match=r"is a folder, but a table is a file"):
        ParallelText.from_tsv(tmp_path).check()
    (tmp_path / "plain.gz").write_bytes(b"a\tb\n")
    with pytest.raises(UserError, match=r"cannot read .*plain\.gz: Not a gzipped file"):
        ParallelText.from_tsv(tmp_path / "plain.gz").check()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a\tb\n" * 97)[:-11])
    with pytest.raises(UserError, match=r"cannot read .*cut\.gz: Compressed file ended"):
        ParallelText.from_tsv(tmp_path / "cut.gz").check()


def test_three_files_are_no_parallel_text():
    with pytest.raises(UserError, match="3 files were given"):
        ParallelText.from_paths([Path("a"), Path("b"), Path("c")])


def test_files_stream(tmp_path):
    path = write(tmp_path / "long.tsv", "a sentence of some length\tune phrase assez longue\n" * 5_003)
    tracemalloc.start()
    assert ParallelText.from_tsv(path).check().kept == 5_003
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 5


def test_plain_sentences(tmp_path, monkeypatch):
    path = write(tmp_path / "in.txt", " A dog.\r\n\nTwo cats.")
    assert list(read_sentences(path)) == ["A dog.", "", "Two cats."]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One.\nTwo.\n")))
    assert list(read_sentences(sys.stdin.buffer)) == ["One.", "Two."]
    with pytest.raises(UserError, match="the input is not UTF-8: see byte 5"):
        list(read_sentences(io.BytesIO(b"One.\n\xff\n")))


def test_a_part_keeps_its_line_numbers_and_its_own_counts():
    text = ParallelText.from_pairs([("a", "b"), ("c", "d"), ("", "e"), ("f", "g"), ("h", "")], "talk")
    odd = text.part("odd", lambda line: line % 2 == 1)
    assert [pair.line for pair in odd.pairs()] == [1]
    assert odd.check() == PairCounts(kept=1, empty=2, first_empty=3)
    assert text.check() == PairCounts(kept=3, empty=2, first_empty=3)
