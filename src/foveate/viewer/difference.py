"""The page of a difference: of two looks at the same sites, whose tokens are aligned."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from foveate.errors import UserError
from foveate.sight import Sight
from foveate.sight.difference import DifferenceSite, Pairs
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Side, SideNames, SidePair, make_sides

ADDED, REMOVED, CHANGED = "+ ", "− ", " → "


def subtract(first: LookResult, second: LookResult) -> LookResult:
    """What the second looks at more than the first, at the sites that both have.

    Tokens are aligned as in a comparison of texts: equal ones, and as many that differ between them, stand for each
    other ("cat → dog"). A key that only one has is marked + or −, and counts as without weight in the other; a query
    that only one has is left out. Images and sounds are compared place by place. Raises UserError where the looks have
    no site in common.
    """
    found: dict[str, DifferenceSite] = {}
    names: dict[str, SidePair] = {}
    left_out = 0
    for site in first.sight:
        if site.name not in second.sight.sites or second.sight[site.name].shape[1] != site.shape[1]:
            continue
        other = second.sight[site.name]
        sides = [make_sides(look.tokens, site.name, *of.shape[2:]) for look, of in ((first, site), (second, other))]
        queries, keys = (align(*pair) for pair in zip(*sides, strict=True))
        if queries is None or keys is None:
            continue
        made = DifferenceSite(site, other, queries, keys)
        if made.count:
            left_out = max(left_out, len(queries) - made.count)
            found[site.name] = made
            both = [pair for pair in queries if None not in pair]
            names[site.name] = (_names(both, *(one[0] for one in sides)), _names(keys, *(one[1] for one in sides)))
    if not found:
        raise UserError("these looks have no site in common whose tokens could be aligned: leave out difference")
    notes = [*dict.fromkeys([*first.notes, *second.notes])]
    how = "Difference: the weights of B less those of A, aligned by their tokens."
    more = f" {left_out} queries that only one has are left out." if left_out else ""
    title = first.title if first.title == second.title else f"A: {first.title} · B: {second.title}"
    made_of = {"sight": Sight(dict(found), []), "tokens": names, "notes": [*notes, how + more], "opening": None}
    return replace(first, title=title, **made_of)  # type: ignore[arg-type]


def align(first: Side, second: Side) -> Pairs | None:
    """Which places of two sides stand for each other; None for sides that cannot be compared."""
    if first.picture is not None or second.picture is not None or not (first.labels and second.labels):
        return [(place, place) for place in range(first.count)] if first.count == second.count else None
    found: list[tuple[int | None, int | None]] = []
    matcher = SequenceMatcher(None, first.labels, second.labels, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        ones, others = [*range(start, end)], [*range(other_start, other_end)]
        shared = min(len(ones), len(others))
        found += zip(ones[:shared], others[:shared], strict=True)
        found += [(one, None) for one in ones[shared:]] + [(None, other) for other in others[shared:]]
    return found


def _names(pairs: Pairs, first: Side, second: Side) -> SideNames:
    """What to call aligned places: an image or a sound is that of the first."""
    if first.picture is not None:
        return first.picture
    return [_name(one, other, first.labels, second.labels) for one, other in pairs] if first.labels else None


def _name(one: int | None, other: int | None, first: Sequence[str], second: Sequence[str]) -> str:
    if one is None:
        return f"{ADDED}{second[other or 0]}"
    if other is None:
        return f"{REMOVED}{first[one]}"
    return first[one] if first[one] == second[other] else f"{first[one]}{CHANGED}{second[other]}"
