"""Running prose: paragraphs of files, sentences by their marks, passages by their words."""

import gzip
from pathlib import Path

import pytest

from foveate.data.table import naming_columns
from foveate.data.text.documents import Paragraph, Passage, Prose, sentences
from foveate.errors import UserError

PARAGRAPHS = [
    Paragraph("a, line 1", "a", "One two three. Four five. Six seven eight nine. Ten."),
    Paragraph("b, line 7", "b", "Eleven!"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. It pours.", ["It rains.", "It pours."]),
        (
            "Mr. Smith met John F. Kennedy. He paid No. 5 of $3.5.",
            ["Mr. Smith met John F. Kennedy.", "He paid No. 5 of $3.5."],
        ),
        ("“Why?” he asked. “Go!” So did I. We went.", ["“Why?” he asked.", "“Go!”", "So did I.", "We went."]),
        ("The U.S. Navy, viz. the ships. 12 of them…", ["The U.S. Navy, viz. the ships.", "12 of them…"]),
        ("He said no. Then (see below.) Élan and 1.5 more", ["He said no.", "Then (see below.)", "Élan and 1.5 more"]),
        ("no mark", ["no mark"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
    assert " ".join(sentences(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今日は雨だ。明日も？はい！？ 次。", ["今日は雨だ。", "明日も？", "はい！？", "次。"]),
        ("「行く？」と言った。「いや。」「なぜ？」終わり", ["「行く？」と言った。", "「いや。」", "「なぜ？」終わり"]),
        (
            '他说："走吧。"然后走了。他来了（真的。)然后。"好。"',
            ['他说："走吧。"然后走了。', '他来了（真的。)然后。"好。"'],
        ),
        ("。" * 50_000 + "！？", ["。" * 50_000 + "！？"]),
        ("यह एक है। वह दो है। अंत", ["यह एक है।", "वह दो है।", "अंत"]),
    ],
)
def test_sentences_without_spaces_between_them(text: str, expected: list[str]) -> None:
    """What is joined again has no space where there was none."""
    assert sentences(text) == expected
    assert Passage("", "", tuple(expected)).text == text.replace("！？ ", "！？")


def test_passages_hold_whole_sentences() -> None:
    """Five words at most: 3 + 2, then 4 + 1, and a paragraph is never joined to the next."""
    assert list(Prose.from_paragraphs(PARAGRAPHS).passages(5)) == [
        Passage("a, line 1", "a", ("One two three.", "Four five.")),
        Passage("a, line 1", "a", ("Six seven eight nine.", "Ten.")),
        Passage("b, line 7", "b", ("Eleven!",)),
    ]


def test_longer_sentences_are_cut() -> None:
    """Three words at most: the sentence of four gives three and one, and the next one joins the rest."""
    texts = [passage.text for passage in Prose.from_paragraphs(PARAGRAPHS).passages(3)]
    assert texts == ["One two three.", "Four five.", "Six seven eight", "nine. Ten.", "Eleven!"]


def test_whole_passages_cut_nothing() -> None:
    texts = [passage.text for passage in Prose.from_paragraphs(PARAGRAPHS).whole_passages(3)]
    assert texts == ["One two three.", "Four five.", "Six seven eight nine.", "Ten.", "Eleven!"]


def test_sentences_of_a_text() -> None:
    found = list(Prose.from_paragraphs(PARAGRAPHS).sentences())
    assert [passage.text for passage in found] == [
        "One two three.",
        "Four five.",
        "Six seven eight nine.",
        "Ten.",
        "Eleven!",
    ]
    assert [passage.condition for passage in found] == ["a", "a", "a", "a", "b"]


def test_files_and_folders(tmp_path: Path) -> None:
    """Empty lines part paragraphs, whose lines are joined; the name of a file is its condition."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "two.txt.gz").write_bytes(gzip.compress("\ufeffcafe\u0301  noir\n".encode()))
    (tmp_path / "book" / "notes.md").write_text("nothing of the text")
    (tmp_path / "one.txt").write_text("\n\nA first\nline.\n\n \nSecond.\n")
    prose = Prose.from_paths([tmp_path / "one.txt", tmp_path / "book"])
    assert (
        list(prose)
        == list(prose)
        == [
            Paragraph("one.txt, line 3", "one", "A first line."),
            Paragraph("one.txt, line 7", "one", "Second."),
            Paragraph("two.txt.gz, line 1", "two", "café noir"),
        ]
    )
    assert prose.conditions() == ["one", "two"]
    assert prose.report == "2 files: 3 paragraphs, 6 words"
    assert Prose.from_paths([tmp_path / "one.txt"]).report == "one.txt: 2 paragraphs, 4 words"


ROWS = {
    "a.jsonl": '{"id": 1, "text": "One.\\n\\nTwo\\nlines."}\n\n{"id": 2, "text": ""}\n{"id": 3, "text": "Three."}\n',
    "a.json": '[{"text": "One.\\n\\nTwo\\nlines."}, {"text": ""}, {"text": "Three."}]',
    "a.csv": 'n,text\n1,"One.\n\nTwo\nlines."\n2,""\n3,Three.\n',
    "a.tsv": "text\tn\nOne. Two lines.\t1\nThree.\t2\n",
}


@pytest.mark.parametrize("name", ROWS)
def test_the_texts_of_a_table(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(ROWS[name])
    found = list(Prose.from_paths(tmp_path / name))
    assert [one.text for one in found] == (
        ["One. Two lines.", "Three."] if "tsv" in name else ["One.", "Two lines.", "Three."]
    )
    assert all(one.place.startswith(f"{name}, ") and one.condition == "a" for one in found)


def test_other_names_of_the_column_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"said": "One."}')
    with naming_columns(["text=said"]):
        found = Prose.from_paths(tmp_path / "a.jsonl")
    assert [one.text for one in found] == ["One."]
    with pytest.raises(UserError, match="no text"):
        list(Prose.from_paths(tmp_path / "a.jsonl"))


def test_a_dot_does_not_end_the_name_of_a_condition(tmp_path: Path) -> None:
    for name in ("J. Austen.txt", "J. Verne.txt", "._J. Verne.txt"):  # the last is hidden
        (tmp_path / name).write_text("Text.\n")
    assert Prose.from_paths([tmp_path]).conditions() == ["J. Austen", "J. Verne"]


def test_one_form_of_unicode_and_single_spaces() -> None:
    prose = Prose.from_paragraphs([Paragraph("here", "", " cafe\u0301\u00a0\n noir ")])
    assert [paragraph.text for paragraph in prose] == ["café noir"]


def test_a_part_keeps_the_numbers_of_its_paragraphs() -> None:
    prose = Prose.from_paragraphs([Paragraph("here", "", text) for text in ("one", " ", "two", "three four")])
    assert [paragraph.text for paragraph in prose.part("odd", lambda number: number % 2 == 1)] == ["one", "two"]
    assert prose.check().kept == 3
    assert prose.part("even", lambda number: number % 2 == 0).report == "even: 1 paragraphs, 2 words"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file {path}"),
        (b"", "{path} is empty"),
        (b" \n\n", "text.txt: there is no text in it"),
        (b"caf\xe9", "{path} is not UTF-8: see byte 3 (line 1)"),
    ],
)
def test_text_that_cannot_be(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        Prose.from_paths([path]).check()
    assert str(caught.value).startswith(message.format(path=path))


def test_a_folder_without_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder .* holds no \.txt file"):
        Prose.from_paths([tmp_path])
