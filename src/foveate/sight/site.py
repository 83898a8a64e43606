"""One map of attention: the module that made it, its weights and its measures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.points import Grids
from foveate.errors import UserError, of_kind, whole_number
from foveate.sight import measures
from foveate.sight.blocks import compute_dtype
from foveate.sight.key_measures import CELLS, cell_indices, counted_queries
from foveate.sight.key_store import KeyStore
from foveate.sight.layouts import Windows
from foveate.sight.measures import ALL, Choice, Top, resolve_choice
from foveate.sight.points import SamplingPoints, grids_of, points_of
from foveate.sight.recorded_call import RecordedCall

BLOCK = 2**21
"""Number of weights that are pooled at once."""


class Statistics(NamedTuple):
    """Numbers about the heads of a site, over all queries and examples, those of padding too."""

    entropy: Float[Tensor, "H"]
    """The mean entropy, in nats: 0 where each query looks at one key."""
    largest_score: Float[Tensor, "H"]
    """The largest score before the softmax."""
    sink_share: Float[Tensor, "H"]
    """The share of all attention that goes to the one key that gets the most."""


class Site:
    """A module that attends, and its map (B, H, T, S): examples, heads, queries, keys.

    A decoder that attends once for each step has one map, whose rows are the steps. The weight of a key that a step did
    not have yet is 0.
    """

    shows: str = "weights"
    """What its map shows: one of `measured_look.MEASURES`."""
    windows: tuple[Windows, Windows] | None = None
    """The windows of queries and keys in the picture, after `Sight.merge_windows`."""

    def __init__(self, name: str, keys: KeyStore | None) -> None:
        self.name = name
        self.keys = keys
        """The keys of the map; None if only measures were kept."""
        self.last_key: Tensor | None = None
        """The last key of the last call, (B, ..., D), if keys are not kept."""
        self.calls: list[RecordedCall] = []
        self.errors: list[float] = []
        """For each checked call, the largest difference between recorded and recomputed output."""

    @property
    def count(self) -> int:
        """Number of rows recorded so far."""
        return self.calls[-1].start + self.calls[-1].count if self.calls else 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, H, T, S)."""
        leading = self.calls[0].call.leading or torch.Size([1])
        return leading[0], leading[1:].numel(), self.count, max(call.end for call in self.calls)

    @property
    def has_sinks(self) -> bool:
        """Whether a sink, which has no value, takes part of the weights (see `attention.Soft`)."""
        return self.calls[0].call.select.sinks is not None

    @property
    def maps(self) -> Grids | None:
        """Rows and columns of the feature maps that queries look at points of, as those of deformable attention do;
        None for other sites."""
        return grids_of(self.calls)

    @property
    def grids(self) -> Grids | None:
        """The same if the keys are the places of these maps, map by map."""
        return self.maps

    @property
    def rows_at_once(self) -> int:
        """Number of rows whose weights are in memory together, where they are read block by block."""
        examples, heads, _, key_count = self.shape
        return max(1, BLOCK // max(1, examples * heads * key_count))

    @property
    def run(self) -> int:
        """Number of the model's run that made it, from 1."""
        return self.calls[0].run

    @property
    def dtype(self) -> torch.dtype:
        """The type of weights and measures: single precision or higher."""
        return compute_dtype(self.calls[0].call)

    @property
    def device(self) -> torch.device:
        """The device of the model, where weights and measures are computed."""
        return self.calls[0].call.queries.device

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        """The weights of the chosen heads, queries and keys: the softmax that made the output, before any dropout.

        For a hard selection they are the probabilities of the keys; `choices` gives the chosen one.
        """
        if len(self.calls) == 1:
            ((recorded, call),) = self._calls_with_keys()
            return self._weights_of(recorded, call, heads, queries, keys)
        batch, head_count, row_count, key_count = self.shape
        heads, queries = resolve_choice(heads, head_count), resolve_choice(queries, row_count)
        keys = resolve_choice(keys, key_count)
        result = self._zeros(batch, len(heads), len(queries), len(keys))
        for recorded, call in self._calls_with_keys():
            over = [at for at, query in enumerate(queries) if 0 <= query - recorded.start < recorded.count]
            along = [at for at, key in enumerate(keys) if recorded.span.first <= key < recorded.end]
            if over and along:
                chosen_queries = [queries[at] - recorded.start for at in over]
                chosen_keys = [keys[at] - recorded.span.first for at in along]
                part = self._weights_of(recorded, call, heads, chosen_queries, chosen_keys)
                result[:, :, torch.tensor(over)[:, None], torch.tensor(along)] = part.to(result.dtype)
        return result

    def _weights_of(
        self, recorded: RecordedCall, call: Call, heads: Choice, queries: Choice, keys: Choice
    ) -> Float[Tensor, "B H t s"]:
        """The weights of one call, given with its keys."""
        return measures.weights(call, heads, queries, keys)

    def measure(self, *names: str, top: int = 8) -> None:
        """Compute several measures at once ("received", "top", ...), so that asking for them later is immediate.

        That takes little longer than one of them, since all share the weights. `top` is the number of keys of "top".
        """
        missing = [name for name in measures.check_names(names) if not self._is_measured(name, top)]
        for recorded, call in self._calls_with_keys() if missing else ():
            self.compute_measures(recorded, call, missing, top)

    def compute_measures(self, recorded: RecordedCall, call: Call, names: Sequence[str], top: int = 8) -> None:
        """Compute measures of one call, given with its keys, in one pass, and keep them in its record."""
        known = measures.MEASURES | {"top": lambda _: measures.TopKeys(top)}
        requested = [known[name](self.first_position(recorded)) for name in names]
        recorded.measured |= dict(zip(names, measures.measure(call, requested), strict=True))

    def top(self, k: int = 8) -> Top:
        """The k keys with the largest weights of each query, (B, H, T, k): weights, descending, and positions.

        If a query has fewer keys, the weight is 0 and the position -1.
        """
        k = whole_number("k", k, least=1)
        name = "top" if self._is_measured("top", k) else f"top {k}"
        results = self._measure_calls(name, lambda recorded: measures.TopKeys(k))
        firsts = [recorded.span.first for recorded in self.calls]
        keys = [part.keys + first * (part.keys >= 0) for part, first in zip(results, firsts, strict=True)]
        return Top(torch.cat([part.weights for part in results], 2)[..., :k], torch.cat(keys, 2)[..., :k])

    def entropy(self) -> Float[Tensor, "B H T"]:
        """The entropy of each query's weights, in nats: 0 for a single key, log S for uniform weights."""
        return torch.cat(self._measure_calls("entropy", lambda recorded: measures.Entropy()), -1)

    def max(self) -> Float[Tensor, "B H T"]:
        """The largest weight of each query."""
        return torch.cat(self._measure_calls("max", lambda recorded: measures.Max()), -1)

    def largest_score(self) -> Float[Tensor, "B H T"]:
        """The largest score of each query before the softmax: growing ones end in overflows."""
        return torch.cat(self._measure_calls("score", lambda recorded: measures.LargestScore()), -1)

    def statistics(self) -> Statistics:
        """What is watched in a training, for each head."""
        if self.keys is not None:
            self.measure("entropy", "score", "received")
        received = self.received().amax(-1) / max(1, self.shape[2])
        means = self.entropy().mean((0, 2)), self.largest_score().amax((0, 2)), received.mean(0)
        return Statistics(*means)

    def distance(self) -> Float[Tensor, "B H T"]:
        """The mean distance between a query and its keys, weighted by attention.

        A call tells the position of its first query among its keys by a causal mask, or as the step of a causal module
        of transformers, also behind a cache that was filled before the look. In self-attention that adds one key for
        each query, the last query has the position of the last key; otherwise the first query has that of the first
        key.
        """
        results = self._measure_calls("distance", lambda recorded: measures.Distance(self.first_position(recorded)))
        return torch.cat(results, -1)

    def received(self, queries: Tensor | Sequence[Any] | None = None) -> Float[Tensor, "B H S"]:
        """The attention that each key receives: the sum of its weights over all queries, those of padding too.

        `queries` says which ones count: their number in each example, (B,), or a mask (B, T) such as `attention_mask`.
        """
        batch, heads, rows, count = self.shape
        mask = None if queries is None else counted_queries(queries, batch, rows, self.device)
        name = "received" if mask is None else "received by some queries"
        parts = self._measure_calls(name, lambda recorded: measures.Received(mask, recorded.start))
        total = parts[0].new_zeros(batch, heads, count)
        for recorded, part in zip(self.calls, parts, strict=True):
            total[..., recorded.span.first : recorded.end] += part
        return total

    def propagate(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        """The product of shares of the queries and the weights averaged over heads: one layer of a rollout."""
        total = shares.new_zeros(*shares.shape[:2], self.shape[3])
        for recorded, call in self._calls_with_keys():
            part = shares[..., recorded.start : recorded.start + recorded.count]
            total[..., recorded.span.first : recorded.end] += measures.measure(call, [measures.Propagation(part)])[0]
        return total

    def pooled(self, rows: int = CELLS, columns: int = CELLS) -> Float[Tensor, "B H rows columns"]:
        """An exact map at lower resolution: for each cell, the weight on its keys, averaged over its queries.

        Cell n of r cells over T positions begins at floor(n T / r). There are at most as many cells as positions.
        """
        rows, columns = (whole_number("the number of cells", count, least=1) for count in (rows, columns))
        if len(self.calls) == 1:
            name = "pooled" if rows == columns == CELLS else f"pooled to {rows} x {columns}"
            (result,) = self._measure_calls(name, lambda _: measures.Pooled(rows, columns))
            return result
        batch, heads, row_count, key_count = self.shape
        rows, columns = min(rows, row_count), min(columns, key_count)
        self._require_queries("pooled")
        over, along = cell_indices(row_count, rows, self.device), cell_indices(key_count, columns, self.device)
        total = self._zeros(batch, heads, rows, columns)
        height = self.rows_at_once
        for start in range(0, row_count, height):
            weights = self.weights(queries=slice(start, start + height))
            summed = weights.new_zeros(*weights.shape[:-1], columns).index_add_(-1, along, weights)
            total.index_add_(-2, over[start : start + height], summed)
        return total / over.bincount()[:, None]

    def beam_weights(self, beams: Int[Tensor, "R N"]) -> Float[Tensor, "R H N S"]:
        """The weights of the texts that a beam search returned: for each text and token, of the beam that wrote it.

        `beams` has the number of that beam, among all beams of the batch: the `beam_indices` that `generate` of
        transformers returns. The last N rows of the map are those of the N tokens. After the end of a text the beam is
        -1 and the weights are 0.
        """
        of_kind(Tensor, "beams", beams, "a tensor (R, N)")
        weights = self.weights(queries=slice(self.shape[2] - beams.shape[1], None))
        chosen = weights[beams.clamp_min(0), :, torch.arange(beams.shape[1], device=beams.device)]
        return (chosen * (beams >= 0)[..., None, None]).transpose(1, 2)

    @property
    def has_points(self) -> bool:
        """Whether `points` are known."""
        return self.maps is not None

    def count_points(self) -> int:
        """The number of points of all heads and queries of an example."""
        _, heads, queries, _ = self.shape
        return heads * queries * self.calls[0].call.queries.shape[-1] // 3 if self.has_points else 0

    def points(self, heads: Choice = ALL, queries: Choice = ALL) -> SamplingPoints:
        """The points of feature maps that the chosen heads and queries look at, with their weights. Raises UserError
        for a site that looks at whole places."""
        if self.maps is None:
            raise UserError(f"{self.name} looks at no points of feature maps: ask for its weights")
        return points_of(self.calls, self.maps, heads, queries)

    def choices(self) -> Int[Tensor, "B H T"]:
        """The key that each query of a hard selection chose, -1 for none. Raises UserError for soft attention."""
        if any(recorded.choice is None for recorded in self.calls):
            raise UserError(f"{self.name} has soft attention, which chooses no single key: ask for its weights")
        batch, heads, _, _ = self.shape
        return torch.cat([call.choice.reshape(batch, heads, -1) for call in self.calls], -1)  # type: ignore[union-attr]

    def output_error(self) -> float:
        """The largest difference between the recorded output and weights times values.

        It was computed while the model ran: for some rows of each call, or for all with `look(keep=["output_error"])`.
        Raises UserError if dropout changed the weights after the softmax.
        """
        if not self.errors:
            raise UserError(f"{self.name}: dropout changed the output, so weights without dropout do not reproduce it")
        return max(self.errors)

    def first_position(self, recorded: RecordedCall) -> int:
        """The position of the first query of a call among the keys of the call."""
        first = (self.calls or [recorded])[0]
        offset = first.position
        if offset is None:
            grows = self.keys is not None and self.keys.grows
            offset = first.span.length - first.count if grows else 0
        return recorded.start + offset - recorded.span.first

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=self.dtype, device=self.device)

    def _calls_with_keys(self) -> Iterator[tuple[RecordedCall, Call]]:
        """The recorded calls, each with the keys that it had."""
        if self.keys is None:
            self._require_queries("this")
        for recorded in self.calls:
            for guard in recorded.guards:
                if not guard.unchanged:
                    raise UserError(
                        f"{self.name}: a mask, bias or parameter of shape {tuple(guard.tensor.shape)} was modified in "
                        "place after the call; ask for weights before the model continues"
                    )
            keys = self.keys.read(recorded.span)  # type: ignore[union-attr]
            yield recorded, replace(recorded.call, keys=keys, values=keys[..., :0])

    def _is_measured(self, name: str, top: int) -> bool:
        """Returns whether a measure was computed before, for at least `top` keys."""
        known = [recorded.measured.get(name) for recorded in self.calls]
        return all(one is not None and (name != "top" or one.weights.shape[-1] >= top) for one in known)

    def _measure_calls(self, name: str, make: Callable[[RecordedCall], measures.Measure]) -> list[Any]:
        """The results of a measure for each call, computed now or before."""
        if all(name in recorded.measured for recorded in self.calls):
            return [recorded.measured[name] for recorded in self.calls]
        self._require_queries(name)
        return [measures.measure(call, [make(recorded)])[0] for recorded, call in self._calls_with_keys()]

    def _require_queries(self, what: str) -> None:
        if self.keys is None:
            kept = ", ".join(self.calls[0].measured)
            raise UserError(f"{self.name}: {what} needs queries and keys, but only {kept} was kept; look without keep")

    def __repr__(self) -> str:
        return f"Site({self.name!r}, {' x '.join(map(str, self.shape))})"
