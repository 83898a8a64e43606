"""Keeps the sights of the last inputs of each browser, with computed answers, within a limit of memory."""

import json
import secrets
from base64 import b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.sight.site import Site
from foveate.viewer.document import Document, Panel, TopWeights, check_finite, opening_on_picture, window_keys
from foveate.viewer.page.header import make_head
from foveate.viewer.point_panel import looks_at_points, point_panel
from foveate.viewer.protocol import LookResult
from foveate.viewer.rollout import RolloutSite, rollouts
from foveate.viewer.server import tiles
from foveate.viewer.sides import make_sides, picture_type

Span: TypeAlias = tuple[int, int]

EXACT = 2**16
"""Maps with at most this many weights are sent completely."""

TOP_KEYS = 16
"""Number of keys that are sent for each query of a larger map."""

SINGLE = 2.0**-24
"""Relative error of a number in single precision."""


@dataclass
class Session:
    """The sight of one input, with the answers that the page requests."""

    result: LookResult
    answers: "AnswerCache" = field(default_factory=lambda: AnswerCache(2**25))

    @cached_property
    def sites(self) -> dict[str, Site | RolloutSite]:
        """The sites of the sight, and after them the rollouts of its stacks."""
        sight = self.result.sight.sum_points()
        return {name: sight[name] for name in sight.sites} | rollouts(sight)

    def site(self, place: int) -> Site | RolloutSite:
        """A site by its number. Raises UserError if there is none."""
        if not 0 <= place < len(self.sites):
            raise UserError(f"there is no site {place} among {len(self.sites)}")
        return list(self.sites.values())[place]

    def document(self) -> Document:
        """The page without its numbers."""
        panels = [self._empty_panel(place) for place in range(len(self.sites))]
        if not panels:
            raise UserError("there is no site to show: nothing attended during the look")
        opening = self.result.opening or opening_on_picture(panels)
        return Document(self.result.title, panels, self.result.notes, opening=opening)

    def head(self) -> bytes:
        """The head of the page, as JSON; numbers that are not computed yet are null."""
        return head_of_page(self.document(), self.sites.values())

    def count_sent_keys(self, place: int) -> int:
        """Number of keys that are sent for each query."""
        _, _, queries, keys = self.site(place).shape
        return keys if queries * keys <= EXACT else min(keys, window_keys(self.site(place).windows) or TOP_KEYS)

    def maps(self, place: int) -> bytes:
        """The entropies and the small maps of all heads of a site."""
        site = self.site(place)
        return self._answer(place, ("maps", place), lambda: tiles.compute_overview(site))

    def rows(self, place: int, head: int, rows: Span) -> bytes:
        """Keys, weights and remaining weight of some queries."""
        site = self._site_with_head(place, head)
        kept = self.count_sent_keys(place)
        return self._answer(place, ("rows", place, head, rows), lambda: tiles.compute_rows(site, head, rows, kept))

    def tile(self, place: int, head: int, rows: Span, columns: Span, size: Span) -> bytes:
        """A map of a part of a head, at higher resolution."""
        site = self._site_with_head(place, head)
        key = ("tile", place, head, rows, columns, size)
        return self._answer(place, key, lambda: [tiles.compute_tile(site, head, rows, columns, size)])

    def points(self, place: int, head: int, rows: Span) -> bytes:
        """The points of some queries: from the left, from the top, and weights."""
        site = self._site_with_head(place, head)
        if not looks_at_points(site):
            raise UserError(f"{list(self.sites)[place]} looks at no points")
        key = ("points", place, head, rows)
        return self._answer(place, key, lambda: tiles.compute_points(site, head, rows))

    @property
    def size(self) -> int:
        """Approximate size in bytes: what the sight holds, and the answers."""
        return self._sight_size + self.answers.size

    @cached_property
    def _sight_size(self) -> int:
        """Queries and keys, and masks and biases, which layers may share; whole maps, where these are kept."""
        size, shared = 0, dict[int, Tensor]()
        for name in self.result.sight.sites:
            site = self.result.sight[name]
            examples, heads, queries, keys = site.shape
            if not site.calls:
                size += examples * heads * queries * keys * site.dtype.itemsize
                continue
            head = site.calls[0].call.queries
            size += examples * heads * (queries + keys) * head.shape[-1] * head.element_size()
            tensors = (guard.tensor for recorded in site.calls for guard in recorded.guards)
            shared |= {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}
        others = (
            tensor for tensor in shared.values() if not isinstance(tensor, nn.Parameter)
        )  # parameters belong to the model
        return size + sum(tensor.untyped_storage().nbytes() for tensor in others)

    def _answer(self, place: int, key: Any, measure: Callable[[], Iterable[np.ndarray]]) -> bytes:
        """Numbers of a site as bytes, cached. Raises UserError if they are NaN."""

        def make() -> bytes:
            values = list(measure())
            check_finite(list(self.sites)[place], *values)
            return b"".join(map(_bytes, values))

        return self.answers.get(key, make)

    def _site_with_head(self, place: int, head: int) -> Site | RolloutSite:
        site = self.site(place)
        if not 0 <= head < site.shape[1]:
            raise UserError(f"there is no head {head} among {site.shape[1]}")
        return site

    def _empty_panel(self, place: int) -> Panel:
        """A site without its numbers, for the head of the page."""
        name, site = list(self.sites.items())[place]
        _, heads, queries, keys = site.shape
        kept = self.count_sent_keys(place)
        none = np.zeros((heads, 0, kept), np.float32)
        rows = TopWeights(none.astype(np.int32), none, none[..., 0])
        rollout = isinstance(site, RolloutSite)
        last = site.layers[-1] if isinstance(site, RolloutSite) else name
        named = make_sides(self.result.tokens, last, queries, keys, site.windows)
        entropy, points = np.zeros(heads, np.float32), None
        if looks_at_points(site):
            points = point_panel(site, queries=[])
        return Panel(name, *named, rows, none[..., :0], entropy, site.windows, rollout, shows=site.shows, points=points)


