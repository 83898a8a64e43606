"""What heads and keys do to an answer: what is lost when they are taken out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.attention.biases import Bias
from foveate.attention.call import Call
from foveate.attention.masks import Mask
from foveate.attention.shapes import cut
from foveate.errors import UserError, of_kind, one_of, show_value, whole_number
from foveate.sight.changer import change
from foveate.sight.changes import Change, Where
from foveate.sight.site_patterns import list_of_texts

Measure = Callable[[], Tensor]
"""Runs the model and gives a number, such as the log-probability of its answer."""

MeasureCopies = Callable[[int], Tensor]
"""Runs the model on this many copies of its input, and gives the number of each."""

Place = TypeVar("Place")


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
        whole_number("count", count)
        found = sorted(self.exact.items(), key=lambda item: -abs(item[1]))
        return [(site, head, effect) for (site, head), effect in found[:count]]


@dataclass
class KeyEffects:
    """How much a number grows when nothing attends to a key: below 0 where it needs it."""

    value: float
    """The number of the whole model."""
    estimates: Float[Tensor, "S"]
    """What a first-order estimate says about each key."""
    exact: dict[int, float] = field(default_factory=dict)
    """By key, what taking it out did."""


def effects(
    model: nn.Module,
    measure: Measure,
    sites: Sequence[str] | str = "*",
    exact: int | None = 8,
    of: Literal["heads", "sites"] = "heads",
    copies: MeasureCopies | None = None,
    at_once: int = 16,
) -> Effects:
    """What each head of any PyTorch model does to a number that `measure` gives by running the model.

        log_probability = lambda: model(tokens).logits[0, -1].log_softmax(-1)[answer]
        effects(model, log_probability).largest()

    One pass forward and back estimates all heads: the effect of a head is how fast the number changes as its output
    shrinks (Michel et al. 2019, https://arxiv.org/abs/1905.10650). The `exact` largest ones are then taken out one
    after the other; None takes out all. The heads of a site share an estimate that is their sum where `of` is "sites".

    With `copies` that many inputs run in one batch, `at_once` at most, of which each lacks another head.
    """
    patterns = list_of_texts("sites", sites)
    one_of("of", of, ("heads", "sites"))
    gauge = _Gauge()
    value, slopes = _slopes(model, measure, patterns, gauge, gauge.factors)
    estimates = {site: slope.flatten().float().cpu() for site, slope in slopes.items()}
    found = Effects(value, estimates)
    removals = [_HeadRemoval(site, head) for site, head in _ordered(found, of)[: _count(exact)]]
    changed = _take_out(
        model, measure, removals, _WithoutHeads, lambda some: [one.site for one in some], copies, at_once
    )
    found.exact = {(one.site, one.head): after - value for one, after in zip(removals, changed, strict=True)}
    return found


def key_effects(
    model: nn.Module,
    measure: Measure,
    sites: Sequence[str],
    exact: int | None = 8,
    copies: MeasureCopies | None = None,
    at_once: int = 16,
    among: Sequence[int] | None = None,
) -> KeyEffects:
    """What each key of `sites`, which all have the same keys, does to a number, as `effects` says about heads.

    A key is taken out of all sites at once: the other keys of a query share its weight. The estimate of all keys is how
    fast the number changes as their weights shrink. The largest are measured, `among` these keys if any are named.
    """
    gauge, sites = _KeyGauge(), list_of_texts("sites", sites)
    value, slopes = _slopes(model, measure, sites, gauge, gauge.logs)
    (slope,) = slopes.values()
    found = KeyEffects(value, slope.flatten().float().cpu())
    ordered = found.estimates.abs().argsort(descending=True, stable=True).tolist()
    measured = {*(ordered if among is None else among)}
    keys = [key for key in ordered if key in measured][: _count(exact)]
    changed = _take_out(model, measure, keys, _WithoutKeys, lambda some: sites, copies, at_once)
    found.exact = {key: after - value for key, after in zip(keys, changed, strict=True)}
    return found


def _count(exact: int | None) -> int | None:
    return None if exact is None else whole_number("exact", exact)


def _slopes(
    model: nn.Module, measure: Measure, patterns: Sequence[str], gauge: Change, by_name: dict[str, Tensor]
) -> tuple[float, dict[str, Tensor]]:
    """The number of the whole model, and minus its gradient by each tensor that the gauge has put into it."""
    if not callable(measure):
        raise UserError(f"measure is {show_value(measure)}, but must be a function that runs the model")
    with torch.enable_grad(), change(model, dict.fromkeys(patterns, gauge)):
        value = measure()
    of_kind(Tensor, "what measure gives", value, "a tensor of one number")
    if value.numel() != 1:
        raise UserError(f"measure gives one number, not a tensor of shape {tuple(value.shape)}")
    if not value.requires_grad:
        raise UserError("measure runs the model without gradients: leave torch.no_grad() and .item() out of it")
    slopes = torch.autograd.grad(value.sum(), [*by_name.values()], allow_unused=True)
    found = {
        name: torch.zeros_like(put_in).detach() if slope is None else -slope.detach()
        for (name, put_in), slope in zip(by_name.items(), slopes, strict=True)
    }
    return float(value.detach()), found


class _NoCopiesError(Exception):
    """The examples of a call are not those of the batch, so that one copy cannot be changed alone."""


def _take_out(
    model: nn.Module,
    measure: Measure,
    removals: Sequence[Place],
    make: Callable[[Sequence[Place]], Change],
    sites_of: Callable[[Sequence[Place]], Sequence[str]],
    copies: MeasureCopies | None,
    at_once: int,
) -> list[float]:
    """The number without each of the removals: several in one batch where the model can run on copies."""
    if copies is not None and not callable(copies):
        raise UserError(f"copies is {show_value(copies)}, but must be a function of a number of copies")
    found: list[float] = []
    step = 1 if copies is None else max(1, at_once)
    while len(found) < len(removals):
        some = removals[len(found) : len(found) + step]
        try:
            with torch.no_grad(), change(model, dict.fromkeys(sites_of(some), make(some))):
                values = copies(len(some)) if copies is not None and step > 1 else measure()
            found += values.reshape(len(some)).tolist()
        except _NoCopiesError:
            step = 1
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


# -- what is put into a model to estimate


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


@dataclass(frozen=True)
class _KeyGauge(Change):
    """Adds 0 to the scores of each key, so that the gradient of this number says what the key does."""

    logs: dict[str, Tensor] = field(default_factory=dict)

    def __call__(self, call: Call, where: Where) -> Call:
        if not self.logs:
            device = call.queries.device
            self.logs["keys"] = torch.zeros(1, call.keys.shape[-2], device=device, requires_grad=True)
        bias = _OfKeys(self.logs["keys"])
        return replace(call, bias=bias if call.bias is None else call.bias + bias, projected=False)


@dataclass(frozen=True, eq=False)
class _OfKeys(Bias):
    """A number for each key."""

    numbers: Float[Tensor, "1 S"]

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        return cut(self.numbers, rows, columns).to(queries.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.numbers,)

    def shape(self) -> torch.Size:
        return self.numbers.shape


# -- what is taken out of the copies of a batch, of each something else


@dataclass(frozen=True)
class _HeadRemoval:
    """A head of a site; None for all of them."""

    site: str
    head: int | None


def _of_rows(by_copy: Tensor, call: Call) -> Tensor:
    """What is said of each copy (R, ...), said of each example of a call, whose examples may be windows of a copy."""
    rows, copies = call.leading[0] if call.leading else 1, len(by_copy)
    if rows % copies:
        raise _NoCopiesError
    return by_copy.repeat_interleave(rows // copies, 0).to(call.queries.device)


@dataclass(frozen=True)
class _WithoutHeads(Change):
    """Each copy lacks another head."""

    removals: Sequence[_HeadRemoval]

    def __call__(self, call: Call, where: Where) -> Call:
        heads = call.leading[1:]
        factor = torch.ones(len(self.removals), heads.numel(), dtype=call.values.dtype)
        for row, one in enumerate(self.removals):
            if one.site == where.site:
                factor[row, slice(None) if one.head is None else one.head] = 0
        factor = _of_rows(factor.reshape(-1, *heads, 1, 1), call)
        return replace(call, values=call.values * factor, projected=False)


@dataclass(frozen=True)
class _WithoutKeys(Change):
    """Each copy lacks another key."""

    keys: Sequence[int]

    def __call__(self, call: Call, where: Where) -> Call:
        seen = torch.ones(len(self.keys), call.keys.shape[-2], dtype=torch.bool)
        seen[range(len(self.keys)), list(self.keys)] = False
        seen = seen.reshape(len(self.keys), *[1] * len(call.leading[1:]), 1, -1)
        mask = _SeenKeys(_of_rows(seen, call))
        return replace(call, mask=mask if call.mask is None else call.mask & mask, projected=False)


@dataclass(frozen=True, eq=False)
class _SeenKeys(Mask):
    """Hides some keys from all queries of an example."""

    seen: Bool[Tensor, "B ... 1 S"]

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        return cut(self.seen, rows, columns)

    @property
    def rowwise(self) -> bool:
        return False

    def shape(self, leading: int) -> torch.Size:
        return self.seen.shape

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.seen,)
