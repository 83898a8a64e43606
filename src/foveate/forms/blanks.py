"""Texts with blanks, and the words that are filled in.

B batch    T tokens    M blanks of a text
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Output, Tokenizer
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage, Prose
from foveate.data.text.hidden_words import HIDING, OF_CHARACTERS, HiddenWords, open_words
from foveate.data.text.masking import MASK, encode_question
from foveate.data.text.strided_buckets import text_buckets
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.errors import UserError, at_least, one_of, quoted
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Form, Learned, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.processor import Processor
from foveate.forms.prose import ReadProse, watch
from foveate.forms.scored import ScoredForm
from foveate.forms.written import require_tokenizer
from foveate.sight import Sight

WAYS = {"Bert": "masked", "XLNet": "permuted", "Elmo": "both ways"}
"""How each family of models learns, by how the name of its config begins: a name of `HIDING`."""

Own = TypeVar("Own", bound=Form)


class MaskedText(NamedTuple):
    """The tokens of a text, and where its masks are among them."""

    tokens: list[int]
    places: list[int]
    text: str

    @property
    def asked(self) -> np.ndarray:
        """The places to predict; a text without masks is asked for its first word."""
        return np.array(self.places or [1])


@dataclass
class FillOptions:
    """How `foveate run` has hidden words filled in."""

    best: int = 5
    """How many words to name for each [MASK]."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "best", self.best)


@dataclass
class Blank:
    """The best words for one [MASK], the most probable first."""

    words: list[str]
    probabilities: list[float]

    @property
    def line(self) -> str:
        """Like "fried 0.31, roast 0.12"."""
        pairs = zip(self.words, self.probabilities, strict=True)
        return ", ".join(f"{word} {probability:.2f}" for word, probability in pairs)


@dataclass(kw_only=True)
class FilledText(Answer):
    """A text, and the best words for each [MASK] in it."""

    text: str = ""
    blanks: list[Blank] = field(default_factory=list)
    places: list[int] = field(default_factory=list, repr=False)
    """Where the masks are among the tokens."""

    @property
    def filled(self) -> str:
        """The text with the best word in each blank."""
        before, *after = self.text.split(MASK)
        return before + "".join(f"{blank.words[0]}{part}" for blank, part in zip(self.blanks, after, strict=True))

    @property
    def cells(self) -> list[str]:
        """The text with the best words, then the best words of each [MASK]."""
        return [self.filled, *(blank.line for blank in self.blanks)] if self.blanks else []

    @property
    def notes(self) -> list[str]:
        return [f"[MASK]: {blank.line}" for blank in self.blanks]

    def json_values(self) -> dict[str, Any]:
        """The text and the best words of each [MASK]."""
        return {"text": self.text, "filled": self.filled, "blanks": [vars(blank) for blank in self.blanks]}


class OpenWords(Form):
    """A form with a `tokenizer` that knows any word where `hiding` is that of a model of characters."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")
        one_of("hiding", getattr(self, "hiding", ""), HIDING)

    @classmethod
    def load(cls: type[Own], values: Any, folder: Path, where: str) -> Own:
        """With the words of the tokenizer's file."""
        found: Any = super().load(values, folder, where)
        found.tokenizer = open_words(found.tokenizer, found.hiding)
        loaded: Own = found
        return loaded

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_text_tokenizer(path)


