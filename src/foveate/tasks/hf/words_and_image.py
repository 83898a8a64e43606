"""One look at a model of transformers that reads an image and a text: its sites, and their names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from foveate.contracts import Picture
from foveate.forms.form import MapRow
from foveate.forms.image import draw_over
from foveate.forms.processed_image import ProcessedInputs
from foveate.sight import Sight
from foveate.sight.chain import Chain
from foveate.sight.measured_look import OF_WEIGHTS
from foveate.sight.parts import Parts
from foveate.tasks.effects import InputPlaces, ShownPlaces
from foveate.tasks.hf.image_places import Origin, TokenGrid, find_regions, seen_part
from foveate.viewer.protocol import Opening
from foveate.viewer.sides import Image, Side, SideNames, SidePair

WORDS = "words"
"""The part of a sequence that is read behind the image, and what is written."""

CROSS = re.compile(r"cross|encoder_attn")
"""What names of attention to an encoder's output have in them."""

LEARNED = "queries"
"""The part of a sequence that is learned queries, each of which has read the whole image."""

THROUGH = "Words look at learned queries. Their maps of the image are products with that of {}, mean of its heads."

SEPARATE = "{} and similar modules read the parts of the image one by one; the first part is shown."


class Tokens(NamedTuple):
    """The tokens that a part of a model reads."""

    names: Sequence[str]
    words: Sequence[tuple[int, str]]
    """The positions that are words, and what they are called: those read behind the image, then those that write the
    answer, each of which is the token before its word."""
    image: Sequence[int] = ()
    """The positions that are the image."""


class Over(NamedTuple):
    """A site whose words look at an image."""

    tokens: Tokens
    """Of its queries."""
    grids: Sequence[TokenGrid]
    behind: str | None = None
    """The site in which what the words look at has looked at the grid; None where they look at it themselves."""
    queries: Sequence[int] = ()
    """The positions of what has looked at the grid."""

    @property
    def cut(self) -> tuple[Parts, Parts]:
        """The words and the grids, as parts of the site."""
        words = [place for place, _ in self.tokens.words]
        keys = {LEARNED: self.queries} if self.behind else {grid.name: grid.places for grid in self.grids}
        return {WORDS: words}, keys


