"""The sights that are kept for a while: the last few inputs, as many as fit, with what was measured of them."""

import json
import secrets
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.sight.site import Site
from foveate.viewer.document import Document, Panel, Rows, check_numbers, whole
from foveate.viewer.page.header import head_of
from foveate.viewer.protocol import Seen
from foveate.viewer.server import tiles
from foveate.viewer.sides import picture_type, sides

Span: TypeAlias = tuple[int, int]

EXACT = 2**16
"""A map of at most so many weights is sent as it is."""

KEPT = 16
"""So many keys of each query are sent of a larger one."""

SINGLE = 2.0**-24
"""By which part of itself a number of single precision may be off."""


@dataclass
class Shown:
    """One sight, as the page asks for it."""

    seen: Seen
    measured: "Cache" = field(default_factory=lambda: Cache(2**25))

    def site(self, place: int) -> Site:
        """A site by its number. Raises UserError where there is none."""
        names = self.seen.sight.sites
        if not 0 <= place < len(names):
            raise UserError(f"there is no site {place} among {len(names)}")
        return self.seen.sight[names[place]]

    def head(self) -> bytes:
        """What stands at the head of the page, as JSON; numbers that are not measured yet are null."""
        panels = [self._panel(name) for name in self.seen.sight.sites]
        if not panels:
            raise UserError("there is no site to show: nothing attended while it was looked at")
        found, pictures = head_of(Document(self.seen.title, panels, self.seen.notes))
        values = asdict(found)
        for side in values["sides"]:
            if side["picture"]:
                data = pictures[side["picture"]["place"]]
                side["picture"]["url"] = f"data:{picture_type(data)};base64,{b64encode(data).decode()}"
        steps = [tiles.step(self.site(place)) for place in range(len(panels))]
        for site, every in zip(values["sites"], steps, strict=True):
            site |= {"entropy": [None] * site["heads"], "precision": SINGLE, "map_precision": SINGLE, "step": every}
        return json.dumps(values, ensure_ascii=True, allow_nan=False).encode()

    def kept(self, place: int) -> int:
        """How many keys of each query the page has at once."""
        _, _, queries, keys = self.site(place).shape
        return keys if queries * keys <= EXACT else min(keys, whole(self.site(place).windows) or KEPT)

    def maps(self, place: int) -> bytes:
        """The entropies and the small maps of all heads of a site."""
        site = self.site(place)
        return self._measured(place, ("maps", place), lambda: tiles.small_maps(site))

    def rows(self, place: int, head: int, rows: Span) -> bytes:
        """Keys, weights and rest of some queries."""
        site = self._with_head(place, head)
        kept = self.kept(place)
        return self._measured(place, ("rows", place, head, rows), lambda: tiles.top(site, head, rows, kept))

    def tile(self, place: int, head: int, rows: Span, columns: Span, size: Span) -> bytes:
        """A finer map of a part of a head."""
        site = self._with_head(place, head)
        key = ("tile", place, head, rows, columns, size)
        return self._measured(place, key, lambda: [tiles.tile(site, head, rows, columns, size)])

    @property
    def size(self) -> int:
        """About how many bytes it holds: queries and keys, and masks and biases, which layers may share."""
        size, shared = 0, dict[int, Tensor]()
        for name in self.seen.sight.sites:
            site = self.seen.sight[name]
            examples, heads, queries, keys = site.shape
            head = site.calls[0].call.queries
            size += examples * heads * (queries + keys) * head.shape[-1] * head.element_size()
            tensors = (guard.tensor for recorded in site.calls for guard in recorded.guards)
            shared |= {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}
        others = (tensor for tensor in shared.values() if not isinstance(tensor, nn.Parameter))  # those are the model's
        return size + sum(tensor.untyped_storage().nbytes() for tensor in others)

    def _measured(self, place: int, key: Any, measure: Callable[[], Iterable[np.ndarray]]) -> bytes:
        """Numbers of a site, measured now if they are not known. Raises UserError where they are none."""

        def made() -> bytes:
            values = list(measure())
            check_numbers(self.seen.sight.sites[place], *values)
            return b"".join(map(_bytes, values))

        return self.measured.get(key, made)

    def _with_head(self, place: int, head: int) -> Site:
        site = self.site(place)
        if not 0 <= head < site.shape[1]:
            raise UserError(f"there is no head {head} among {site.shape[1]}")
        return site

    def _panel(self, name: str) -> Panel:
        """A site as the page's head describes it; its numbers come later."""
        site = self.seen.sight[name]
        _, heads, queries, keys = site.shape
        kept = self.kept(self.seen.sight.sites.index(name))
        none = np.zeros((heads, 0, kept), np.float32)
        rows = Rows(none.astype(np.int32), none, none[..., 0])
        named = sides(self.seen.tokens, name, queries, keys, site.windows)
        return Panel(name, *named, rows, none[..., :0], np.zeros(heads, np.float32), site.windows)


class Cache:
    """Answers that were given lately, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._found: OrderedDict[Any, bytes] = OrderedDict()

    def get(self, key: Any, make: Callable[[], bytes]) -> bytes:
        """The answer to a question, made now if it is not known."""
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        made = make()
        self._found[key] = made
        self._size += len(made)
        while self._size > self._most:
            self._size -= len(self._found.popitem(last=False)[1])
        return made


class Shelf:
    """Sights by names that nobody guesses; the last one stays however large it is."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._shown: OrderedDict[str, Shown] = OrderedDict()
        self._lock = Lock()
        """Looks are put here by a thread of their own."""

    @staticmethod
    def name() -> str:
        """A new name."""
        return secrets.token_urlsafe(16)

    def put(self, name: str, shown: Shown) -> None:
        """Keep a sight, and let go of the oldest ones where there are too many."""
        with self._lock:
            self._shown[name] = shown
            while len(self._shown) > self._most or (len(self._shown) > 1 and self._size > self._most_bytes):
                self._shown.popitem(last=False)

    def get(self, name: str) -> Shown | None:
        """A sight that is kept, which becomes the youngest."""
        with self._lock:
            if name in self._shown:
                self._shown.move_to_end(name)
            return self._shown.get(name)

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._shown

    @property
    def _size(self) -> int:
        return sum(shown.size for shown in self._shown.values())


def _bytes(values: np.ndarray) -> bytes:
    """Numbers as a browser's typed arrays have them."""
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
