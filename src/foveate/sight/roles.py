"""Heads by what they do: what each one looks at is compared with patterns that heads are known to have.

A score is the mean weight on the keys that a pattern means, over the queries that have any: 0 to 1. Clark et al. 2019
(https://arxiv.org/abs/1906.04341) describe heads for previous and next tokens and delimiters, Olsson et al. 2022
(https://arxiv.org/abs/2209.11895) induction, and Voita et al. 2019 (https://arxiv.org/abs/1905.09418) positions.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.errors import MOST, UserError, of_kind, one_of, whole_number
from foveate.sight.measures import resolve_choice
from foveate.sight.site import Site

Pattern = Callable[[Int[Tensor, "B T"], range, Bool[Tensor, "B S"]], Bool[Tensor, "B t S"]]
"""The keys that some rows of a text mean, from its tokens and which of them are delimiters."""

ALIGNMENT = "alignment"


@dataclass(frozen=True)
class Roles:
    """The score of each head for each role."""

    scores: Mapping[str, Mapping[str, Float[Tensor, "H"]]]
    """By role and site."""
    even: Mapping[str, float]
    """By role, the score of a head that looks evenly at all keys."""

    def largest(self, role: str, count: int | None = 5) -> list[tuple[str, int, float]]:
        """Site, head and score of those that play a role the most; None: of all. Raises UserError for no role."""
        one_of("role", role, self.scores)
        count = None if count is None else whole_number("count", count)
        found = [
            (site, head, score) for site, of in self.scores[role].items() for head, score in enumerate(of.tolist())
        ]
        return sorted(found, key=lambda each: -each[2])[:count]

    def of(self, site: str, head: int, above: float = 0.3) -> dict[str, float]:
        """The roles of a head with at least this score, and twice that of an even head; the largest first."""
        heads = {name: len(scores) for sites in self.scores.values() for name, scores in sites.items()}
        one_of("site", site, heads)
        (head,) = resolve_choice(whole_number("head", head, least=-MOST), heads[site])
        found = {role: float(sites[site][head]) for role, sites in self.scores.items() if site in sites}
        least = {role: max(above, 2 * self.even[role]) for role in found}
        return {role: score for role, score in sorted(found.items(), key=lambda each: -each[1]) if score >= least[role]}


def roles(sites: Sequence[Site], tokens: Any, delimiters: Collection[Any] = ()) -> Roles:
    """What the heads of some sites do with a text of `tokens`, (B, T) or a list for one example: ids or texts.

    Self-attention has the roles "previous", "next", "first", "same" (an equal token elsewhere), "induction" (behind an
    earlier equal token) and "delimiter" (one of `delimiters`); "alignment" is that of sites whose queries are other
    things than their keys, as words and a sound: how much weight lies on one path that goes forward. Raises
    UserError where no site reads the text.
    """
    ids = _ids(tokens)
    cuts = _is_one_of(tokens, delimiters, ids)
    scores: dict[str, dict[str, Tensor]] = {}
    even = {role: _share(pattern, ids, cuts) for role, pattern in PATTERNS.items()}
    for site in sites:
        examples, _, rows, columns = site.shape
        if rows == columns == ids.shape[1] and examples == len(ids):
            for role, found in _pattern_scores(site, ids.to(site.device), cuts.to(site.device)).items():
                scores.setdefault(role, {})[site.name] = found
        elif rows != columns:
            scores.setdefault(ALIGNMENT, {})[site.name] = alignment_score(site).mean(0)
            even[ALIGNMENT] = 1 / columns
    if not scores:
        raise UserError(f"no site attends from {len(ids)} x {ids.shape[1]} tokens to the same, or to anything else")
    return Roles(scores, even)


def alignment_score(site: Site, first: int = 0, keys: int | None = None) -> Float[Tensor, "B H"]:
    """How much of its attention each head has on one path that goes forward only, times how much of the keys that path
    passes: 1 for a head that reads evenly from the first to the last key.

    Rows before `first` and keys from `keys` on are left out. A query may stay at the key of the one before it.
    """
    examples, heads, rows, columns = site.shape
    columns = columns if keys is None else min(keys, columns)
    best = origin = None
    for start in range(first, rows, site.rows_at_once):
        block = site.weights(queries=slice(start, min(rows, start + site.rows_at_once)), keys=slice(0, columns))
        for row in block.unbind(2):
            if best is None or origin is None:
                best, origin = row, torch.arange(columns, device=row.device).expand_as(row)
                continue
            best, place = best.cummax(-1)
            best, origin = best + row, origin.gather(-1, place)
    if best is None or origin is None:
        return torch.zeros(examples, heads)
    total, end = best.max(-1)
    passed = (end - origin.gather(-1, end[..., None])[..., 0] + 1) / columns
    return total / (rows - first) * passed


def _pattern_scores(site: Site, ids: Int[Tensor, "B T"], cuts: Bool[Tensor, "B T"]) -> dict[str, Float[Tensor, "H"]]:
    """The score of each head of self-attention for each pattern that some query has keys of."""
    count, height = ids.shape[1], site.rows_at_once
    totals = {role: torch.zeros(site.shape[1], device=site.device) for role in PATTERNS}
    counted = dict.fromkeys(PATTERNS, 0)
    for start in range(0, count, height):
        rows = range(start, min(count, start + height))
        weights = site.weights(queries=slice(rows.start, rows.stop))
        for role, pattern in PATTERNS.items():
            meant = pattern(ids, rows, cuts)
            totals[role] += (weights * meant[:, None]).sum((0, 2, 3)).float()
            counted[role] += int(meant.any(-1).sum())
    return {role: total / counted[role] for role, total in totals.items() if counted[role]}


def _share(pattern: Pattern, ids: Int[Tensor, "B T"], cuts: Bool[Tensor, "B T"]) -> float:
    """The share of the keys that a pattern means, of the queries that have any."""
    meant = pattern(ids, range(ids.shape[1]), cuts)
    return float(meant[meant.any(-1)].float().mean()) if meant.any() else 0.0


def _at(offset: int) -> Pattern:
    def pattern(ids: Tensor, rows: range, cuts: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        meant = places == torch.tensor(rows, device=ids.device)[:, None] + offset
        return meant.expand(len(ids), -1, -1)

    return pattern


def _first(ids: Tensor, rows: range, cuts: Tensor) -> Tensor:
    meant = torch.zeros(len(ids), len(rows), ids.shape[1], dtype=torch.bool, device=ids.device)
    meant[..., 0] = torch.tensor(rows, device=ids.device) > 0
    return meant


def _same(ids: Tensor, rows: range, cuts: Tensor) -> Tensor:
    equal = ids[:, rows.start : rows.stop, None] == ids[:, None]
    return equal & ~_at(0)(ids, rows, cuts)


def _induction(ids: Tensor, rows: range, cuts: Tensor) -> Tensor:
    """Keys behind an earlier token that equals the query's; a token that comes twice in a row is its own."""
    equal = ids[:, rows.start : rows.stop, None] == ids[:, None]
    behind = torch.nn.functional.pad(equal, (1, 0))[..., :-1]
    places = torch.arange(ids.shape[1], device=ids.device)
    return behind & (places < torch.tensor(rows, device=ids.device)[:, None])


