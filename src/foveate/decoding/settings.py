"""How a model's output is written, as one set of choices for configurations and the command line."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from foveate.contracts import Hypothesis, StepDecoder
from foveate.decoding.beam import beam, check_beam
from foveate.decoding.greedy import greedy
from foveate.decoding.ranking import LONGEST
from foveate.decoding.sampling import check_sampling, sample
from foveate.errors import UserError, check_literals
from foveate.nn import longest_sequence


@dataclass
class Decoding:
    """How outputs are searched for or drawn."""

    method: Literal["greedy", "beam", "sample"] = "beam"
    """The likeliest token at each step, the best of several beginnings, or random draws."""
    n_best: int = 1
    """Outputs for each input: the best of a beam search (at most its width), or as many random draws."""
    length_factor: float = 2.0
    """An input of S tokens may give length_factor * S + length_extra tokens."""
    length_extra: int = 10
    """Tokens that every output may have, however short its input."""
    width: int = 5
    """Beam search: how many beginnings are kept at each step."""
    length_penalty: float = 1.0
    """Beam search: outputs are ranked by log-probability / length ** length_penalty; more favours longer ones."""
    patience: float | None = None
    """Beam search: stop when patience * width outputs have ended, as most toolkits do with 1; None goes on until no
    other can win."""
    growth: float | None = 1.15
    """Beam search: those outputs can win that would, without growing less likely, at so many times their length; with
    None at the greatest length allowed, for which searches go on a quarter longer."""
    threshold: float | None = 3.0
    """Beam search: beginnings are given up that are e ** threshold times less likely than the best one (the n_best-th,
    if more are asked for); None keeps width of them."""
    temperature: float = 1.0
    """Sampling: below 1 keeps to likely tokens, above 1 takes more risks."""
    top_k: int | None = None
    """Sampling: draw from this many likeliest tokens only."""
    top_p: float | None = None
    """Sampling: draw from the fewest likeliest tokens that together have this probability."""

    @property
    def searched(self) -> tuple[int, int, float, float | None, float | None, float | None]:
        """What `beam` is told, in its order."""
        return self.width, self.n_best, self.length_penalty, self.patience, self.growth, self.threshold

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_literals(self)
        for name in ("length_factor", "length_extra"):
            if not 0 <= getattr(self, name) <= LONGEST:
                raise UserError(f"{name} is {getattr(self, name)}, but must be from 0 to {LONGEST:,}")
        if not self.length_factor and not self.length_extra:
            raise UserError("length_factor and length_extra are both 0: no output may have a token")
        match self.method:
            case "beam":
                check_beam(*self.searched)
            case "sample":
                check_sampling(self.n_best, self.temperature, self.top_k, self.top_p)
            case "greedy":
                if self.n_best != 1:
                    raise UserError(
                        f"greedy search finds one output, not n_best={self.n_best}; use beam search or sampling"
                    )


def decode(
    model: StepDecoder,
    inputs: dict[str, Tensor],
    source_lengths: Int[Tensor, "B"],
    settings: Decoding,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """For each example its `n_best` outputs, written as `settings` say; the `generator` makes random draws repeat.

    `source_lengths` set how long an output may become, at most the positions that the model has learned; zeros where
    inputs have no length. The model should be in evaluation mode. Raises UserError on settings that make no sense.
    """
    settings.check()
    return decode_up_to(longest_outputs(model, source_lengths, settings), model, inputs, settings, generator)


def longest_outputs(model: object, source_lengths: Int[Tensor, "B"], settings: Decoding) -> Int[Tensor, "B"]:
    """How many tokens an output may have, END included: what is set, at most the positions that the model learned."""
    longest = (source_lengths * settings.length_factor).long() + settings.length_extra
    return longest.clamp_max(min(longest_sequence(model), LONGEST))


def decode_up_to(
    longest: Int[Tensor, "B"],
    model: StepDecoder,
    inputs: dict[str, Tensor],
    settings: Decoding,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """As `decode`, with outputs of at most so many tokens each."""
    if settings.method == "beam":
        return beam(model, inputs, longest, *settings.searched)
    if settings.method == "sample":
        return sample(
            model, inputs, longest, settings.n_best, settings.temperature, settings.top_k, settings.top_p, generator
        )
    return [[found] for found in greedy(model, inputs, longest)]
