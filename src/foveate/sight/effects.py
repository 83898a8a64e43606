"""What heads do to an answer: what is lost when they are taken out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.call import Call
from foveate.errors import UserError, at_least
from foveate.sight.changer import change
from foveate.sight.changes import Change, Scale, Where

Measure = Callable[[], Tensor]
"""Runs the model and gives a number, such as the log-probability of its answer."""


@dataclass
class Effects:
    """How much a number grows when a head, or all heads of a site, give nothing: below 0 where it needs them."""

    value: float
    """The number of the whole model."""
    estimates: dict[str, Float[Tensor, "H"]]
    """By site, what a first-order estimate says about each head."""
    exact: dict[tuple[str, int | None], float] = field(default_factory=dict)
    """By site and head (None: all of them), what taking it out did."""

    def largest(self, count: int = 10) -> list[tuple[str, int | None, float]]:
        """Site, head and effect of those that did most, measured exactly."""
        found = sorted(self.exact.items(), key=lambda item: -abs(item[1]))
        return [(site, head, effect) for (site, head), effect in found[:count]]


def effects(
    model: nn.Module,
    measure: Measure,
    sites: Sequence[str] | str = "*",
    exact: int | None = 8,
    of: Literal["heads", "sites"] = "heads",
) -> Effects:
    """What each head of any PyTorch model does to a number that `measure` gives by running the model.

        log_probability = lambda: model(tokens).logits[0, -1].log_softmax(-1)[answer]
        effects(model, log_probability).largest()

    One pass forward and back estimates all heads: the effect of a head is how fast the number changes as its output
    shrinks (Michel et al. 2019, https://arxiv.org/abs/1905.10650). The `exact` largest ones are then taken out one
    after the other; None takes out all. The heads of a site share an estimate that is their sum where `of` is "sites".
    """
    if exact is not None:
        at_least(0, "exact", exact)
    patterns = [sites] if isinstance(sites, str) else list(sites)
    gauge = _Gauge()
    with torch.enable_grad(), change(model, dict.fromkeys(patterns, gauge)):
        value = measure()
    if value.numel() != 1:
        raise UserError(f"measure gives one number, not a tensor of shape {tuple(value.shape)}")
    if not value.requires_grad:
        raise UserError("measure runs the model without gradients: leave torch.no_grad() and .item() out of it")
    slopes = torch.autograd.grad(value.sum(), [*gauge.factors.values()], allow_unused=True)
    estimates = {
        site: torch.zeros_like(factor).detach() if slope is None else -slope.detach()
        for (site, factor), slope in zip(gauge.factors.items(), slopes, strict=True)
    }
    found = Effects(float(value.detach()), {site: part.flatten().float().cpu() for site, part in estimates.items()})
    for site, head in _ordered(found, of)[:exact]:
        with torch.no_grad(), change(model, {site: Scale(0.0, head)}):
            found.exact[site, head] = float(measure()) - found.value
    return found


def _ordered(found: Effects, of: str) -> list[tuple[str, int | None]]:
    """Heads, or sites, from the largest estimate to the smallest."""
    sizes: dict[tuple[str, int | None], float] = {}
    for site, estimates in found.estimates.items():
        if of == "sites":
            sizes[site, None] = abs(float(estimates.sum()))
        else:
            sizes |= {(site, head): abs(float(size)) for head, size in enumerate(estimates)}
    return sorted(sizes, key=lambda place: -sizes[place])


@dataclass(frozen=True)
class _Gauge(Change):
    """Multiplies what each head gives by 1, so that the gradient of the factor says what the head does."""

    factors: dict[str, Tensor] = field(default_factory=dict)

    def __call__(self, call: Call, where: Where) -> Call:
        factor = self.factors.get(where.site)
        if factor is None:
            factor = torch.ones(*call.leading[1:], 1, 1, device=call.values.device, requires_grad=True)
            self.factors[where.site] = factor
        return replace(call, values=call.values * factor.to(call.values.dtype), projected=False)
