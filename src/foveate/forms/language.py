"""Running prose that a language model reads from its beginning, and goes on with.

B batch    T tokens, the start included    D width of the vector of a condition
"""

import math
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import IGNORE, Hypothesis, count_labels
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.text.conversations import ids_of, question_ids
from foveate.data.text.documents import Passage, Prose
from foveate.data.text.prose_batches import PackedPassages, PackedTokens, PassageTokens, stream_passages
from foveate.data.text.token_shards import keep_rows, rows_key
from foveate.decoding import Decoding
from foveate.errors import UserError, at_least, quoted, unknown
from foveate.forms.answers import NoOptions
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Learned, MapRow
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.forms.prose import ReadProse, row_buckets, watch
from foveate.forms.scored import NextToken
from foveate.forms.written import ChatOptions, Written, WrittenAnswer, require_tokenizer
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.sight import Sight


class Beginning(NamedTuple):
    """The tokens of a text after the start token, and what kind of text it is."""

    tokens: np.ndarray
    condition: int = 0
    """The number of its condition; 0 for none."""
    text: str = ""
    """The text itself, where something is to be written after it."""
    texts: np.ndarray | None = None
    """Where several texts stand in the row, the number of that of each token."""


@dataclass
class ContinueOptions(ChatOptions):
    """How `foveate run` has a language model write."""

    condition: str | None = None
    """What kind of text to write, for a model that was trained on several: the decade of an address, such as 1860s, or
    the name of one of the files, without .txt and .gz; or any vector: a mixture such as 1860s:0.5,1990s:0.5, or its
    numbers, with commas between them."""


@dataclass(kw_only=True)
class Continued(WrittenAnswer):
    """A text with what a model wrote after it."""

    called: ClassVar[str] = "Answer"

    names: list[str] = field(default_factory=list, repr=False)
    """What to call the tokens of the text that it went on with."""


