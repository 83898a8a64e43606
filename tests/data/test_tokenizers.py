"""Tokenizers: nothing is lost, the reserved ids hold, the same text gives the same vocabulary."""

import json
import random

import pytest

from foveate.data.tokens import word_cache
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.tokenizers import (
    TRAINERS,
    join_pieces,
    load_tokenizer,
    train_bpe,
    train_characters,
    train_pieces,
    train_words,
)
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

PAD, START, END, UNKNOWN = LEARNED.ids.values()

TEXT = [
    "A man in a black hat is looking at the sea.",
    "Un homme au chapeau noir regarde la mer, l'air pensif.",
    "Is it 1937 (or 2016)? – “No”, said the woman's dog…",
    "Aujourd'hui, l'eau est froide : 3,5 °C !",
    "Qu'est-ce que c'est ? Une chauve-souris & un café.",
    "Müde Füße laufen; größere Straßen bleiben leer.",
] * 2


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe(TEXT, 211)


def test_decoding_gives_back_the_text(tokenizer):
    unseen = ["la mer noire, l'homme : 1973 !", "dog… (sea)", "“air”-chapeau"]
    assert tokenizer.decode(tokenizer.encode(TEXT + unseen)) == TEXT + unseen


def test_reserved_ids(tokenizer):
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)
    assert tokenizer.pieces([PAD, START, END, UNKNOWN]) == ["<pad>", "<start>", "<end>", "⁇"]
    assert all(token > UNKNOWN for sentence in tokenizer.encode(TEXT) for token in sentence)


def test_the_names_of_reserved_ids_in_a_text_are_text(tokenizer):
    (tokens,) = tokenizer.encode(["<start>a</start> <pad> <end> ⁇"])
    assert not {PAD, START, END} & set(tokens)


def test_decoding_drops_padding_start_and_end(tokenizer):
    (tokens,) = tokenizer.encode(["la mer"])
    assert tokenizer.decode([[START, *tokens, END, PAD, PAD]]) == ["la mer"]


def test_a_run_of_unknown_characters_is_one_unknown(tokenizer):
    (tokens,) = tokenizer.encode(["la 海上 mer"])
    assert tokens.count(UNKNOWN) == 1
    assert tokenizer.decode([tokens]) == ["la ⁇ mer"]


def test_spaces_and_composition_are_normalised(tokenizer):
    texts = [" Un  café\u00a0!\n", "Un▁cafe\u0301 !"]
    assert tokenizer.decode(tokenizer.encode(texts)) == ["Un café !"] * 2


def test_nothing_gives_nothing(tokenizer):
    assert tokenizer.encode([]) == []
    assert tokenizer.encode(["", " "]) == [[], []]
    assert tokenizer.decode([[]]) == [""]


def test_pieces_mark_what_continues_a_word():
    tokenizer = train_bpe(["la mer l'air 3 7 (3) s"] * 2, 61)
    (tokens,) = tokenizer.encode(["la mers, l'air (37)"])
    assert tokenizer.pieces(tokens) == ["la", "mer", "·s", "⁇", "l'", "·air", "(", "3", "·7", ")"]


def test_no_piece_reaches_across_words_digits_or_an_apostrophe(tokenizer):
    (tokens,) = tokenizer.encode(["l'eau 2016 mer."])
    pieces = tokenizer.pieces(tokens)
    assert pieces[0] == "l'"
    assert pieces[-1] == "."
    assert [piece for piece in pieces if piece.strip("·").isdigit()] == ["2", "·0", "·1", "·6"]


def test_the_same_text_gives_the_same_vocabulary(tmp_path):
    saved = []
    for name in ("first.json", "second.json"):
        train_bpe(iter(TEXT), 211).save(tmp_path / name)
        saved.append((tmp_path / name).read_bytes())
    assert saved[0] == saved[1]


def test_size_is_a_limit():
    assert len(train_bpe(TEXT, 211)) == 211
    assert len(train_bpe(["ab ab"], 8000)) < 13
    with pytest.raises(UserError, match="a vocabulary of 7 entries is too small: the characters alone take"):
        train_bpe(TEXT, 7)


def test_lowercase():
    tokenizer = train_bpe(TEXT, 211, lowercase=True)
    assert tokenizer.decode(tokenizer.encode(["Un HOMME À la mer"])) == ["un homme à la mer".replace("à", "⁇")]
    assert tokenizer.encode(["Mer"]) == tokenizer.encode(["mer"])


def test_no_text_is_an_error():
    with pytest.raises(UserError, match="no text"):
        train_bpe(["", " "], 211)


def test_an_error_of_the_text_comes_through():
    def texts():
        yield "a"
        raise UserError("train.en is not UTF-8")

    with pytest.raises(UserError, match=r"train\.en is not UTF-8"):
        train_bpe(texts(), 211)


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = load_tokenizer(path)
    text = [*TEXT, "<start> 海"]
    assert len(loaded) == len(tokenizer) == 211
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(TEXT)) == TEXT


def test_files_that_are_no_tokenizer(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(UserError, match=r"there is no tokenizer .*tokenizer\.json"):
        load_tokenizer(path)
    tokenizer.save(path)
    path.write_bytes(path.read_bytes()[:997])
    with pytest.raises(UserError, match=r"tokenizer\.json is damaged: "):
        load_tokenizer(path)
    tokenizer.save(path)
    path.write_text(path.read_text().replace("<start>", "<s>"))
    with pytest.raises(UserError, match="its first entries are not <pad> <start> <end> ⁇"):
        load_tokenizer(path)
    tokenizer.save(path)
    whole = json.loads(path.read_text())
    whole["model"]["vocab"] |= {max(whole["model"]["vocab"]): 10**6}
    path.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=r"is damaged: its entries are not numbered 0, 1, 2, \.\.\.$"):
        load_tokenizer(path)