def _delimiter(ids: Tensor, rows: range, cuts: Tensor) -> Tensor:
    return cuts[:, None].expand(-1, len(rows), -1) & ~_at(0)(ids, rows, cuts)


PATTERNS: dict[str, Pattern] = {
    "previous": _at(-1),
    "next": _at(1),
    "first": _first,
    "same": _same,
    "induction": _induction,
    "delimiter": _delimiter,
}
"""What a role means, by its name."""


def _ids(tokens: Any) -> Int[Tensor, "B T"]:
    """Numbers of tokens; texts are numbered in their order."""
    if isinstance(tokens, Sequence) and tokens and all(isinstance(token, str) for token in tokens):
        known = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
        return torch.tensor([[known[token] for token in tokens]])
    try:
        ids = torch.as_tensor(tokens)
    except (TypeError, ValueError, RuntimeError):
        ids = torch.zeros(())
    if ids.ndim not in (1, 2) or ids.is_floating_point():
        raise UserError("tokens are ids (B, T), or a list of ids or texts for one example")
    return ids if ids.ndim == 2 else ids[None]


def _is_one_of(tokens: Any, delimiters: Collection[Any], ids: Int[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    of_kind((list, tuple, set, frozenset, str), "delimiters", delimiters, "several ids or texts")
    if isinstance(tokens, Sequence) and tokens and isinstance(tokens[0], str):
        return torch.tensor([[token.strip() in delimiters for token in tokens]])
    wanted = torch.tensor([whole_number("a delimiter", number) for number in delimiters], dtype=ids.dtype)
    return torch.isin(ids, wanted.to(ids.device))
