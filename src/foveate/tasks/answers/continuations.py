"""What a language model writes after a beginning."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import Generator, Hypothesis, Tokenizer
from foveate.data import text_batches
from foveate.data.text.language_processor import LanguageProcessor
from foveate.decoding import decode
from foveate.errors import UserError, quoted, unknown
from foveate.forms.checks import check_positions
from foveate.tasks.answers.written import Written
from foveate.tasks.examples.text_task import TOKENS_TOGETHER
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.protocols import Writing


@dataclass
class Composing(Writing):
    """How `foveate run` has a language model write."""

    condition: str | None = None
    """What kind of text to write, for a model that was trained on several: the decade of an address, such as 1860s, or
    the name of one of the files, without .txt and .gz; or any vector: a mixture such as 1860s:0.5,1990s:0.5, or its
    numbers, parted by commas."""


def continue_texts(
    predictor: Predictor, texts: Sequence[str], options: Composing, budget: int = TOKENS_TOGETHER
) -> list[Written]:
    """Each text with what the model wrote after it; `budget` is the tokens of beginnings that are read together.

    Raises TextError for a beginning that is longer than the positions that the model has learned.
    """
    processor: LanguageProcessor = predictor.processor
    starts = processor.tokenizer.encode(list(texts))
    check_positions(predictor.model, texts, enumerate(map(len, starts)))
    condition = condition_of(processor, getattr(predictor.model, "condition", None), options.condition)
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    found: dict[int, list[Hypothesis]] = {}
    for places, batch in text_batches(starts, processor.tokenizer, budget):
        inputs = dict(batch)
        if processor.conditions:
            inputs["condition"] = condition.expand(len(batch["lengths"]), *condition.shape)
        inputs = predictor.on_device(inputs)
        nothing = torch.zeros_like(inputs["lengths"])  # a longer beginning makes no longer end
        with torch.inference_mode():
            model, special = cast(Generator, predictor.model), processor.tokenizer.special
            ends = decode(model, inputs, special, nothing, options.decoding, generator)
        found |= zip(places, ends, strict=True)
    return [
        _continued(processor.tokenizer, *each, found[place])
        for place, each in enumerate(zip(texts, starts, strict=True))
    ]


def condition_of(
    processor: LanguageProcessor, table: nn.Embedding | None, condition: str | None
) -> Int[Tensor, ""] | Float[Tensor, "D"]:
    """The number of a condition, 0 for none; or a vector: a mixture of the conditions' vectors, or its own numbers.

    Raises UserError for what is neither.
    """
    if condition is None or condition in processor.conditions:
        return torch.tensor(0 if condition is None else processor.conditions.index(condition) + 1)
    if not processor.conditions or table is None:
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
        if name not in processor.conditions:
            raise unknown("condition", name, processor.conditions)
        if not _is_number(weight):
            raise UserError(f"the weight of the condition {name} is {quoted(weight)}, but must be a number")
        mixture += float(weight) * vectors[processor.conditions.index(name) + 1]
    return mixture


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _continued(tokenizer: Tokenizer, prompt: str, tokens: Sequence[int], found: Sequence[Hypothesis]) -> Written:
    """The prompt as it was given, and after it what the tokens say that follow its own."""
    before, *wholes = tokenizer.decode([tokens, *([*tokens, *one.tokens] for one in found)])
    text, *others = [prompt.rstrip() + whole[len(before) :] for whole in wholes]
    return Written(prompt, text, found[0].log_prob, found[0].ended, others)
