"""Looks whose maps are weights, or something that is computed from weights: the measures that a page can show."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from foveate.errors import UserError, unknown
from foveate.sight.from_weights import WholeMap
from foveate.sight.look import look
from foveate.sight.sight import Sight
from foveate.sight.site import Site

MEASURES = {
    "weights": "weight",
    "without-sinks": "weight without sinks",
    "values": "weight × size of value",
    "gradients": "weight × gradient",
    "relevance": "relevance",
}
"""What the maps of a look may show, and what a page calls it: see `Sight.without_sinks`, `norms`, `gradients` and
`relevance`."""

DIFFERENCE = "difference"
"""What the maps of two looks may show: see `difference.DifferenceSite`."""

OF_AN_ANSWER = ("gradients", "relevance")
"""Those that need a number which the model's output gives."""

OF_WEIGHTS = ("weights", "without-sinks")
"""Those that weights alone determine: shares, which sum to at most 1."""

Target = Callable[[Any], Tensor]
"""A number, such as the log-probability of an answer, from what a run of the model gives."""


def measured_look(
    model: nn.Module,
    run: Callable[[], Any],
    measure: str = "weights",
    sites: Sequence[str] | None = None,
    target: Target | None = None,
) -> tuple[Sight, Any]:
    """A sight of a model while `run` runs it, with maps of a measure; and what `run` gave.

    Gradients and relevance are those of `target`. For relevance, a sight has one site for each stack of self-attention.
    Raises UserError for a measure that is not known, or that the model does not have.
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    if measure not in OF_AN_ANSWER:
        with torch.inference_mode(), look(model, sites, values=measure == "values") as sight:
            output = run()
        return (sight.norms() if measure == "values" else sight), output
    if target is None:
        raise UserError(f"the model gives no answer with a probability, which {measure} would be of")
    with torch.inference_mode(False), torch.enable_grad(), look(model, sites, gradients=True) as sight:
        output = run()
        number = target(output)
    return (sight.gradients(number) if measure == "gradients" else stacked_relevance(sight, number)), output


def finished(sight: Sight, measure: str) -> Sight:
    """The sight of a look, after windows and points have their places: without sinks where that is the measure."""
    return sight.without_sinks() if measure == "without-sinks" else sight


def check_windows(measure: str, has_windows: bool) -> None:
    """Raise UserError for the relevance of a model that attends within windows, whose layers have other windows."""
    if measure == "relevance" and has_windows:
        raise UserError("relevance goes through layers that see the whole input, and this model attends in windows")


def check_of_weights(measure: str, name: str) -> None:
    """Raise UserError for a measure that needs more than weights, where there are weights alone."""
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    if measure not in OF_WEIGHTS:
        raise UserError(f"{name} has weights alone: --measure {' or '.join(OF_WEIGHTS)}")


def stacked_relevance(sight: Sight, target: Tensor) -> Sight:
    """`Sight.relevance` of each stack of self-attention as a site with a single head, named by the stack.

    What each position keeps of itself, 1 in every layer, is left out. Raises UserError if there is no stack.
    """
    found: dict[str, Site] = {}
    for stack in dict.fromkeys(re.sub(r"\d+", "*", name) for name in sight.sites):
        try:
            shares = sight.relevance(target, stack).detach()
        except UserError:  # not self-attention, or of several sizes
            continue
        own = torch.eye(shares.shape[-1], dtype=shares.dtype, device=shares.device)
        found[stack] = RelevanceMap(stack, (shares - own).clamp(min=0)[:, None])
    if not found:
        raise UserError("relevance goes through stacks of self-attention, and this model has none: --measure gradients")
    return Sight(found, sight.notes)


class RelevanceMap(WholeMap):
    """How much each position contributes to a number through each output of a stack, (B, 1, T, T)."""

    shows = "relevance"