@dataclass
class ReadBeginning(ReadProse):
    """A text that is gone on with: `tokens` (B, T), beginning with the start token, `lengths` (B,) and, of a model that
    is told what kind of text it is, `condition` (B,)."""

    start_sign: ClassVar[str] = "<start>"
    reads_nothing: ClassVar[bool] = True
    goes_on: ClassVar[bool] = True

    max_length: int = 512
    """Passages with more tokens than this are left out (and counted)."""
    passage_words: int = 100
    """The text is cut into passages of whole sentences with at most this many words."""
    pack: bool = False
    """Put several passages or conversations into each row of at most max_length tokens, so that there is no padding;
    none is read in the light of another."""
    conditions: Learned[tuple[str, ...]] = ()
    """What kinds of text the model knows; it is told the number of one, from 1."""

    def check(self) -> None:
        super().check()
        at_least(1, "passage_words", self.passage_words)

    def fit(self, architecture: Any) -> "ReadBeginning":
        """A start token takes one of the learned positions."""
        most = getattr(architecture, "max_length", None)
        return self if most is None else replace(self, max_length=min(self.max_length, most - 1))

    def passages(self, prose: Prose) -> Iterator[Passage]:
        """What of the prose is learned as one."""
        return prose.passages(self.passage_words)

    def learn(self, train: Dataset[Passage], architecture: Any) -> "ReadBeginning":
        conditions: tuple[str, ...] = ()
        if getattr(architecture, "condition", None) is not None:
            conditions = tuple(sorted({passage.condition for passage in train}))
            if len(conditions) < 2:
                raise UserError(
                    f"this model learns to write several kinds of text, but all of {train.name} is of one, "
                    f"'{conditions[0]}': give several files, whose names tell the kinds, or take rnn-language"
                )
        found: Any = super().learn(train, architecture)
        found.conditions = conditions
        return found

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        return (self.words.special.start,), ()

    @property
    def numbers(self) -> dict[str, int] | None:
        """The number of each condition, from 1; None for a model without conditions."""
        return {name: number for number, name in enumerate(self.conditions, 1)} if self.conditions else None

    def sizes(self) -> dict[str, int]:
        return {**super().sizes(), "conditions": 1 + len(self.conditions)}

    @property
    def summary(self) -> str:
        kinds = f", {len(self.conditions)} conditions" if self.conditions else ""
        return f"{super().summary}{kinds}"

    def value(self, example: Passage) -> Passage:
        return example

    def open(self, given: str) -> Passage:
        """An empty text is gone on with from the start."""
        return Passage("the input", "", (given,))

    def receive(self, given: Any, name: str) -> Passage:
        return Passage("the input", "", (super().receive(given, name),))

    def group(self, example: Passage) -> Hashable:
        return example.messages or super().group(example)

    def size(self, value: Passage) -> int:
        return len(value.messages) or super().size(value.text)

    def fewest(self, value: Passage) -> int:
        """Of a conversation, the messages up to the first answer."""
        return 1 + next((at for at, (role, _) in enumerate(value.messages) if role == "assistant"), 0)

    def part(self, value: Passage, count: int) -> Passage:
        if messages := value.messages[:count]:
            answers = tuple(text for role, text in messages if role == "assistant")
            return value._replace(sentences=answers, messages=messages)
        return value._replace(sentences=(super().part(value.text, count),))

    def prepare(self, value: Passage) -> Beginning:
        if value.messages:
            return Beginning(question_ids(value.conversation, self.words), 0, value.text)
        (text,) = value.sentences if len(value.sentences) == 1 else (value.text,)
        tokens = super().prepare(text)
        return Beginning(tokens, (self.numbers or {}).get(value.condition, 0), text)

    def cost(self, prepared: Beginning) -> int:
        return len(prepared.tokens)

    def positions(self, prepared: Beginning) -> int:
        return len(prepared.tokens)

    def longer_than_training(self, prepared: Beginning) -> bool:
        return False

    def warnings(self, name: str, examples: Sequence[Passage]) -> list[str]:
        found = unseen_labels("conditions", [one.condition for one in examples], self.conditions) * bool(
            self.conditions
        )
        return [*(f"{name}: {note}; it is told none" for note in found), *super().warnings(name, examples)]

    def tensors(
        self, prepared: Sequence[Beginning], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        tokens, lengths = padded([one.tokens for one in prepared], self.words.special.pad)
        inputs = {"tokens": tokens, "lengths": lengths}
        if self.conditions:
            inputs["condition"] = torch.tensor([one.condition for one in prepared])
        if texts := [one.texts for one in prepared if one.texts is not None]:
            inputs["texts"] = padded(texts, -1)[0]
        return inputs, Changes()

    def buckets(self, train: Dataset[Passage], processor: Processor) -> Buckets:
        """Of a large text the tokens are in files of the cache, which a later training on the same text finds there."""
        most, numbers = self.max_length, self.numbers
        key = rows_key(train, self.words, most, numbers)
        rows = keep_rows(lambda: stream_passages(watch(train), self.words, most, numbers or {}), PassageTokens, key)
        kept = Dataset(train.name, rows, train.unit)
        if not self.pack:
            return row_buckets(kept, len(train), RowProcessor(processor, split_passage), most)
        together = PackedPassages(rows, most + 1)
        return row_buckets(kept, len(train), RowProcessor(processor, split_packed), most, together)

    def check_training(self, model: nn.Module, batch: int) -> None:
        super().check_training(model, batch)
        if self.pack and (self.conditions or not isinstance(model, CausalLanguageModel)):
            kind = "has conditions" if self.conditions else "is not a Transformer"
            raise UserError(f"this model {kind}, so that a row holds one passage: leave --pack out")

    def names(self, prepared: Beginning) -> list[str]:
        return super().names(prepared.tokens)


def split_passage(row: PassageTokens) -> PreparedExample:
    """What is read of a passage, all but its end, and what is written: all but its start."""
    return PreparedExample(Beginning(ids_of(row.tokens)[:-1], row.condition), row.tokens)


def split_packed(row: PackedTokens) -> PreparedExample:
    """The same of several passages in a row, each of which has its own start and end."""
    parts = [split_passage(one) for one in row.passages]
    read = np.concatenate([part.input.tokens for part in parts])
    texts = np.repeat(np.arange(len(parts)), [len(part.input.tokens) for part in parts])
    first, *others = [part.target for part in parts]
    return PreparedExample(Beginning(read, texts=texts), np.concatenate([first, *(one[1:] for one in others)]))


@dataclass
class Continuation(NextToken, Written):
    """How a text goes on: labels (B, T) are the tokens one place on, with the end token, then IGNORE."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    options: ClassVar[type[Any]] = ContinueOptions
    eval_options: ClassVar[type[Any]] = NoOptions
    metric: ClassVar[str] = "perplexity"
    higher_is_better: ClassVar[bool] = False

    decoding: Decoding = field(
        default_factory=lambda: Decoding(method="sample", length_factor=0.0, length_extra=100, top_p=0.9)
    )
    tokenizer: Learned[Any] = None
    conditions: Learned[tuple[str, ...]] = ()
    """What kinds of text the model can write."""

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Dataset[Passage], reads: Any, architecture: Any) -> "Continuation":
        found = copy(self)
        found.tokenizer, found.conditions = reads.tokenizer, getattr(reads, "conditions", ())
        return found

    def sizes(self) -> dict[str, int]:
        return {}

    @property
    def summary(self) -> str:
        return ""

    def measure_options(self) -> NoOptions:
        return NoOptions()

    def tensors(
        self, prepared: Sequence[np.ndarray], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels, _ = padded([np.where(tokens < 0, IGNORE, tokens)[1:] for tokens in prepared], IGNORE)
        return {}, {"labels": labels}, count_labels(labels)

    def decide_all(
        self,
        model: Any,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: Any,
        at_once: int = 1,
    ) -> Iterator[list[WrittenAnswer]]:
        """A longer beginning makes no longer end."""
        asked: deque[Beginning] = deque()
        condition = condition_of(
            self.conditions, getattr(model, "condition", None), getattr(options, "condition", None)
        )

        def told() -> Iterator[dict[str, Tensor]]:
            for prepared, inputs in batches:
                asked.extend(prepared)
                if self.conditions:
                    lengths = inputs["lengths"]
                    inputs["condition"] = condition.to(lengths.device).expand(len(lengths), *condition.shape)
                yield inputs

        for found in self.search(model, told(), options, at_once):
            yield [self.after(asked.popleft(), hypotheses) for hypotheses in found]

    def after(self, beginning: Beginning, found: Sequence[Hypothesis]) -> Continued:
        """The text as it was given, and after it what the tokens say that follow its own."""
        tokens, best = beginning.tokens[1:].tolist(), found[0]
        before, *wholes = self.tokenizer.decode([tokens, *([*tokens, *one.tokens] for one in found)])
        text, *others = [beginning.text.rstrip() + whole[len(before) :] for whole in wholes]
        return Continued(
            text=text,
            log_prob=best.log_prob,
            ended=best.ended,
            others=others,
            tokens=list(best.tokens),
            names=[self.start_sign, *self.tokenizer.pieces(tokens)],
        )

    def teach(self, answer: Any) -> dict[str, Tensor]:
        return {}

    def axis(self, answer: Any) -> None:
        return None

    def rows(self, sight: Sight, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """Where each token of the text looked that was gone on with, in the last layer, as the mean of its heads."""
        return site_rows(sight, answer.names)


def site_rows(sight: Sight, names: Sequence[str]) -> list[MapRow]:
    """Where the token of each name looked, in the last site, as the mean of its heads; none where there is no site."""
    if not sight.sites:
        return []
    site = sight.sites[-1]
    heads = sight[site].weights()[0].float().cpu()
    where = site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads"
    return [MapRow(name, row, where) for name, row in zip(names, heads.mean(0), strict=True)]


def condition_of(
    conditions: Sequence[str], table: nn.Embedding | None, condition: str | None
) -> Int[Tensor, ""] | Float[Tensor, "D"]:
    """The number of a condition, 0 for none; or a vector: a mixture of the conditions' vectors, or its own numbers.

    Raises UserError for what is neither.
    """
    if condition is None or condition in conditions:
        return torch.tensor(0 if condition is None else conditions.index(condition) + 1)
    if not conditions or table is None:
        raise UserError("this model was trained without conditions, as rnn-conditioned is; leave --condition out")
    vectors = table.weight.detach().cpu()
    parts = [part.strip() for part in condition.split(",")]
    if len(parts) > 1 and all(map(_is_number, parts)):
        if len(parts) != vectors.shape[1]:
            raise UserError(f"--condition has {len(parts)} numbers, but the vector of a condition {vectors.shape[1]}")
        return torch.tensor([float(part) for part in parts])
    mixture = torch.zeros(vectors.shape[1])
    for part in parts:
        name, _, weight = part.rpartition(":") if ":" in part else (part, "", "1")
        if name not in conditions:
            raise unknown("condition", name, conditions)
        if not _is_number(weight):
            raise UserError(f"the weight of the condition {name} is {quoted(weight)}, but must be a number")
        mixture += float(weight) * vectors[conditions.index(name) + 1]
    return mixture


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
