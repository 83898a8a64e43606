"""Training auto-encoders of sentences and of paragraphs, using their vectors, and measuring what comes back."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import tiny_prose
import torch
from rich.console import Console

import foveate
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Passage
from foveate.data.text.documents import sentences as sentences_of
from foveate.data.text.prose_batches import encode_sentences, paragraph_inputs
from foveate.data.tokens.tokenizers import train_bpe
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.rewriting import MeasureRewriting, RewriteOptions
from foveate.metrics.reconstruction import fidelity
from foveate.special_tokens import LEARNED
from foveate.tasks.autoencode import TASK
from foveate.tasks.autoencoder import Autoencoder
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.viewers import open_model

START, END = LEARNED.start, LEARNED.end

QUIET = Console(file=StringIO(), width=200)

GREEDY = Decoding(method="greedy")

SENTENCES = ["The whale comes home.", "A farmer sings a song."]


def prose_splits(recipe: Recipe) -> Splits:
    found = tiny_prose.splits()
    assert TASK.arrange is not None
    return Splits(*(TASK.arrange(part, recipe) for part in (found.train, found.dev, found.test)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return tuple(tiny_prose.write_files(tmp_path_factory.mktemp("files")))


@pytest.fixture(scope="module")
def sentences(files: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Autoencoder:
    """Of all sentences of the files: none are held out."""
    out = tmp_path_factory.mktemp("sentences") / "run"
    recipe = tiny_prose.autoencode(out, steps=120, data=files, validation=files)
    learn(recipe, console=QUIET)
    return foveate.load(recipe.out)


@pytest.fixture(scope="module")
def paragraphs(files: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Autoencoder:
    out = tmp_path_factory.mktemp("paragraphs") / "run"
    recipe = tiny_prose.autoencode(out, 120, "hierarchical-autoencoder-attentive", data=files)
    recipe.training.seed = 5
    return learn(recipe, console=QUIET)


def test_what_is_written_again_is_joined_as_it_was(paragraphs: Autoencoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chinese has no spaces between sentences."""
    for text in ("狗跑了。猫来了！", "The whale comes home. A farmer sings a song."):
        passage = Passage("here", "it", tuple(sentences_of(text)))
        assert len(passage.sentences) == 2
        monkeypatch.setattr(
            type(paragraphs.processor.writes.tokenizer), "decode", lambda *_, said=passage: list(said.sentences)
        )
        assert [paragraphs.run(text, decoding=GREEDY).text] == [passage.text] == [text]


def test_lower_case_is_whole() -> None:
    tokenizer = train_bpe([text.lower() for text in SENTENCES] * 9, 60, lowercase=True)
    found = fidelity(tokenizer.encode(SENTENCES), SENTENCES, tokenizer)
    assert (found.tokens, found.whole, round(found.bleu, 6)) == (100, 100, 100)


def test_sentences_are_written_again(sentences: Autoencoder) -> None:
    assert [sentences.run(text).line for text in SENTENCES] == SENTENCES


def test_sentence_by_sentence_as_a_whole_paragraph(paragraphs: Autoencoder) -> None:
    """What is written in turns, paragraphs of a batch ending early or late, is likeliest at each place also when the
    model is given all that it wrote at once."""
    model, tokenizer = paragraphs.model, paragraphs.processor.writes.tokenizer
    texts = [
        "The ship rests now.",
        "A sailor comes home. The ship rests now.",
        "The cow rests now. The cart sings a song. A farmer comes home.",
    ]
    read = encode_sentences([Passage("", "", tuple(sentences_of(text))) for text in texts], tokenizer)
    inputs = paragraph_inputs([[*one, []] for one in read], LEARNED)
    with torch.no_grad():
        decoding = Decoding(method="greedy", length_factor=1.0, length_extra=0)
        found = paragraphs.processor.writes.write_paragraphs(model, inputs, decoding)
        assert len({len(written) for written in found}) > 1
        for place, written in enumerate(found):
            again = paragraph_inputs([[*written, []]], LEARNED)
            vectors = model.reader(again["source"], again["source_lengths"])
            before = torch.cat([torch.zeros(1, 48), vectors[:-1]])[None]
            alone = {name: inputs[name][place : place + 1] for name in ("paragraphs", "paragraph_lengths")}
            state = model.start(inputs["source"], inputs["source_lengths"], **alone)
            planned, _ = model.planner(before, state)
            for vector, sentence in zip(planned[0], written, strict=False):
                logits = model.writer(vector[None], torch.tensor([[START, *sentence[:-1]]]))
                assert (logits[0, :, END:].argmax(-1) + END).tolist() == sentence


def test_vectors(sentences: Autoencoder, paragraphs: Autoencoder) -> None:
    """One for each text, in their order, whatever is in a batch with it."""
    for coder in (sentences, paragraphs):
        texts = [*SENTENCES, "The whale comes home. The whale comes home.", "The ship"]
        vectors = coder.text_vectors(texts)
        assert vectors.shape == (4, 48)
        for row, text in enumerate(texts):
            np.testing.assert_allclose(coder.text_vectors([text])[0], vectors[row], atol=1e-5)