def test_words_are_whole_or_unknown():
    """What occurs once is not learned; punctuation is a word of its own; known words come back as they were."""
    words = train_words(["The dog, the cat.", "the dog bit, the end."], 50, lowercase=True)
    assert len(words) == 4 + 4
    (tokens,) = words.encode(["The dog, the zebra."])
    assert words.pieces(tokens) == ["the", "dog", ",", "the", "⁇", "."]
    assert words.decode(words.encode(["THE  dog."])) == ["the dog."]


def test_the_most_frequent_words_are_kept():
    words = train_words(["one two three"] * 2 + ["one two"] * 2 + ["one"] * 2, 6)
    assert [words.pieces(tokens) for tokens in words.encode(["one two three"])] == [["one", "two", "⁇"]]


def test_characters():
    """Spaces are characters too; a picture shows which letters go on a word."""
    characters = train_characters(TEXT, 100)
    assert characters.decode(characters.encode(TEXT)) == TEXT
    (tokens,) = characters.encode(["la 海"])
    assert characters.pieces(tokens) == ["▁", "l", "·a", "▁", "⁇"]
    assert len(train_characters(TEXT, 20)) == 20


@pytest.mark.parametrize("train", TRAINERS.values(), ids=TRAINERS)
def test_every_kind_of_vocabulary_is_learned_and_kept(tmp_path, train):
    first, second = train(TEXT, 150, True), train(iter(TEXT), 150, True)
    (tokens,) = first.encode(["Un homme REGARDE la mer."])
    assert tokens == second.encode(["un homme regarde la mer."])[0]
    assert set(tokens) & {PAD, START, END} == set()
    first.save(tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").encode(TEXT) == second.encode(TEXT)
    with pytest.raises(UserError, match="there is no text to learn a vocabulary from"):
        train([""], 100)
    with pytest.raises(UserError, match="a vocabulary of 4 entries is too small"):
        train(TEXT, 4)


def test_words_that_occur_once_are_no_vocabulary():
    with pytest.raises(UserError, match="no text to learn a vocabulary from, or nothing in it occurs twice"):
        train_words(["each word once"], 100)


def test_an_unknown_word_keeps_its_space():
    text = ["the boat sails to the island .", "a bird sees the boat .", "the island has a bird and a boat ."] * 2
    tokenizer = train_words(text, 100)
    assert tokenizer.decode(tokenizer.encode(["the zebra sees the boat .", "zebra sees Quito"])) == [
        "the ⁇ sees the boat .",
        "⁇ sees ⁇",
    ]


def test_pieces_of_a_text_that_was_cut_before_are_kept_and_written_joined():
    text = ["am Strand ein Wasser@@ ball .", "ein Wasser@@ fall ,@@ .", "Ball@@ spiel am Wasser"] * 2
    tokenizer = train_pieces(text, 100)
    (tokens,) = tokenizer.encode(text[:1])
    assert tokenizer.pieces(tokens) == ["am", "Strand", "ein", "Wasser@@", "ball", "."]
    assert tokenizer.decode(tokenizer.encode([*text[:3], "am Quito@@ fall Ball@@"])) == [
        "am Strand ein Wasserball .",
        "ein Wasserfall ,.",
        "Ballspiel am Wasser",
        "am ⁇ fall Ball",
    ]
    assert join_pieces("ein Wasser@@ ball a@@b @ Ball@@") == "ein Wasserball a@@b @ Ball"


@pytest.mark.parametrize("cut", [train_bpe, train_words, train_characters, train_pieces])
def test_lower_case_is_that_of_python(cut):
    """A sigma at the end of a word is ς, also before an apostrophe; one that is written σ stays."""
    texts = ["ΟΔΟΣ ΣΟΦΟΣ, Σ ΑΣ'Α ΑΣ' σοφοσ ΠΑΣ", "İstanbul Straße"] * 2
    tokenizer = cut(texts, 97, True)
    assert tokenizer.decode(tokenizer.encode(texts)) == [text.lower() for text in texts]


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "vocab.txt"])
def test_a_sparse_vocabulary_is_not_read(name: str, tmp_path):
    for other in ("vocab.json", "merges.txt"):
        (tmp_path / other).write_text("{}" if other == "vocab.json" else "")
    with (tmp_path / name).open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UserError, match=rf"{name} has 10,240 MiB; the limit is 128 MiB"):
        (BertTokenizer if name == "vocab.txt" else PublicTokenizer).load(tmp_path)


@pytest.mark.parametrize("kind", ["subwords", "words", "characters"])
def test_words_that_are_remembered_have_the_tokens_of_the_library(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MOST_WORDS", 40)
    draw = random.Random(0)
    letters = "ab Σσ\u0301\u00a0\t▁'’.,!1２é☃日 \x1c\x85-<>ΑΣ"
    texts = ["".join(draw.choice(letters) for _ in range(draw.randrange(14))) for _ in range(500)]
    tokenizer = TRAINERS[kind]([*texts, "a b 1 . a b 1 ."], 60, kind == "words")
    expected = [one.ids for one in tokenizer._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    assert [tokens for start in range(0, 500, 50) for tokens in tokenizer.encode(texts[start : start + 50])] == expected
