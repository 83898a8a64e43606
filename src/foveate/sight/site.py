"""One map of attention: which module made it, and all that can be asked of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.call import Call
from foveate.errors import UserError, at_least
from foveate.sight import measures
from foveate.sight.blocks import exact
from foveate.sight.key_measures import CELLS, cells
from foveate.sight.key_store import Keys
from foveate.sight.layouts import Windows
from foveate.sight.measures import ALL, Choice, Top, places
from foveate.sight.recorded_call import Rows

BLOCK = 2**21
"""How many weights are pooled at once."""


class Site:
    """A module that attends, and the map that it made, (B, H, T, S): examples, heads, queries, keys.

    A decoder that attends once for each step has one map: its rows are the steps, and keys that a step did not have yet
    count as not looked at.
    """

    windows: tuple[Windows, Windows] | None = None
    """Where queries and keys of windows stand in the picture, once they are put back (`Sight.put_back`)."""

    def __init__(self, name: str, keys: Keys | None) -> None:
        self.name = name
        self.keys = keys
        """The keys of the map; None where only measures were kept."""
        self.newest: Tensor | None = None
        """The last key of its last call, (B, ..., D), where keys are not kept."""
        self.rows: list[Rows] = []
        self.errors: list[float] = []

    @property
    def count(self) -> int:
        """How many rows it has so far."""
        return self.rows[-1].start + self.rows[-1].count if self.rows else 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, H, T, S)."""
        leading = self.rows[0].call.leading or torch.Size([1])
        return leading[0], leading[1:].numel(), self.count, max(rows.end for rows in self.rows)

    @property
    def with_sinks(self) -> bool:
        """Whether a place without a value takes part of the weights (see `attention.Soft`)."""
        return self.rows[0].call.select.sinks is not None

    @property
    def device(self) -> torch.device:
        """Where all that it tells is computed: where the model was."""
        return self.rows[0].call.queries.device

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        """The weights of the chosen heads, queries and keys: the softmax that made the output, before any dropout.

        Of a hard selection they are the chances of each place; `choices` says which was taken.
        """
        if len(self.rows) == 1:
            ((_, call),) = self._calls()
            return measures.weights(call, heads, queries, keys)
        batch, head_count, row_count, key_count = self.shape
        heads, queries, keys = places(heads, head_count), places(queries, row_count), places(keys, key_count)
        found = self._zeros(batch, len(heads), len(queries), len(keys))
        for rows, call in self._calls():
            over = [place for place, query in enumerate(queries) if 0 <= query - rows.start < rows.count]
            along = [place for place, key in enumerate(keys) if rows.span.first <= key < rows.end]
            if over and along:
                chosen_queries = [queries[place] - rows.start for place in over]
                chosen_keys = [keys[place] - rows.span.first for place in along]
                part = measures.weights(call, heads, chosen_queries, chosen_keys)
                found[:, :, torch.tensor(over)[:, None], torch.tensor(along)] = part.to(found.dtype)
        return found

    def measure(self, *names: str, top: int = 8) -> None:
        """Take several measures at once ("received", "top", ...): each is then known when it is asked for.

        That takes little longer than one of them alone, since all share the weights.
        """
        missing = [name for name in measures.check_names(names) if not self._known(name, top)]
        for rows, call in self._calls() if missing else ():
            self.take(rows, call, missing, top)

    def take(self, rows: Rows, call: Call, names: Sequence[str], top: int = 8) -> None:
        """Take measures of one call with its keys, in one pass."""
        made = measures.MEASURES | {"top": lambda _: measures.TopKeys(top)}
        taken = [made[name](self.place(rows)) for name in names]
        rows.measured |= dict(zip(names, measures.measure(call, taken), strict=True))

    def top(self, k: int = 8) -> Top:
        """The k keys that each query looks at most, (B, H, T, k): their weights, descending, and their places.

        Where there are fewer to look at, the weight is 0 and the place -1.
        """
        at_least(1, "k", k)
        found = self._each("top" if self._known("top", k) else f"top {k}", lambda rows: measures.TopKeys(k))
        firsts = [rows.span.first for rows in self.rows]
        keys = [part.keys + first * (part.keys >= 0) for part, first in zip(found, firsts, strict=True)]
        return Top(torch.cat([part.weights for part in found], 2)[..., :k], torch.cat(keys, 2)[..., :k])

    def entropy(self) -> Float[Tensor, "B H T"]:
        """The entropy of each query's weights, in nats: 0 for one key alone, log S for all alike."""
        return torch.cat(self._each("entropy", lambda rows: measures.Entropy()), -1)

    def max(self) -> Float[Tensor, "B H T"]:
        """The largest weight of each query."""
        return torch.cat(self._each("max", lambda rows: measures.Max()), -1)

    def distance(self) -> Float[Tensor, "B H T"]:
        """How far each query looks: the mean distance of the keys from its own place, by their weights.

        Where each query brought its own key, the last query stands at the last key, else the first at the first.
        """
        return torch.cat(self._each("distance", lambda rows: measures.Distance(self.place(rows))), -1)

    def received(self) -> Float[Tensor, "B H S"]:
        """How much each key was looked at: the sum of its weights over all queries."""
        batch, heads, _, count = self.shape
        parts = self._each("received", lambda rows: measures.Received())
        total = parts[0].new_zeros(batch, heads, count)
        for rows, part in zip(self.rows, parts, strict=True):
            total[..., rows.span.first : rows.end] += part
        return total

    def carried(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        """What becomes of shares of the queries: they times the mean of the heads' weights."""
        total = shares.new_zeros(*shares.shape[:2], self.shape[3])
        for rows, call in self._calls():
            part = shares[..., rows.start : rows.start + rows.count]
            total[..., rows.span.first : rows.end] += measures.measure(call, [measures.Carried(part)])[0]
        return total

    def pooled(self, rows: int = CELLS, columns: int = CELLS) -> Float[Tensor, "B H rows columns"]:
        """A small exact map of a long one: for each cell, how much its queries look at its keys, as their mean.

        The n-th of r cells over T places begins at floor(n T / r). There are at most as many cells as places.
        """
        at_least(1, "the number of cells", min(rows, columns))
        if len(self.rows) == 1:
            known = "pooled" if rows == columns == CELLS else f"pooled to {rows} x {columns}"
            (found,) = self._each(known, lambda _: measures.Pooled(rows, columns))
            return found
        batch, heads, row_count, key_count = self.shape
        rows, columns = min(rows, row_count), min(columns, key_count)
        self._queries_needed("pooled")
        over, along = cells(row_count, rows, self.device), cells(key_count, columns, self.device)
        total = self._zeros(batch, heads, rows, columns)
        height = max(1, BLOCK // (batch * heads * key_count))
        for start in range(0, row_count, height):
            weights = self.weights(queries=slice(start, start + height))
            summed = weights.new_zeros(*weights.shape[:-1], columns).index_add_(-1, along, weights)
            total.index_add_(-2, over[start : start + height], summed)
        return total / over.bincount()[:, None]

    def along(self, beams: Int[Tensor, "R N"]) -> Float[Tensor, "R H N S"]:
        """The weights of the texts that a beam search ended with: for each text and token, of the beam that wrote it.

        `beams` says which beam that was, of all in the batch: what transformers' `generate` returns as `beam_indices`.
        The last N rows of the map are those tokens'; where a text has ended, the beam is -1 and nothing is looked at.
        """
        weights = self.weights(queries=slice(self.shape[2] - beams.shape[1], None))
        found = weights[beams.clamp_min(0), :, torch.arange(beams.shape[1], device=beams.device)]
        return (found * (beams >= 0)[..., None, None]).transpose(1, 2)

    def choices(self) -> Int[Tensor, "B H T"]:
        """The place that each query of a hard selection took, -1 for nowhere. Raises UserError for soft attention."""
        if any(rows.choice is None for rows in self.rows):
            raise UserError(f"{self.name} takes from all places, by `weights`; only hard attention chooses one")
        batch, heads, _, _ = self.shape
        return torch.cat([rows.choice.reshape(batch, heads, -1) for rows in self.rows], -1)  # type: ignore[union-attr]

    def output_error(self) -> float:
        """The largest difference between the output that was recorded and the weights times the values.

        It was computed while the model ran: for some rows of each call, or for all with `look(keep=["output_error"])`.
        Raises UserError where dropout changed the weights behind what `weights` shows.
        """
        if not self.errors:
            raise UserError(f"{self.name}: dropout changed the output, so the weights before it do not make it again")
        return max(self.errors)

    def place(self, rows: Rows) -> int:
        """Which of the keys of a call stands where its first query does; they count from 0, whatever went before."""
        first = (self.rows or [rows])[0]
        own = self.keys is not None and self.keys.grows
        return rows.start + (first.span.length - first.count if own else 0) - rows.span.first

    def _zeros(self, *shape: int) -> Tensor:
        """Room for weights, as exact as those of one call."""
        return torch.zeros(*shape, dtype=exact(self.rows[0].call), device=self.device)

    def _calls(self) -> Iterator[tuple[Rows, Call]]:
        """The calls that made the map, each with the keys that it had."""
        if self.keys is None:
            self._queries_needed("this")
        for rows in self.rows:
            for lent in rows.lent:
                if not lent.holds:
                    raise UserError(
                        f"{self.name}: a mask, bias or parameter of shape {tuple(lent.tensor.shape)} that it attended "
                        "by has been written to since; ask before the model goes on"
                    )
            keys = self.keys.at(rows.span)  # type: ignore[union-attr]
            yield rows, replace(rows.call, keys=keys, values=keys[..., :0])

    def _known(self, name: str, top: int) -> bool:
        """Whether a measure was taken before, and for as many keys as are wanted."""
        known = [rows.measured.get(name) for rows in self.rows]
        return all(one is not None and (name != "top" or one.weights.shape[-1] >= top) for one in known)

    def _each(self, name: str, measure: Callable[[Rows], measures.Measure]) -> list[Any]:
        """A measure of each call, taken now or before."""
        if all(name in rows.measured for rows in self.rows):
            return [rows.measured[name] for rows in self.rows]
        self._queries_needed(name)
        return [measures.measure(call, [measure(rows)])[0] for rows, call in self._calls()]

    def _queries_needed(self, what: str) -> None:
        if self.keys is None:
            kept = ", ".join(self.rows[0].measured)
            raise UserError(f"{self.name}: {what} needs queries and keys, but only {kept} was kept; look without keep")

    def __repr__(self) -> str:
        return f"Site({self.name!r}, {' x '.join(map(str, self.shape))})"