def test_what_is_shown(sentences: Autoencoder) -> None:
    """The text again, the vector, or the nearest training sentences: the sentence itself first. Empty lines stay."""
    texts = [SENTENCES[0], " ", SENTENCES[1]]
    again, vectors, nearest = (
        [answer.line for answer in sentences.answer(texts, RewriteOptions(GREEDY, show=show, neighbours=2))]
        for show in ("text", "vector", "neighbours")
    )
    assert again == [SENTENCES[0], "", SENTENCES[1]]
    rows = [[float(number) for number in line.split("\t")] for line in (vectors[0], vectors[2])]
    np.testing.assert_allclose(rows, sentences.text_vectors(SENTENCES), rtol=1e-4, atol=1e-6)
    assert nearest[0].startswith(f"1.000 {SENTENCES[0]}\t")
    assert nearest[1] == ""
    assert nearest[2].count("\t") == 1


def test_measures_beside_baselines(sentences: Autoencoder, files: tuple[Path, ...]) -> None:
    """The nearest training sentence is the sentence itself, for there are few different ones."""
    found = sentences.evaluate(list(files), MeasureRewriting(GREEDY, examples=30), QUIET)
    names = ["rnn-autoencoder", "the most frequent token", "the nearest training text"]
    assert list(found.figures["ways"]) == [row[0] for row in found.rows] == names
    model, frequent, nearest = (found.figures["ways"][part] for part in names)
    assert nearest["tokens"] == nearest["whole"] == 100
    assert (frequent["whole"], frequent["tokens"] > 5) == (0, True)
    assert model["tokens"] > 90
    assert len(found.answers) <= 30


def test_paragraphs_are_measured_too(paragraphs: Autoencoder, files: tuple[Path, ...]) -> None:
    found = paragraphs.evaluate(list(files), MeasureRewriting(GREEDY, examples=30), QUIET)
    model, _, nearest = found.figures["ways"].values()
    assert 0 < model["tokens"] < nearest["tokens"]
    assert found.notes[1].endswith("have at most 30 tokens")


class Letters:
    """A token for each letter."""

    special = LEARNED

    def __len__(self) -> int:
        return 128

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text] for text in texts]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(map(chr, text)) for text in tokens]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        return list(map(chr, tokens))

    def save(self, path: Path) -> None:
        raise NotImplementedError


def test_fidelity_by_hand() -> None:
    """Of five tokens three are in place, of two texts one is whole."""
    found = fidelity(Letters().encode(["ab", "xbc"]), ["ab", "abd"], Letters())
    assert (found.tokens, found.whole) == (60, 50)


def test_what_is_too_long(sentences: Autoencoder, paragraphs: Autoencoder) -> None:
    """A long sentence, or a paragraph with one; a paragraph of many short ones is not."""
    long, many = "The cow " * 31, "The cow rests now. " * 9
    assert [one.long for one in sentences(["The cow", long, many])] == [False, True, True]
    assert [one.long for one in paragraphs(["The cow", long, many, ""])] == [False, True, False, False]


def test_a_model_that_is_not_hierarchical_can_read_passages(tmp_path: Path) -> None:
    recipe = tiny_prose.autoencode(tmp_path / "run", 2, passage_words=8, max_length=40)
    coder = learn(recipe, prose_splits(recipe), QUIET)
    assert max(len(passage.sentences) for passage in coder.processor.reads.passages(tiny_prose.prose(37, 3))) == 2
    with pytest.raises(UserError, match=r"trained on files: give --data FILE \.\.\. to measure it on"):
        coder.evaluate([], MeasureRewriting(), QUIET)
    found = coder.evaluate(tiny_prose.write_files(tmp_path), MeasureRewriting(GREEDY, examples=7), QUIET)
    assert "the nearest training text" in found.figures["ways"]


def test_a_picture_of_the_sentences_that_a_sentence_looks_at(paragraphs: Autoencoder, sentences: Autoencoder) -> None:
    text = "A sailor comes home. The ship rests now."
    figure = paragraphs.picture(paragraphs.run(text))
    names = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert names == ["A sailor comes", "The ship rests", "¶"]
    assert sentences.picture(sentences.run(text)) is None


def test_looking_from_disk(paragraphs: Autoencoder, sentences: Autoencoder, tmp_path: Path) -> None:
    text = "A sailor comes home. The ship rests now."
    paragraphs.save(tmp_path / "paragraphs")
    sentences.save(tmp_path / "sentences")
    seen = open_model(tmp_path / "paragraphs").look(text, 30)
    names = ["A sailor comes", "The ship rests", "¶"]
    assert seen.tokens == {"planner": (names, names)}
    assert seen.notes[1] == f"Answer: {paragraphs.run(text).line}"
    with pytest.raises(UserError, match=r"the text has 1[0-9] tokens, but the limit is 9"):
        open_model(tmp_path / "paragraphs").look(text, 9)
    with pytest.raises(UserError, match="does not attend: there is nothing to see"):
        open_model(tmp_path / "sentences").look(text, 30)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"max_length": 0}, "max_length is 0, but must be at least 1"),
        ({"model": "rnn-language"}, "rnn-language is a model for another task; the task autoencode takes "),
    ],
)
def test_what_cannot_be(tmp_path: Path, recipe: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        learn(TASK.recipe(out=tmp_path, **recipe), console=QUIET)
    assert str(caught.value).startswith(message)


def test_nothing_that_fits(sentences: Autoencoder, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("The cow " * 40)
    with pytest.raises(UserError, match="nothing has at most 30 tokens"):
        sentences.evaluate([tmp_path / "long.txt"], MeasureRewriting(), QUIET)
    assert isinstance(next(sentences.processor.reads.passages(tiny_prose.prose(3, 1))), Passage)