@dataclass
class WordsAndImage:
    """What a model read and wrote, and where it looked meanwhile."""

    recorded: Sight
    prepared: ProcessedInputs
    written: Sequence[int]
    """The tokens of the answer."""
    pieces: Sequence[str]
    """The names of the tokens that were read, then of those that were written."""
    config: Any
    origin: Origin | None
    """Where in the image the numbers come from that the model read."""
    picture: np.ndarray
    """The image (h, w, C), upright."""
    whole: Sight | None = None
    """All sites with their weights, where `recorded` has stacks of them in place."""

    @cached_property
    def read(self) -> Tokens:
        """What is read: behind it comes the answer, but in a model whose decoder is apart."""
        apart = self.config.is_encoder_decoder
        pieces = self.pieces[: len(self.pieces) - len(self.written)] if apart else self.pieces
        total = max(len(pieces), 0 if apart else self._longest)
        image = self._image_tokens(total - len(pieces))
        spare = total - len(pieces)  # places of an image without tokens of their own
        numbers = {place: number for number, place in enumerate(image, 1)}
        names = [f"[IMAGE {numbers[place]}]" if place in numbers else pieces[place - spare] for place in range(total)]
        answer = 0 if apart else len(self.written)
        behind = range(1 + max(image, default=-1), total - answer - (answer > 0))
        words = [(place, names[place]) for place in behind]
        return Tokens(names, [*words, *((place - 1, names[place]) for place in range(total - answer, total))], image)

    @cached_property
    def decoded(self) -> Tokens:
        """What a decoder reads that is apart from what reads the input: a start, and the answer."""
        answer = self.pieces[len(self.pieces) - len(self.written) :]
        return Tokens(["[START]", *answer], [*enumerate(answer)])

    @cached_property
    def sight(self) -> Sight:
        """All sites: first, of each that reads image and text, its words over the image; patches row by row."""
        parts = [self._only([name]).part({_exactly(name): over.cut}) for name, over in self._over.items()]
        sites = {site.name: site for part in parts for site in part}
        for name, over in self._over.items():
            if over.behind:
                first, (grid,) = sites.pop(f"{name}.{WORDS}-{LEARNED}"), over.grids
                chain = Chain(f"{name}.{WORDS}-{grid.name}", first, self.recorded[over.behind], grid.places)
                sites[chain.name] = chain
        orders = {_exactly(name): {"image": grid.places} for name, grid in self._patches.items() if _moved(grid)}
        rest = self.recorded.part(orders) if orders else self.recorded
        return Sight({**sites, **{site.name: site for site in rest}}, self.recorded.notes)

    @cached_property
    def names(self) -> dict[str, SidePair]:
        """The names of the queries and keys of each site."""
        found: dict[str, SidePair] = {
            name: (self._named(name, 0), self._named(name, 1)) for name in self.recorded.sites
        }
        for name, grid in self._patches.items():
            if _moved(grid):
                found[f"{name}.image-image"] = self._picture(grid)
        for name, over in self._over.items():
            words = [word for _, word in over.tokens.words]
            found |= {f"{name}.{WORDS}-{grid.name}": (words, self._picture(grid)) for grid in over.grids}
        return {name: found[name] for name in self.sight.sites}

    @property
    def notes(self) -> list[str]:
        separate = [name for name in self.sight.sites if self.sight[name].shape[0] > 1]
        behind = {over.behind for over in self._over.values() if over.behind}
        return [
            *([SEPARATE.format(separate[0])] if separate else []),
            *(THROUGH.format(name) for name in behind),
            *self.sight.notes,
        ]

    @cached_property
    def rows(self) -> list[MapRow]:
        """Where each token of the answer looked in the image, in the layer that looks most decidedly."""
        maps = {
            f"{name}.{WORDS}-{over.grids[0].name}": over.tokens.words[-len(self.written) :]
            for name, over in self._over.items()
            if self.written and over.tokens is self._writer
        }
        weights = {name: self.sight[name].weights()[0].float().cpu().mean(0)[-len(self.written) :] for name in maps}
        if not weights:
            return []
        site = max(weights, key=lambda name: float(weights[name].amax(-1).mean()))
        return [MapRow(word, row, site=site) for (_, word), row in zip(maps[site], weights[site], strict=True)]

    @property
    def input_places(self) -> list[InputPlaces]:
        """What was read, words and the cells of the image: the keys of what reads both, and of what reads images."""
        keyed = {name: self._tokens(name)[1] for name in self.recorded.sites if "#" not in name}
        both = [name for name, keys in keyed.items() if keys is self.read]
        over = [name for name, keys in keyed.items() if keys is None and name in self._over]
        found = [self._places_of(sites) for sites in (both, over) if sites]
        return [own for own in found if own.keys]

    def _places_of(self, sites: Sequence[str]) -> InputPlaces:
        """The places that these sites have as keys, the cells of each grid together."""
        first = next((name for name in sites if name in self._over), sites[0])
        over = self._over.get(first)
        grids = [] if over is None or over.behind else over.grids
        shown = [
            ShownPlaces(
                f"{first}.{WORDS}-{grid.name}",
                Side(len(grid.places), (), self._picture(grid)),
                range(len(grid.places)),
                grid.places,
            )
            for grid in grids
        ]
        if self._tokens(first)[1] is self.read:
            names, answer = self.read.names, 0 if self.config.is_encoder_decoder else len(self.written)
            inside = {place for grid in grids for place in grid.places}
            words = [place for place in range(len(names) - answer) if place not in inside]
            shown.insert(0, ShownPlaces(first, Side(len(names), tuple(names)), words, words))
        return InputPlaces(sites, shown)

    @property
    def opening(self) -> Opening | None:
        """The first word of the answer, where the model looks most decidedly."""
        if not self.rows:
            return None
        return Opening(self.rows[0].site, len(self._writer.words) - len(self.written))

    def draw(self, title: str) -> Picture | None:
        """The image once for each word of the answer; None where its tokens are no places."""
        if not self.rows:
            return None
        of = next(over for name, over in self._over.items() if self.rows[0].site.startswith(f"{name}.{WORDS}-"))
        grid = of.grids[0].rows, of.grids[0].columns, 0
        return draw_over(seen_part(self.picture, of.grids[0].box), self.rows, title, lambda places: grid)

    @property
    def _writer(self) -> Tokens:
        return self.decoded if self.config.is_encoder_decoder else self.read

    @cached_property
    def _longest(self) -> int:
        """How many tokens a part that writes reads: as many as the most that see each other."""
        sizes = [self.recorded[name].shape[2:] for name in self.recorded.sites if not _of_images(name)]
        return max((queries for queries, keys in sizes if queries == keys), default=0)

    def _image_tokens(self, spare: int) -> list[int]:
        """Which of all that is read are of the image."""
        number = getattr(self.config, "image_token_id", None) or getattr(self.config, "image_token_index", None)
        before = self.prepared.inputs["input_ids"][0].tolist() if "input_ids" in self.prepared.inputs else []
        found = [place for place, token in enumerate(before) if token == number]
        return found or list(range(spare))

    def _tokens(self, name: str) -> tuple[Tokens | None, Tokens | None]:
        """The tokens that the queries and the keys of a site are; None for what else they are."""
        if _of_images(name):
            return None, None
        of = self.recorded if self.whole is None or name in self.recorded.sites else self.whole
        queries, keys = of[name].shape[2:]
        if not self.config.is_encoder_decoder:
            return tuple(self.read if count == len(self.read.names) else None for count in (queries, keys))  # type: ignore[return-value]
        if "decoder" not in name.split("."):
            return (self.read, self.read) if queries == keys == len(self.read.names) else (None, None)
        across = queries != keys or CROSS.search(name.rpartition("decoder")[2])
        along = self.read if keys == len(self.read.names) else None
        return self.decoded, along if across else self.decoded

    @cached_property
    def _over(self) -> dict[str, "Over"]:
        """The sites whose queries are words and whose keys are, among others, the image."""
        found = {}
        for name in self.recorded.sites:
            queries, keys = self._tokens(name)
            if queries is not None and queries.words and keys is not self.decoded:
                places = keys.image if keys is not None else range(self.recorded[name].shape[3])
                if not self._learned and (grids := find_regions(places, self.origin, self.config)):
                    found[name] = Over(queries, grids)
                elif self._learned and keys is not None and (grid := self._behind_queries(len(places))):
                    found[name] = Over(queries, [grid], self._learned[-1], places)
        return found

    @cached_property
    def _learned(self) -> list[str]:
        """The sites in which learned queries read the image: the tokens of the image are no places then."""
        count = len(self.read.image)
        each = {count, count // (self.origin.tiles if self.origin is not None else 1)}
        whole = self.recorded if self.whole is None else self.whole
        shapes = {name: whole[name].shape[2:] for name in whole.sites}
        return [
            name
            for name, (queries, keys) in shapes.items()
            if self._tokens(name) == (None, None) and queries in each and keys > queries
        ]

    def _behind_queries(self, count: int) -> TokenGrid | None:
        """The patches that learned queries read; None if the image has several parts, or more is read with it, and for
        maps that are no shares: only of these does a product say what the words see through the queries."""
        reader = self.recorded[self._learned[-1]] if self.whole is None else None
        if reader is None or getattr(reader, "shows", "weights") not in OF_WEIGHTS:
            return None
        examples, _, queries, keys = reader.shape
        return self._patch_grid(examples, keys) if (examples, queries) == (1, count) else None

    @cached_property
    def _patches(self) -> dict[str, TokenGrid]:
        """The sites of which both sides are the patches of the image, or of its first part."""
        found = {}
        for name in self.recorded.sites:
            examples, _, queries, keys = self.recorded[name].shape
            if self._tokens(name) == (None, None) and queries == keys and (grid := self._patch_grid(examples, keys)):
                found[name] = grid
        return found

    def _patch_grid(self, examples: int, count: int) -> TokenGrid | None:
        origin = self.origin
        if origin is None or examples not in (1, origin.tiles) or _windowed(self.config):
            return None
        if origin.across.ndim == 1 and count != len(origin.across):
            return None
        first = Origin(origin.across[:1], origin.down[:1]) if origin.across.ndim > 1 and examples > 1 else origin
        return next(iter(find_regions(range(count), first, None)), None)

    def _named(self, name: str, side: int) -> SideNames:
        tokens = self._tokens(name)[side]
        if tokens is not None:
            return tokens.names
        examples, _, *counts = self.recorded[name].shape
        if self._learned and counts[side] == len(self.read.image):
            return [f"[IMAGE {number + 1}]" for number in range(counts[side])]
        grid = self._patch_grid(examples, counts[side])
        if grid is None or _moved(grid):
            return None
        return self._picture(grid, ["[CLASS]"][: grid.places[0]])

    def _picture(self, grid: TokenGrid, before: Sequence[str] = ()) -> Image:
        return Image.of(seen_part(self.picture, grid.box), grid.rows, grid.columns, before)

    def _only(self, names: Iterable[str]) -> Sight:
        return Sight({name: self.recorded[name] for name in names}, self.recorded.notes)


def _moved(grid: TokenGrid) -> bool:
    """Whether the tokens of a grid are in another order than row by row."""
    return grid.places != tuple(range(grid.places[0], grid.places[0] + len(grid.places)))


def _windowed(config: Any) -> bool:
    """Whether an encoder reads patches in windows: their order is its own."""
    return bool(getattr(getattr(config, "vision_config", None), "window_size", 0))


def _of_images(site: str) -> bool:
    """Whether a site is of what encodes images."""
    return "vision" in site or "visual" in site or "image" in site


def _exactly(name: str) -> str:
    """A pattern that this name alone fits."""
    return name.replace("[", "[[]")
