"""Weights that somebody brings: what another library returned, or wrote to a file, with the pages and measures of a
look."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.attend import SCALED_DOT, SOFT
from foveate.attention.call import Call
from foveate.attention.masks import Causal
from foveate.attention.scores import ScaledDot
from foveate.errors import UserError, show_value
from foveate.sight.derived import DerivedSite
from foveate.sight.key_store import KeyStore
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.sight import Shown, Sight
from foveate.sight.site import Site

TOLERANCE = 1e-2
"""A row may sum to this much more than 1: half precision rounds."""


class WholeMap(DerivedSite):
    """A map that is kept whole, (B, H, T, S)."""

    shows = "weights"

    def __init__(self, name: str, weights: Float[Tensor, "B H T S"]) -> None:
        Site.__init__(self, name, None)
        self._weights = weights

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, heads, rows, columns = self._weights.shape
        return examples, heads, rows, columns

    @property
    def count(self) -> int:
        return self.shape[2]

    @property
    def has_sinks(self) -> bool:
        return False

    @property
    def device(self) -> torch.device:
        return self._weights.device

    @property
    def run(self) -> int:
        return 1

    @property
    def maps(self) -> None:
        return None

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self._weights.dtype, torch.float32)

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        found = self._weights
        for side, choice in enumerate((heads, queries, keys), 1):
            found = found.index_select(side, torch.tensor(resolve_choice(choice, found.shape[side])).to(found.device))
        return found.to(self.dtype)


class GivenMap(WholeMap):
    """A map of given numbers, whose rows may have any sum."""

    def __init__(self, name: str, weights: Float[Tensor, "B H T S"]) -> None:
        """Raises UserError for numbers below 0 and not finite ones."""
        super().__init__(name, weights)
        if not weights.isfinite().all() or (weights < 0).any():
            raise UserError(f"{name}: weights are at least 0 and finite, not scores before the softmax")


class GivenSite(GivenMap):
    """A map of given weights."""

    def __init__(self, name: str, weights: Float[Tensor, "B H T S"]) -> None:
        """Raises UserError for what are no weights: below 0, not finite, or rows with a sum above 1."""
        super().__init__(name, weights)
        if weights.numel() and float(weights.sum(-1).max()) > 1 + TOLERANCE:
            raise UserError(f"{name}: a row of weights sums to at most 1, not to {float(weights.sum(-1).max()):.3f}")


def from_weights(weights: Any) -> Sight:
    """A sight of weights that are given, for all that a sight of a look can show and measure.

        outputs = model(**inputs, output_attentions=True)  # of transformers
        foveate.sight.from_weights(outputs).save("page.html", tokens)

    They are an array or tensor (T, S), (H, T, S) or (B, H, T, S); a list of these, one for each layer; a mapping from
    names of sites to these; or what a model of transformers returned: of its fields those with attentions are taken,
    also of `generate`, whose steps become the rows of one map. Raises UserError for what are no weights.
    """
    sites = {name: GivenSite(name, _four(name, each)) for name, each in _named(weights)}
    if not sites:
        raise UserError("there are no weights: was the model asked for output_attentions=True, with eager attention?")
    return Sight(dict(sites), [])


def show(weights: Any, tokens: Any = None, example: int = 0, **options: Any) -> Shown:
    """The page of weights that somebody brings, `given` says which: in a notebook, or in a file by `.save(path)`.

        foveate.show(model(**inputs, output_attentions=True), tokens)

    `tokens`, `example` and `options` are those of `Sight.save`.
    """
    return from_weights(weights).show(tokens, example, **options)


def from_queries_and_keys(
    sides: Mapping[str, tuple[Any, Any]], causal: bool = False, scale: float | None = None
) -> Sight:
    """A sight of queries and keys, by the names of sites: their weights are computed when they are asked for.

    Queries are (H, T, D) or (B, H, T, D), keys as many or fewer heads, each for a group of consecutive ones of the
    queries. With `causal`, the last query has the position of the last key. `scale` is by default that of a scaled dot
    product.
    """
    return Sight({name: _by_queries(name, *both, causal, scale) for name, both in sides.items()}, [])


def _by_queries(name: str, queries: Any, keys: Any, causal: bool, scale: float | None) -> Site:
    queries, keys = _four(name, queries), _four(name, keys)
    heads, groups = queries.shape[1], keys.shape[1]
    if queries.shape[-1] != keys.shape[-1] or heads % max(1, groups) or len(queries) != len(keys):
        shapes = " and ".join(" x ".join(map(str, side.shape)) for side in (queries, keys))
        raise UserError(f"{name}: queries and keys do not fit: {shapes}")
    queries, keys = queries.unflatten(1, (groups, heads // groups)), keys[:, :, None]
    mask = Causal(keys.shape[-2] - queries.shape[-2]) if causal else None
    score = SCALED_DOT if scale is None else ScaledDot(scale)
    call = Call(queries, keys, keys[..., :0], score, mask, None, SOFT, dropout=0.0, full=False)
    site = Site(name, KeyStore(keys))
    span = site.keys.full_span  # type: ignore[union-attr]
    call.keys = keys[..., :0, :]
    site.calls.append(RecordedCall(call, span, start=0, run=1))
    return site


def _named(weights: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of any nesting of mappings and sequences, each with a name."""
    if isinstance(weights, Mapping):
        of_library = {key: each for key, each in weights.items() if str(key).endswith("attentions")}
        for key, each in (of_library or weights).items():
            yield from _named(each, f"{name}.{key}" if name else str(key))
    elif isinstance(weights, (list, tuple)):
        if weights and all(isinstance(step, (list, tuple)) for step in weights):
            yield from _named([_rows(layer) for layer in zip(*weights, strict=True)], name or "layer")
            return
        for number, each in enumerate(weights):
            if each is not None:
                yield from _named(each, f"{name or 'layer'}.{number}")
    elif weights is not None:
        yield name or "weights", weights


def _rows(steps: Sequence[Any]) -> Tensor:
    """The maps of several steps as the rows of one; a key that a step did not have yet has the weight 0."""
    parts = [_tensor("weights", step) for step in steps]
    if any(part.ndim < 2 for part in parts):
        raise UserError("weights: each step has an array of (T, S), (H, T, S) or (B, H, T, S) for each layer")
    most = max(part.shape[-1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, most - part.shape[-1])) for part in parts], -2)


def _tensor(name: str, values: Any) -> Tensor:
    try:
        return torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{name}: an array of numbers was expected, not {show_value(values)}") from None


def _four(name: str, values: Any) -> Float[Tensor, "B H T S"]:
    """An array as a tensor with all four dimensions."""
    found = _tensor(name, values)
    if not 2 <= found.ndim <= 4 or not found.is_floating_point():
        shape = " x ".join(map(str, found.shape)) or "one number"
        raise UserError(f"{name}: expected weights (T, S), (H, T, S) or (B, H, T, S), not {found.dtype} of {shape}")
    return found.reshape(*[1] * (4 - found.ndim), *found.shape)