@dataclass
class ReadBlanks(OpenWords, ReadProse):
    """A text with [MASK] where words are to be filled in; what a model reads depends on how it learns."""

    special: ClassVar[tuple[str, ...]] = (MASK,)

    vocabulary: int = 8000
    """How many of them to learn, at most."""
    max_length: int = 128
    """Tokens of a row, its start included; texts are packed, so that rows have no padding."""
    hidden: float = 0.15
    """Share of the words that are hidden."""
    hiding: Learned[str] = "masked"
    """How words are hidden: a name of `HIDING`."""

    def check(self) -> None:
        super().check()
        at_least(3, "max_length", self.max_length)
        if not 0 < self.hidden < 1:
            raise UserError(f"hidden is {self.hidden}, but must be above 0 and below 1")

    def check_training(self, model: nn.Module, batch: int) -> None:
        """The first batch tells whether the model has this many positions."""

    def fit(self, architecture: Any) -> "ReadBlanks":
        kind = type(architecture).__name__.removesuffix("Config").lower()
        found = copy(self)
        found.hiding = next((way for name, way in WAYS.items() if kind == name.lower()), self.hiding)
        if getattr(architecture, "positions", None) == "learned":
            found.max_length = min(self.max_length, architecture.max_length)
        return found

    def passages(self, prose: Prose) -> Iterator[Passage]:
        """Passages of whole sentences, each of which most often fits into one row."""
        return prose.passages(max(1, self.max_length // 2))

    @property
    def units(self) -> str:
        return "words" if self.hiding in OF_CHARACTERS else self.tokens

    @property
    def summary(self) -> str:
        return f"{len(self.words):,} vocabulary"

    def learn(self, train: Dataset[Passage], architecture: Any) -> "ReadBlanks":
        found: Any = super().learn(train, architecture)
        found.tokenizer = open_words(found.tokenizer, found.hiding)
        return found

    @property
    def rows_of_tokens(self) -> HiddenWords:
        """What makes batches of rows of tokens."""
        return HiddenWords(self.words, self.hiding, self.hidden)

    def buckets(self, train: Dataset[Passage], processor: Processor) -> Buckets:
        batches = self.rows_of_tokens
        return text_buckets(batches.keep(train, watch(train), self.max_length), batches)

    def open(self, given: str) -> str:
        if MASK not in given:
            raise UserError(f"{quoted(given)} has no {MASK}: write it where a word is to be filled in")
        return given

    def fewest(self, value: str) -> int:
        """All blanks stay."""
        return value.rindex(MASK) + len(MASK) if MASK in value else 1

    def prepare(self, value: str) -> MaskedText:
        return MaskedText(*encode_question(value, self.words), value)

    def cost(self, prepared: MaskedText) -> int:
        return len(prepared.tokens)

    def positions(self, prepared: MaskedText) -> int:
        return len(prepared.tokens)

    def longer_than_training(self, prepared: MaskedText) -> bool:
        return len(prepared.tokens) > self.max_length

    def tensors(
        self, prepared: Sequence[MaskedText], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        tokens = [np.array(one.tokens) for one in prepared]
        return self.rows_of_tokens.way.ask(tokens, [one.asked for one in prepared]), Changes()

    def names(self, prepared: MaskedText) -> list[str]:
        return self.words.pieces(prepared.tokens)

    def axis(self, value: Any, prepared: MaskedText, grid: GridFinder) -> Naming:
        """Of a side with a place for each token, and of one with a place for each blank."""
        asked = [prepared.tokens[place] for place in prepared.asked]
        found = {len(row): self.words.pieces(row) for row in (asked, prepared.tokens)}
        return found.get


@dataclass
class FilledBlanks(ScoredForm, OpenWords, OutputForm):
    """The words at the blanks."""

    options: ClassVar[type[Any]] = FillOptions
    metric: ClassVar[str] = "perplexity"
    higher_is_better: ClassVar[bool] = False

    tokenizer: Learned[Any] = None
    hiding: Learned[str] = "masked"
    """How words are hidden in training."""

    def learn(self, train: Dataset[Passage], reads: Any, architecture: Any) -> "FilledBlanks":
        return FilledBlanks(reads.tokenizer, reads.hiding)

    @property
    def summary(self) -> str:
        return ""

    def nothing(self) -> FilledText:
        return FilledText()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[MaskedText], options: Any
    ) -> list[FilledText]:
        """Several words of a text are predicted at once, each without the others."""
        best, found = getattr(options, "best", 1), []
        for question, logits in zip(prepared, model(**inputs).logits, strict=True):
            shares = logits[: len(question.places)].float().softmax(-1)
            blanks = self.best_words(shares, best)
            found.append(FilledText(text=question.text, blanks=blanks, places=list(question.places)))
        return found

    def best_words(self, shares: Tensor, best: int) -> list[Blank]:
        """The best words for each row of probabilities."""
        words: Tokenizer = self.tokenizer
        first = words.special.first_word
        shares[:, :first] = 0  # these are no words
        tops = [row.topk(min(best, len(row) - first)) for row in shares]
        return [
            Blank([words.pieces([token])[0] for token in top.indices.tolist()], top.values.tolist()) for top in tops
        ]

    @property
    def first_word(self) -> int:
        """The first token that may fill a blank."""
        return int(self.tokenizer.special.first_word)

    def scored_labels(self, output: Output, answer: Any) -> Tensor:
        """The best word of each blank, or those that were named."""
        if isinstance(answer, list):
            return torch.tensor([answer])
        if not answer.places:
            raise UserError(f"the text has no {MASK}: there is no word whose probability could change")
        return output.logits[:, : len(answer.places), self.first_word :].argmax(-1).cpu() + self.first_word

    def named(self, text: str, answer: FilledText) -> list[int]:
        """A word for each blank, with spaces between them."""
        words = text.split()
        if len(words) != len(answer.places):
            raise UserError(f"--target has {len(words)} words, but the text has {len(answer.places)} blanks")
        return [self.token_of(word) for word in words]

    def token_of(self, word: str) -> int:
        """The token of a word. Raises UserError for one that has none of its own."""
        for written in (word, f" {word}"):
            (tokens,) = self.tokenizer.encode([written])
            if len(tokens) == 1:
                return int(tokens[0])
        raise UserError(f"{quoted(word)} is not one of the words that the model knows")

    def scored_answer(self, labels: Tensor, answer: Any) -> str:
        return " ".join(self.tokenizer.pieces(labels[0].tolist()))

    def rows(self, sight: Sight, model: nn.Module, answer: FilledText, before: int) -> list[MapRow]:
        """Where the model looked from each [MASK], in its last layer: the mean of the heads."""
        if not sight.sites:
            return []
        weights = sight[sight.sites[-1]].weights()[0].float().mean(0).cpu()
        weights = weights if len(weights) == len(answer.blanks) else weights[answer.places]
        labels = [f"{blank.words[0]} {blank.probabilities[0]:.2f}" for blank in answer.blanks]
        where = f"{sight.sites[-1]}, mean of the heads"
        return [MapRow(label, row, where) for label, row in zip(labels, weights, strict=True)]
