"""A trained language model: it goes on from a beginning, writes a kind of text, and is measured by perplexity."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import END, UNKNOWN, Batch, Generator, Hypothesis, Picture, Tokenizer
from foveate.data import Passage, PassageBatches, text_batches
from foveate.decoding import Decoding, decode
from foveate.errors import UserError, unknown
from foveate.tasks.conditions import CONDITIONS, load_conditions, save_conditions
from foveate.tasks.ngrams import Ngrams
from foveate.tasks.perplexity import Perplexity, Scored, perplexity, scores, word_count
from foveate.tasks.prose_text import LanguageText
from foveate.tasks.trained import (
    START_SIGN,
    Evaluation,
    NoOptions,
    Reading,
    Writing,
    check_unchanged,
    opened,
    said,
    unlearned,
)

TOKENIZER = "tokenizer.json"

ORDERS = {1: "unigram", 2: "bigram", 3: "trigram"}
"""The n-grams that a model is compared with."""


@dataclass
class Composing(Writing):
    """How `foveate run` has a language model write."""

    condition: str | None = None
    """What kind of text to write, for a model that was trained on several: the decade of an address, such as 1860s, or
    the name of one of the files, without .txt and .gz."""


@dataclass
class Continuation:
    """A beginning and what the model wrote after it."""

    prompt: str
    text: str
    """Both together."""
    log_prob: float
    """The log-probability of what was written, in nats."""
    ended: bool = True
    """False if the length limit was reached before the model ended the passage."""
    others: list[str] = field(default_factory=list)
    """More such texts, if more than one was asked for."""

    @property
    def line(self) -> str:
        """All texts, parted by tabs."""
        return "\t".join([self.text, *self.others])


@dataclass
class Author:
    """A language model with its tokenizer and the names of its conditions."""

    model: nn.Module
    tokenizer: Tokenizer
    conditions: list[str]
    """The kinds of text that it was trained to tell apart; empty for a model without conditions."""
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    decoding: Decoding = field(default_factory=Decoding)
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Author":
        """The language model of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        config: Any = found.model.config
        return cls(
            found.model,
            found.tokenizer(TOKENIZER, "vocabulary"),
            load_conditions(found.files.path(CONDITIONS), config.conditions - 1),
            found.files.description,
            cls.run_options(found.description.recipe, found.where).decoding,
        )

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Composing:
        return Composing(from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        files: dict[str, Callable[[Path], object]] = {
            TOKENIZER: self.tokenizer.save,
            CONDITIONS: partial(save_conditions, self.conditions),
        }
        bundle.save(folder, self.description, self.model.state_dict(), files)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def numbers(self) -> dict[str, int] | None:
        """The number of each condition, from 1; None for a model without conditions."""
        return {name: number for number, name in enumerate(self.conditions, 1)} if self.conditions else None

    def run(self, text: str = "", condition: str | None = None, seed: int = 1, **decoding: Any) -> Continuation:
        """Go on from a beginning; keyword arguments replace fields of `decoding`."""
        return self.answer([text], Composing(replace(self.decoding, **decoding), seed, condition))[0]

    def answer(self, texts: Sequence[str], options: Composing) -> list[Continuation]:
        """Each text with what the model wrote after it. An empty one is written from the start."""
        options.check()
        starts = self.tokenizer.encode(list(texts))
        generator = torch.Generator(self._device).manual_seed(options.seed)
        found: dict[int, list[Hypothesis]] = {}
        for places, inputs in self._batches_to_write(starts, options.condition):
            nothing = torch.zeros_like(inputs["lengths"])  # a longer beginning makes no longer end
            with torch.inference_mode():
                ends = decode(cast(Generator, self.model), inputs, nothing, options.decoding, generator)
            found |= zip(places, ends, strict=True)
        return [self._continued(text, starts[place], found[place]) for place, text in enumerate(texts)]

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """None: a recurrent network reads beginnings of any length."""
        return []

    def reading(self, text: str) -> Reading:
        """What the model is given to read a text, and what to call its tokens."""
        ((_, batch),) = self.batches([Passage("the input", "", (text,))])
        pieces = [START_SIGN, *self.tokenizer.pieces(batch.inputs["tokens"][0, 1:].tolist())]
        return Reading(batch.to(self._device).inputs, pieces, len(pieces))

    def picture(self, prediction: Continuation) -> Picture | None:
        """None: a recurrent language model does not attend."""
        return None

    def batches(self, passages: Sequence[Passage]) -> Iterator[tuple[list[int], Batch]]:
        """All the passages, in batches to measure the model on, each with the places of its passages in the list."""
        return PassageBatches(passages, self.tokenizer, self.batch_tokens, conditions=self.numbers).in_order()

    def scores(self, passages: Sequence[Passage], condition: Callable[[Tensor], Tensor] | None = None) -> list[Scored]:
        """How surprising each passage is to the model, which may be told other conditions."""
        return scores(self.model, passages, self.batches(passages), condition)

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """Perplexity, beside n-grams counted in the training text; with conditions, also told none and a wrong one."""
        text = from_dict(LanguageText, said(self.description, "examples"), bundle.CONFIG)
        prose = text.test(data, "language")
        console.print(prose.report, markup=False, highlight=False)
        passages = list(prose.passages(text.passage_words))
        scored = self.scores(passages)
        found = {"this model": perplexity(scored), **self._otherwise(passages)}
        notes = [f"{len(passages):,} passages of at most {text.passage_words} words, each with its end"]
        if self.conditions:
            notes += unlearned("conditions", [passage.condition for passage in passages], self.conditions)
        if unknown_tokens := sum(row.count(UNKNOWN) for row in self._sequences(passages)):
            notes.append(f"{unknown_tokens:,} tokens are unknown, and foretold without their letters")
        try:
            found = {**self._ngrams(text, passages), **found}
        except UserError as error:
            notes.append(f"no n-grams to compare with: {error}")
        return Evaluation(
            answers=[f"{perplexity([one]).per_token:.1f}\t{one.passage.place}\t{one.passage.text}" for one in scored],
            figures={name: one.figures() for name, one in found.items()},
            headings=["", "perplexity per token", "per word"],
            rows=[[name, f"{one.per_token:.1f}", f"{one.per_word:.1f}"] for name, one in found.items()],
            notes=notes,
        )

    def _otherwise(self, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """What the model makes of the passages if it is told no condition, or a wrong one drawn at random."""
        if not self.conditions:
            return {}
        generator, kinds = torch.Generator().manual_seed(1), len(self.conditions)

        def wrong(condition: Tensor) -> Tensor:
            others = torch.randint(1, kinds, condition.shape, generator=generator).to(condition.device)
            return torch.where(condition > 0, (condition - 1 + others) % kinds + 1, 0)

        told: dict[str, Callable[[Tensor], Tensor]] = {"told no condition": torch.zeros_like, "told a wrong one": wrong}
        return {name: perplexity(self.scores(passages, tell)) for name, tell in told.items()}

    def _ngrams(self, text: LanguageText, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """The perplexity of n-grams that count the tokens of the training text. UserError where that is not there."""
        check_unchanged(self.description)
        learn, _ = text.open("language")
        known = self._sequences(learn.passages(text.passage_words))
        asked, found = self._sequences(passages), {}
        for order, name in ORDERS.items():
            log_probs = Ngrams(known, order, len(self.tokenizer)).log_probs(asked)
            found[name] = Perplexity(-float(log_probs.sum()), len(log_probs), word_count(passages))
        return found

    def _sequences(self, passages: Iterable[Passage]) -> list[list[int]]:
        return [[*tokens, END] for tokens in self.tokenizer.encode([passage.text for passage in passages])]

    def _batches_to_write(
        self, starts: Sequence[Sequence[int]], condition: str | None
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """What the model starts from: the beginnings, and what kind of text to write; with the places of the beginnings
        in the list."""
        number = self._number(condition)
        for places, texts in text_batches(starts, self.batch_tokens):
            inputs = dict(texts)
            if self.conditions:
                inputs["condition"] = torch.full_like(texts["lengths"], number)
            yield places, {name: value.to(self._device) for name, value in inputs.items()}

    def _number(self, condition: str | None) -> int:
        """That of a condition; 0 for none. Raises UserError for one that the model was not trained on."""
        if condition is None:
            return 0
        if not self.conditions:
            raise UserError("this model was trained without conditions, as rnn-conditioned is; leave --condition out")
        if condition not in self.conditions:
            raise unknown("condition", condition, self.conditions)
        return self.conditions.index(condition) + 1

    def _continued(self, prompt: str, tokens: Sequence[int], found: Sequence[Hypothesis]) -> Continuation:
        """The prompt as it was given, and after it what the tokens say that follow its own."""
        before, *wholes = self.tokenizer.decode([tokens, *([*tokens, *one.tokens] for one in found)])
        text, *others = [prompt.rstrip() + whole[len(before) :] for whole in wholes]
        return Continuation(prompt, text, found[0].log_prob, found[0].ended, others)
