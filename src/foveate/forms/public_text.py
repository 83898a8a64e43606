"""Texts as the models of Hugging Face folders read them, and what these models answer.

    PublicText     one text, or two of a model that learned from pairs
    PublicPair     always two texts
    PublicWords    words that spaces separate
    PublicTags     a tag for each word: that of its first piece
    PooledTokens   a vector, of a model that gives one for each token

B batch    T tokens of a text, with those around it    N tags    C width
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.text.labelled_pairs import LabelledPair
from foveate.data.text.pair_buckets import TokenPair
from foveate.data.text.scripts import split_words
from foveate.data.text.tagged import Tagged
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError, quoted
from foveate.forms.checks import unseen_labels
from foveate.forms.compared_text import ComparedTexts
from foveate.forms.form import Changes, Learned
from foveate.forms.label import label_metrics
from foveate.forms.tagged_words import Tags, TagsAnswer, likeliest_tags, tags_of
from foveate.forms.text import Text
from foveate.forms.text_pair import signs_of_pairs
from foveate.forms.text_vector import PairedText, TextVector, VectorAnswer
from foveate.viewer.protocol import Input

Span = tuple[int, int]
"""Where a token begins and ends in a text; (0, 0) for one that was added."""


class TextRow(NamedTuple):
    """The tokens of a text with those around it."""

    tokens: np.ndarray
    types: np.ndarray | None = None
    """Of each token 0 for the first text and 1 for the second, in models that tell them apart."""
    words: Sequence[str] = ()
    """The words to tag."""
    places: Sequence[int] = ()
    """Where each of them begins among the tokens."""


@dataclass
class PublicText(Text):
    """A text, or where the model reads pairs two with a tab between them: inputs `tokens` (B, T), `lengths` (B,) and,
    by the model's name for them, the types of the tokens (B, T)."""

    places_on_cpu: ClassVar[int | None] = 512
    """What a layer of a BERT-base computes of more tokens does not fit into the cache, which takes a third longer."""

    types: Learned[str | None] = None
    """What the model calls the types of its tokens; None if it has none."""
    pairs: Learned[bool] = False
    """Whether two texts can be read together."""
    prompt: Learned[str] = ""
    """What is read before each text."""
    small_letters: Learned[bool] = False
    """Whether texts are read in lower case before they are tokenized."""

    def value(self, example: Any) -> Any:
        if isinstance(example, LabelledPair):
            return f"{example.first}\t{example.second}"
        return example.text

    def warnings(self, name: str, examples: Sequence[Any]) -> list[str]:
        return []

    def part(self, value: Any, count: int) -> Any:
        """Of two texts, both."""
        sides = value.split("\t") if self.pairs else [value]
        return "\t".join(side[:count] for side in sides)

    def prepare(self, value: str) -> TextRow:
        """The tokens of one text or two. Raises UserError where there are none."""
        row = self._row(prompted(value, self.prompt, self.small_letters))
        if not len(row.tokens):
            raise UserError(f"{quoted(value)} has no tokens")
        return row

    def _row(self, value: str) -> TextRow:
        first, *second = map(str.strip, value.split("\t"))
        together = self.pairs and first and len(second) == 1 and second[0]
        tokens: Sequence[int]
        types: Sequence[int] | None
        if together and isinstance(self.tokenizer, PublicTokenizer):
            tokens, types = self.tokenizer.pair(first, together)
        elif together:
            before, between, behind = signs_of_pairs(self.words)
            left, right = self.words.encode([first, together])
            begin = [*before, *left, *between]
            tokens = [*begin, *right, *behind]
            types = [0] * len(begin) + [1] * (len(tokens) - len(begin))
        else:
            tokens, _ = self.spans(value)
            types = self.tokenizer.types(value) if isinstance(self.tokenizer, PublicTokenizer) and self.types else None
        known = types is not None and self.types is not None
        return TextRow(np.array(tokens, np.int64), np.array(types, np.int64) if known else None)

    def spans(self, text: str) -> tuple[list[int], list[Span]]:
        """The tokens of a text with those around it, and where each is in it."""
        found: tuple[list[int], list[Span]] = self.tokenizer.spans(text)
        return found

    def cost(self, prepared: TextRow) -> int:
        return len(prepared.tokens)

    def positions(self, prepared: TextRow) -> int:
        return len(prepared.tokens)

    def tensors(  # type: ignore[override]
        self, prepared: Sequence[TextRow], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        tokens, lengths = padded([row.tokens for row in prepared], 0)
        inputs = {"tokens": tokens, "lengths": lengths}
        if self.types:
            types = [np.zeros(len(row.tokens), np.int64) if row.types is None else row.types for row in prepared]
            inputs[self.types] = padded(types, 0)[0]
        return inputs, Changes()

    def longer_than_training(self, prepared: TextRow) -> bool:
        """How long the texts of the training were is not known."""
        return False

    def names(self, prepared: TextRow) -> list[str]:  # type: ignore[override]
        return self.words.pieces(prepared.tokens.tolist())


@dataclass
class PromptedText(PairedText):
    """A text of a model that gives vectors, behind the prompt of its folder."""

    prompt: Learned[str] = ""
    """What is read before each text."""
    small_letters: Learned[bool] = False
    """Whether texts are read in lower case before they are tokenized."""

    def prepare(self, value: ComparedTexts) -> np.ndarray | TokenPair:
        if isinstance(value, str):
            return super().prepare(prompted(value, self.prompt, self.small_letters))
        first, second = (prompted(text, self.prompt, self.small_letters) for text in value)
        return super().prepare((first, second))


def prompted(text: str, prompt: str, small_letters: bool) -> str:
    """A text as an embedder's folder has it read: behind a prompt, perhaps in lower case."""
    return (prompt + text).lower() if small_letters else prompt + text


@dataclass
class PublicPair(PublicText):
    """Two texts, `first<TAB>second`."""

    name: ClassVar[str] = "pair"

    def open(self, given: str) -> str | None:
        """None for an empty pair. Raises UserError for a text that is none."""
        if not given.strip():
            return None
        sides = [side.strip() for side in given.split("\t")]
        if len(sides) != 2:
            raise UserError(f"{quoted(given)} has {len(sides) - 1} tabs, where one tab must separate two texts")
        if not all(sides):
            raise UserError(f"{quoted(given)} has an empty side, where a tab must separate two texts")
        return given

    def receive(self, given: Input, name: str) -> str:
        """Both texts, given as `first<TAB>second` or as two lines."""
        text = super().receive(given, name)
        found = self.open("\t".join(line for line in text.splitlines() if line.strip()))
        return found or text


@dataclass
class PublicWords(PublicText):
    """Words (punctuation marks too) that spaces separate."""

    def open(self, given: str) -> Any:
        return tuple(split_words(given)) or None

    def receive(self, given: Input, name: str) -> Any:
        return tuple(split_words(super().receive(given, name)))

    def size(self, value: Any) -> int:
        """Whole words are cut off."""
        return len(value)

    def part(self, value: Any, count: int) -> Any:
        return value[:count]

    def value(self, example: Tagged) -> Any:
        return example.words

    def place(self, example: Tagged) -> str:
        return " ".join(example.words)

    def prepare(self, value: Any) -> TextRow:
        """The tokens of words. Raises UserError for a word without any."""
        text = " ".join(value)
        places = first_pieces(value, self.spans(text)[1])
        if None in places:
            raise UserError(f"the tokenizer reads nothing of the word {quoted(value[places.index(None)])}")
        known = [place for place in places if place is not None]
        return super().prepare(text)._replace(words=value, places=known)


def first_pieces(words: Sequence[str], spans: Sequence[Span]) -> list[int | None]:
    """The place of the first token of each word, where the words are separated by one space; None without any."""
    found, begin = list[int | None](), 0
    for word in words:
        end = begin + len(word)
        inside = (at for at, (start, stop) in enumerate(spans) if stop > begin and start < end)
        found.append(next(inside, None))
        begin = end + 1
    return found


@dataclass
class PublicTags(Tags):
    """A tag for each word: outputs with logits (B, T, N)."""

    saved_apart: ClassVar[dict[str, str]] = {}

    names: Learned[tuple[str, ...]] = ()
    """The tags, in the order of the model's classes."""

    def check_learned(self) -> None:
        """There is nothing that could be wrong."""

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.names)}

    @property
    def summary(self) -> str:
        return f"{len(self.names):,} tags"

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[TagsAnswer]:
        found = []
        for one, numbers, shares in zip(prepared, *likeliest_tags(model(**inputs).logits), strict=True):
            tags, own = ([row[place] for place in one.places] for row in (numbers, shares))
            answer = TagsAnswer(words=one.words, tags=[self.names[tag] for tag in tags], places=one.places, shares=own)
            found.append(answer)
        return found

    @property
    def known(self) -> list[str]:
        return [*self.names]

    def scored_labels(self, output: Output, answer: TagsAnswer) -> Tensor:
        labels = torch.full(output.logits.shape[:2], IGNORE)
        labels[0, list(answer.places)] = super().scored_labels(output, answer)[0]
        return labels

    def metrics(self, answers: Sequence[TagsAnswer], examples: Sequence[Tagged]) -> dict[str, float]:
        """Accuracy and macro F1."""
        right = [tag for sentence in examples for tag in sentence.tags]
        return label_metrics(tags_of(answers, examples), right)

    def baselines(
        self, reads: Any, examples: Sequence[Tagged], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """None: how frequent tags are in training is not known."""
        return {}

    def notes(self, examples: Sequence[Tagged]) -> list[str]:
        right = [tag for sentence in examples for tag in sentence.tags]
        return [f"{len(right):,} words, {len(self.names)} tags", *unseen_labels("tags", right, self.names)]


@dataclass
class PooledTokens(TextVector):
    """The mean of the vectors of a text's tokens, or that of the first: outputs with logits (B, T, C)."""

    pooling: Learned[str] = "mean"
    """Which of them: "mean" or "first"."""

    def check_measured(self) -> None:
        raise UserError("a model that embeds sentences is measured by a task: train one with --from")

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[VectorAnswer]:
        rows = zip(model(**inputs).logits.float().cpu(), prepared, strict=True)
        chosen = [one[0] if self.pooling == "first" else one[: len(row.tokens)].mean(0) for one, row in rows]
        vectors = torch.stack(chosen)
        return [
            VectorAnswer(vector=one) for one in (F.normalize(vectors, dim=-1) if self.normalized else vectors).tolist()
        ]
