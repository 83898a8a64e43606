"""What a language model writes after a beginning."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from foveate.contracts import Generator, Hypothesis, Tokenizer
from foveate.data import text_batches
from foveate.data.language_processor import LanguageProcessor
from foveate.decoding import decode
from foveate.errors import UserError, unknown
from foveate.tasks.predictor import Predictor
from foveate.tasks.text_task import TOKENS_TOGETHER
from foveate.tasks.trained import Writing


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


def continue_texts(
    predictor: Predictor, texts: Sequence[str], options: Composing, budget: int = TOKENS_TOGETHER
) -> list[Continuation]:
    """Each text with what the model wrote after it; `budget` is the tokens of beginnings that are read together."""
    processor: LanguageProcessor = predictor.processor
    starts, number = processor.tokenizer.encode(list(texts)), _number(processor, options.condition)
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    found: dict[int, list[Hypothesis]] = {}
    for places, batch in text_batches(starts, budget):
        inputs = dict(batch)
        if processor.conditions:
            inputs["condition"] = torch.full_like(batch["lengths"], number)
        inputs = predictor.on_device(inputs)
        nothing = torch.zeros_like(inputs["lengths"])  # a longer beginning makes no longer end
        with torch.inference_mode():
            ends = decode(cast(Generator, predictor.model), inputs, nothing, options.decoding, generator)
        found |= zip(places, ends, strict=True)
    return [
        _continued(processor.tokenizer, *each, found[place])
        for place, each in enumerate(zip(texts, starts, strict=True))
    ]


def _number(processor: LanguageProcessor, condition: str | None) -> int:
    """That of a condition; 0 for none. Raises UserError for one that the model was not trained on."""
    if condition is None:
        return 0
    if not processor.conditions:
        raise UserError("this model was trained without conditions, as rnn-conditioned is; leave --condition out")
    if condition not in processor.conditions:
        raise unknown("condition", condition, processor.conditions)
    return processor.conditions.index(condition) + 1


def _continued(tokenizer: Tokenizer, prompt: str, tokens: Sequence[int], found: Sequence[Hypothesis]) -> Continuation:
    """The prompt as it was given, and after it what the tokens say that follow its own."""
    before, *wholes = tokenizer.decode([tokens, *([*tokens, *one.tokens] for one in found)])
    text, *others = [prompt.rstrip() + whole[len(before) :] for whole in wholes]
    return Continuation(prompt, text, found[0].log_prob, found[0].ended, others)