def head_of_page(document: Document, sites: Iterable[Site | RolloutSite]) -> bytes:
    """The head of the page of a document without numbers, as JSON; `sites` are those of its panels."""
    found, pictures = make_head(document)
    values = asdict(found)
    for side in values["sides"]:
        if side["picture"]:
            data = pictures[side["picture"]["place"]]
            side["picture"]["url"] = f"data:{picture_type(data)};base64,{b64encode(data).decode()}"
    for head, site in zip(values["sites"], sites, strict=True):
        exact = {"precision": SINGLE, "map_precision": SINGLE, "step": tiles.sampling_step(site)}
        head |= {"entropy": [None] * head["heads"], **exact}
    return json.dumps(values, ensure_ascii=True, allow_nan=False).encode()


class AnswerCache:
    """A cache of recent answers, of limited size in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self.size = max_bytes, 0
        self._found: OrderedDict[Any, bytes] = OrderedDict()

    def get(self, key: Any, make: Callable[[], bytes]) -> bytes:
        """The answer for a key, computed if it is not cached."""
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        made = make()
        self._found[key] = made
        self.size += len(made)
        while self.size > self._max_bytes:
            self.size -= len(self._found.popitem(last=False)[1])
        return made


class KeptSession(NamedTuple):
    """A session, and the browser that began it."""

    owner: str
    session: Session


class SessionCache:
    """Sessions of several browsers by unguessable names.

    Each browser keeps its last `max_count` sessions while there are at most `max_owners` browsers. If all sessions
    together have more than `max_bytes`, the browser with the most bytes loses its oldest ones. The session that was
    used last is kept, whatever its size.
    """

    def __init__(self, max_count: int, max_bytes: int, max_owners: int) -> None:
        self._max_count, self._max_bytes, self._max_owners = max_count, max_bytes, max_owners
        self._kept: OrderedDict[str, KeptSession] = OrderedDict()
        """The session that was used last is last."""
        self._lock = Lock()
        """The worker thread adds sessions."""

    @staticmethod
    def new_name() -> str:
        """A new unguessable name."""
        return secrets.token_urlsafe(16)

    def put(self, name: str, session: Session, owner: str = "") -> None:
        """Add a session of a browser, and drop those that are then too many."""
        with self._lock:
            self._kept[name] = KeptSession(owner, session)
            self._shrink()

    def get(self, name: str) -> Session | None:
        """A session, which becomes the most recent one; None if it is not kept."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            self._shrink()  # sessions grow with their answers
            return self._kept[name].session

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._kept

    def _shrink(self) -> None:
        while name := self._surplus():
            del self._kept[name]

    def _surplus(self) -> str | None:
        """The name of a session to drop; None if all may be kept."""
        owned: dict[str, list[str]] = {}
        sizes: Counter[str] = Counter()
        for name, (owner, session) in reversed(self._kept.items()):  # the newest first, of browsers and of sessions
            owned.setdefault(owner, []).append(name)
            sizes[owner] += session.size
        for names in owned.values():
            if len(names) > self._max_count:
                return names[-1]
        if len(owned) > self._max_owners:
            return owned[list(owned)[-1]][-1]
        if sizes.total() <= self._max_bytes or len(self._kept) == 1:
            return None
        oldest = owned[max(owned, key=sizes.__getitem__)][-1]
        return oldest if oldest != next(reversed(self._kept)) else next(iter(self._kept))


def _bytes(values: np.ndarray) -> bytes:
    """Numbers in the format of typed arrays."""
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
