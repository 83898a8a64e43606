"""The settings of decoding, for configurations and the command line."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from foveate.contracts import Generator, Hypothesis
from foveate.decoding.beam import beam, check_beam
from foveate.decoding.greedy import greedy
from foveate.decoding.ranking import LONGEST
from foveate.decoding.sampling import COLDEST, check_sampling, sample
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError, at_least, check_literals, show_value
from foveate.nn import longest_sequence
from foveate.special_tokens import SpecialTokens

MOST_FACTOR, MOST_EXTRA = 1_000, 1_000_000
"""The longest that an output may be made: a model that never ends a text would write for days."""


@dataclass
class Decoding:
    """Settings of decoding."""

    method: Literal["greedy", "beam", "sample"] = "beam"
    """Greedy search, beam search, or sampling."""
    n_best: int = 1
    """Outputs for each input: the best ones of beam search (at most its width), or the number of samples."""
    max_new_tokens: int | None = None
    """Greatest number of tokens of an output, whatever its input; without it, length_factor and length_extra decide."""
    length_factor: float = 2.0
    """An input of S tokens may give at most length_factor * S + length_extra tokens."""
    length_extra: int = 10
    """Tokens that every output may have, in addition to length_factor * S."""
    width: int = 5
    """Beam search: number of hypotheses that are kept at each step."""
    length_penalty: float = 1.0
    """Beam search: outputs are ranked by log-probability / length ** length_penalty; a larger one favours longer
    outputs."""
    patience: float | None = None
    """Beam search: stop when patience * width outputs have ended, as most toolkits do with 1; None searches until no
    open hypothesis can win."""
    growth: float | None = 1.15
    """Beam search: an open hypothesis can win if its log-probability would win at growth times its current length. None
    uses the greatest allowed length, which takes a quarter more time."""
    threshold: float | None = 3.0
    """Beam search: drop hypotheses that are e ** threshold times less likely than the n_best-th one; None disables
    pruning."""
    early_stopping: Literal["yes", "no", "never"] | None = None
    """Beam search: stop as transformers does, where early_stopping is true ("yes": width outputs have ended), false or
    "never"; patience, growth and threshold then do nothing."""
    temperature: float = 1.0
    """Sampling: below 1 prefers likely tokens, above 1 is more random; 0 takes the likeliest, as greedy search does."""
    top_k: int | None = None
    """Sampling: draw from this many likeliest tokens only."""
    top_p: float | None = None
    """Sampling: draw from the smallest set of likeliest tokens with this probability."""
    min_p: float | None = None
    """Sampling: draw from tokens with at least this share of the likeliest token's probability."""
    repetition_penalty: float = 1.0
    """Greedy search and sampling: above 1, tokens that the text already has become less likely (Keskar et al. 2019)."""

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn by chance."""
        return self.method == "sample" and bool(self.temperature)

    @property
    def beam_arguments(self) -> tuple[int, int, float, float | None, float | None, float | None]:
        """The arguments of `beam`, in order, but for the last ones."""
        return self.width, self.n_best, self.length_penalty, self.patience, self.growth, self.threshold

    def check(self) -> None:
        """Raise UserError for an invalid value."""
        check_literals(self)
        for name, most in (("length_factor", MOST_FACTOR), ("length_extra", MOST_EXTRA)):
            if not 0 <= getattr(self, name) <= most:
                raise UserError(f"{name} is {show_value(getattr(self, name))}, but must be from 0 to {most:,}")
        if not self.length_factor and not self.length_extra:
            raise UserError("length_factor and length_extra are both 0: no output may have a token")
        if self.max_new_tokens is not None:
            at_least(1, "max_new_tokens", self.max_new_tokens)
        if not COLDEST <= self.repetition_penalty <= 1 / COLDEST:
            raise UserError(f"repetition_penalty must be above 0, not {self.repetition_penalty}; 1 changes nothing")
        match self.method:
            case "beam":
                check_beam(*self.beam_arguments)
                if self.repetition_penalty != 1:
                    raise UserError("repetition_penalty is for greedy search and sampling: beam search has none")
            case "sample":
                check_draws(self)
            case "greedy":
                if self.n_best != 1:
                    raise UserError(
                        f"greedy search has one output, not n_best={self.n_best}; use beam search or sampling"
                    )


def check_draws(settings: Decoding) -> None:
    """Raise UserError for invalid settings of sampling."""
    if settings.temperature:
        check_sampling(settings.n_best, settings.temperature, settings.top_k, settings.top_p, settings.min_p)
    elif any(value is not None for value in (settings.top_k, settings.top_p, settings.min_p)):
        raise UserError("top_k, top_p and min_p choose from draws: give a temperature above 0, such as 0.7")
    else:
        at_least(1, "n_best", settings.n_best)
        if settings.n_best > 1:
            raise UserError("n_best counts draws: give a temperature above 0, such as 0.7")


def decode(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    source_lengths: Int[Tensor, "B"],
    settings: Decoding,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` outputs of each example by these `settings`; a `generator` makes samples reproducible.

    `source_lengths` determine the greatest length of an output, at most the number of learned positions; use zeros for
    inputs without a length. The model should be in evaluation mode. Raises UserError for invalid settings.
    """
    settings.check()
    longest = longest_outputs(model, source_lengths, settings, inputs.get("lengths"))
    return decode_up_to(longest, model, inputs, special, settings, generator)


def longest_outputs(
    model: object,
    source_lengths: Int[Tensor, "B"],
    settings: Decoding,
    prompt_lengths: Int[Tensor, "B"] | None = None,
) -> Int[Tensor, "B"]:
    """The greatest number of tokens of each output, the end included: prompt and output, whose last token is not read,
    have room in the learned positions."""
    longest = (source_lengths * settings.length_factor).long() + settings.length_extra
    if settings.max_new_tokens is not None:
        longest = torch.full_like(longest, settings.max_new_tokens)
    known = longest_sequence(model)
    if prompt_lengths is not None and known < LONGEST:
        longest = torch.minimum(longest, int(known) + 1 - prompt_lengths)
    return longest.clamp_max(min(known, LONGEST))


def decode_up_to(
    longest: Int[Tensor, "B"],
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    settings: Decoding,
    generator: torch.Generator | None = None,
    rules: TokenRules | None = None,
) -> list[list[Hypothesis]]:
    """`decode` with outputs of at most `longest` tokens, whose scores `rules` change."""
    if settings.method == "beam":
        return beam(model, inputs, special, longest, *settings.beam_arguments, settings.early_stopping, rules)
    if settings.method == "sample" and settings.temperature:
        drawn_by = (settings.n_best, settings.temperature, settings.top_k, settings.top_p)
        changed_by = (settings.min_p, settings.repetition_penalty)
        return sample(model, inputs, special, longest, *drawn_by, generator, *changed_by, rules)
    return [[found] for found in greedy(model, inputs, special, longest, settings.repetition_penalty, rules)]
