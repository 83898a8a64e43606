"""The viewer of transformers' video models: frames, rows and columns as the axis of a map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveate.contracts import Picture
from foveate.forms.inputs import check_length, open_frames, require_file
from foveate.sight import Sight
from foveate.sight.measured_look import finished
from foveate.sight.sequences import JoinedSequences
from foveate.sight.site import Site
from foveate.tasks.viewers.images import ImagePreprocessor
from foveate.tasks.viewers.one_pass import look_and_predict
from foveate.viewer.figures import plot_film
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import Image, SidePair

FILM, CLASS = "film", "class"
"""The parts of a sequence: the patches of all frames, and the class token before them."""

ABOUT = "Frames stand beside each other, in lines from the left to the right."


@dataclass(frozen=True)
class Film:
    """The places that a video model reads."""

    frames: int
    """Number of steps in time, of which each may be several frames."""
    rows: int
    columns: int

    @property
    def across(self) -> int:
        """Number of frames beside each other: the frames are a grid that is at least as wide as high."""
        wide = (count for count in range(1, self.frames + 1) if self.frames % count == 0)
        return next(count for count in wide if count * count >= self.frames)

    @property
    def count(self) -> int:
        return self.frames * self.rows * self.columns

    def order(self) -> list[tuple[int, int, int]]:
        """Frame, row and column of each patch of the picture that all frames make together, row by row."""
        across, lines = self.across, self.frames // self.across
        return [
            (line * across + number, row, column)
            for line in range(lines)
            for row in range(self.rows)
            for number in range(across)
            for column in range(self.columns)
        ]


class VideoViewer:
    """A model that reads the frames of a film."""

    takes: InputKind = "image"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.preprocessor = model, ImagePreprocessor(model.config, folder)
        self.name = f"{type(model).__name__} from {folder}"

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        file = require_file(given, self.name, self.takes)
        config = self.model.config
        frames = [self.preprocessor.prepare(one) for one in open_frames(file, config.num_frames)]
        pixels = torch.stack([one.reshape(one.shape[-3:]) for one in frames])
        film = film_of(config, *pixels.shape[-2:])
        check_length(film.count, max_length, "the film", "patches")
        inputs = {"pixel_values": pixels[None].to(self.model.device, self.model.dtype)}
        recorded, notes = look_and_predict(self.model, inputs, sites, measure)
        recorded = finished(recorded, measure)
        steps = np.stack(
            [self.preprocessor.restore(pixels[at]) for at in range(0, len(pixels), len(pixels) // film.frames)]
        )
        seen = FilmSight(recorded, film, steps, getattr(config, "attention_type", ""))
        return LookResult(seen.sight, seen.names, file.name, [self.name, *notes, ABOUT, *recorded.notes], seen.draw)


class FilmSight:
    """The sites of a video model, with the patches of all frames as one picture."""

    def __init__(self, recorded: Sight, film: Film, steps: np.ndarray, attention: str) -> None:
        """`steps` are the frames (T, h, w, C) that stand for the steps in time."""
        self._recorded, self._film, self._steps, self._attention = recorded, film, steps, attention
        self._order = film.order()

    @cached_property
    def sight(self) -> Sight:
        sites: dict[str, Site] = {}
        for site in self._recorded:
            examples, _, queries, keys = site.shape
            if places := self._joined(examples, queries):
                made = JoinedSequences(f"{site.name}.{FILM}-{FILM}", site, places)
                sites[made.name] = made
            elif (examples, queries) == (1, keys) and keys - self._film.count in (0, 1):
                first = keys - self._film.count
                film = [first + self._index(*place) for place in self._order]
                parts = {**({CLASS: [0]} if first else {}), FILM: film}
                only = Sight({site.name: site}, [])
                sites |= {part.name: part for part in only.part({site.name: (parts, {FILM: film})})}
            else:
                sites[site.name] = site
        return Sight(sites, self._recorded.notes)

    @cached_property
    def names(self) -> dict[str, SidePair]:
        """The names of the queries and keys of each site."""
        film = self._picture
        names: dict[str, SidePair] = {}
        for site in self.sight.sites:
            over = ["[CLASS]"] if fnmatchcase(site, f"*.{CLASS}-{FILM}") else film
            names[site] = (over, film) if site.endswith(f"-{FILM}") else None
        return names

    def draw(self) -> Picture | None:
        """Each frame, bright where the last layer looks that sees all frames, or all of one: the mean of its queries
        and heads, or of the class token."""
        found = [name for name in self.sight.sites if name.endswith(f"-{FILM}")]
        if not found:
            return None
        first = [name for name in found if name.endswith(f".{CLASS}-{FILM}")] or found
        received = self.sight[first[-1]].received()[0].mean(0).float().cpu().numpy()
        maps = np.zeros((self._film.frames, self._film.rows, self._film.columns), np.float32)
        for place, weight in zip(self._order, received, strict=True):
            maps[place] = weight
        return plot_film(self._steps, maps, first[-1])

    @cached_property
    def _picture(self) -> Image:
        across, film = self._film.across, self._film
        lines = self._steps.reshape(-1, across, *self._steps.shape[1:])
        whole = np.concatenate([np.concatenate(list(line), 1) for line in lines])
        return Image.of(whole, film.frames // across * film.rows, across * film.columns)

    def _index(self, frame: int, row: int, column: int) -> int:
        """The position of a patch among those of a joint sequence."""
        film = self._film
        if self._attention == "joint_space_time":  # of TimeSformer, whose frames are the innermost
            return (row * film.columns + column) * film.frames + frame
        return (frame * film.rows + row) * film.columns + column

    def _joined(self, examples: int, count: int) -> list[tuple[int, int]]:
        """For attention within each frame or along time: which example and position each patch is; else none."""
        film, patches = self._film, self._film.rows * self._film.columns
        if examples == film.frames > 1 and count - patches in (0, 1):
            first = count - patches
            return [(frame, first + row * film.columns + column) for frame, row, column in self._order]
        if examples == patches and count == film.frames:
            return [(row * film.columns + column, frame) for frame, row, column in self._order]
        return []


def reads_films(model: Any) -> bool:
    """Whether a model of transformers reads frames."""
    return isinstance(getattr(model.config, "num_frames", None), int)


def film_of(config: Any, height: int, width: int) -> Film:
    """How many patches a model makes of its frames of this size."""
    tubelet = getattr(config, "tubelet_size", 1)
    if isinstance(tubelet, Sequence):  # of ViViT: time, height and width
        step, *patch = tubelet
    else:
        own = config.patch_size
        step, patch = tubelet, list(own) if isinstance(own, Sequence) else [own, own]
    return Film(max(1, math.floor(config.num_frames / step)), height // patch[0], width // patch[1])
