"""What an agent reads before it acts: an instruction, or the name of a world.

    Instruction    the words of an instruction
    Directions     an instruction to walk on a map
    LevelName      a world that is seen as images, whose level has an instruction of its own

B batch    S words    T steps    c channels    h, w height and width
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.worlds.episodes import Level, Recording
from foveate.data.worlds.grid_levels import GridLevel, channels_of, encode_views
from foveate.data.worlds.maps import actions_between, read_map
from foveate.data.worlds.routes import Route, sentences_of, words_of
from foveate.data.worlds.views import Views, encode_images
from foveate.errors import UserError
from foveate.forms.form import Changes, InputForm, Learned, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import make_title, require_text
from foveate.forms.naming import token_names
from foveate.special_tokens import LEARNED
from foveate.viewer.protocol import Input

UNKNOWN_SHARE = 0.1
"""Share of the words that are replaced by the unknown token in training, so that unknown words do little harm."""

INSTRUCTIONS = 100
"""Levels whose instructions give the words, where nothing was recorded."""

LEVEL = 32
"""Places that a level takes of those that are answered about together: the world itself takes memory."""

NO_WORD = "[UNKNOWN]"
"""Stands for an instruction without words in pictures."""

WALK = re.compile(r"\s*(\S.*?\.xml)\s+(-?\d+,-?\d+,-?\d+)[\s:]+(.+)", re.DOTALL | re.IGNORECASE)
"""A look's input: a map, a pose and an instruction."""

_LEVEL = re.compile(r"\s*([\w-]+/[\w-]+)(?:\s+(\d+))?\s*")


@dataclass
class Instruction(InputForm):
    """The words of an instruction."""

    words: Learned[tuple[str, ...]] = ()
    """The words that are known; their ids follow the special ones."""

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": LEARNED.first_word + len(self.words)}

    def encode(self, text: str) -> list[int]:
        """The ids of the words of an instruction."""
        known = _places(self.words)
        return [known.get(word, LEARNED.unknown) for word in words_of(text)]


@cache
def _places(words: tuple[str, ...]) -> dict[str, int]:
    return {word: place for place, word in enumerate(words, LEARNED.first_word)}


@dataclass
class PreparedDirections:
    """Directions as numbers."""

    words: list[str]
    tokens: list[int]
    route: Route | None
    """Where to begin, and the path that is right, where they are known."""
    steps: int = 0
    """The actions of that path."""

    def sentences(self) -> list["PreparedDirections"]:
        """Each sentence by itself, without a route; the whole where none has words."""
        return [
            PreparedDirections(self.words[one.start : one.stop], self.tokens[one.start : one.stop], None)
            for one in sentences_of(self.words)
        ] or [self]


def words_read(prepared: Sequence[PreparedDirections]) -> dict[str, Tensor]:
    """The inputs `tokens` (B, S) and `lengths` (B,) of directions."""
    tokens, lengths = padded([np.array(one.tokens) for one in prepared], LEARNED.pad)
    return {"tokens": tokens, "lengths": lengths}


@dataclass
class Directions(Instruction):
    """An instruction to walk on a map: inputs `tokens` (B, S) and `lengths` (B,)."""

    name: ClassVar[str] = "instruction"
    place_name: ClassVar[str] = "words"

    def learn(self, train: Dataset[Route], architecture: Any) -> "Directions":
        """With all words that occur twice."""
        counts = Counter(word for route in train for word in words_of(route.instruction))
        return Directions(tuple(sorted(word for word, count in counts.items() if count > 1)))

    def open(self, given: str) -> str:
        return given

    def receive(self, given: Input, name: str) -> Route:
        """A map, a pose and an instruction. Raises UserError for another input."""
        text = require_text(given, name)
        if not (parts := WALK.fullmatch(text)):
            raise UserError(
                f"{make_title(text)!r}: where to walk? The input is a map, a pose and the instruction, "
                'such as "l.xml 3,5,180 go to the lamp"'
            )
        place, pose, instruction = parts.groups()
        walk_map = read_map(Path(place))
        return Route("", instruction, walk_map, (walk_map.check([int(number) for number in pose.split(",")]),))

    def value(self, example: Route) -> Route:
        return example

    def place(self, example: Route) -> str:
        return example.instruction

    def group(self, example: Route) -> Hashable:
        return (*words_of(example.instruction), example.walk_map.content, example.path)

    def prepare(self, value: str | Route) -> PreparedDirections:
        """An instruction without words is a single unknown token."""
        text, route = (value, None) if isinstance(value, str) else (value.instruction, value)
        steps = 0 if route is None else len(actions_between(route.path, route.walk_map))
        words = words_of(text) or [NO_WORD]
        return PreparedDirections(words, self.encode(text) or [LEARNED.unknown], route, steps)

    def cost(self, prepared: PreparedDirections) -> int:
        return len(prepared.tokens) + prepared.steps

    def places(self, prepared: PreparedDirections) -> int:
        return len(prepared.tokens)

    def tensors(
        self, prepared: Sequence[PreparedDirections], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        inputs = words_read(prepared)
        if generator is not None:
            tokens = inputs["tokens"]
            drawn = torch.from_numpy(generator.random(tokens.shape) < UNKNOWN_SHARE)
            inputs["tokens"] = tokens.masked_fill(drawn & (tokens != LEARNED.pad), LEARNED.unknown)
        return inputs, Changes()

    def axis(self, value: str | Route, prepared: PreparedDirections, grid: GridFinder) -> Naming:
        return token_names(prepared.words)

    def title(self, given: Input) -> str:
        parts = WALK.fullmatch(str(given))
        return super().title(given) if parts is None else parts[3]


@dataclass
class PreparedLevel:
    """A level to act in, and the form that reads its instruction once it is open."""

    world: str
    seed: int | None
    """None where the options lay it out."""
    form: "LevelName"


@dataclass
class LevelName(Instruction):
    """The name of a world, in whose level an agent acts; or a recorded episode: inputs `tokens` (B, S), `lengths` (B,)
    and `pixels` (B, T, c, h, w)."""

    name: ClassVar[str] = "view"

    views: Views = "pixels"
    """How worlds are seen: as images, levels of minigrid in colour and the robot's in colour and depth; as grey and
    depth images; or, levels of minigrid, as symbols: the kind, colour and state of each of the 7 x 7 tiles."""
    channels: Learned[int] = 3
    """Channels of the images."""

    def learn(self, train: Dataset[Any], architecture: Any) -> "LevelName":
        """With all words of recorded instructions, or those of some levels."""
        if isinstance(train[0], Level):
            texts = [GridLevel(level.world, level.seed).instruction for level in train.some(INSTRUCTIONS)]
            return LevelName(_words(texts), self.views, channels_of(self.views))
        channels = train[0].read().shape[-1] if self.views == "pixels" else channels_of(self.views)
        return LevelName(_words(one.instruction for one in train), self.views, channels)

    def extend(self, trained: "LevelName", train: Dataset[Any]) -> "LevelName":
        """As it was trained: another view would be no input of the model."""
        return copy(trained)

    def sizes(self) -> dict[str, int]:
        return {**super().sizes(), "channels": self.channels}

    def open(self, given: str) -> str:
        return given.strip()

    def receive(self, given: Input, name: str) -> Level:
        """A world and a seed. Raises UserError for another input."""
        text = require_text(given, name)
        if not (parts := _LEVEL.fullmatch(text)):
            raise UserError(
                f'{make_title(text)!r} is not a level: the input is a world and a seed, such as "babyai/GoToLocal 7"'
            )
        return Level(parts[1], int(parts[2] or 1))

    def value(self, example: Level | Recording) -> Level | Recording:
        return example

    def prepare(self, value: str | Level | Recording) -> PreparedLevel | Recording:
        if isinstance(value, Recording):
            return value
        world, seed = (value, None) if isinstance(value, str) else (value.world, value.seed)
        return PreparedLevel(world, seed, self)

    def cost(self, prepared: PreparedLevel | Recording) -> int:
        """The steps of a recording; of levels, that many that a group of them is acted in together."""
        return len(prepared.actions) if isinstance(prepared, Recording) else LEVEL

    def tensors(
        self, prepared: Sequence[PreparedLevel | Recording], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """Those of recordings; levels have none before they are open."""
        recordings = [one for one in prepared if isinstance(one, Recording)]
        if not recordings:
            return {}, Changes()
        images = [torch.from_numpy(self._views(one)) for one in recordings]
        inputs = self.inputs([one.instruction for one in recordings])
        return {**inputs, "pixels": pad_sequence(images, True)}, Changes()

    def _views(self, recording: Recording) -> np.ndarray:
        """The views (T, c, h, w). Raises UserError for views that a recording has not."""
        if self.views == "pixels" or recording.codes is None:
            return encode_images(recording.read(), self.views, recording.place)
        return encode_views(recording.codes(), self.views)

    def inputs(self, instructions: Sequence[str]) -> dict[str, Tensor]:
        """The `tokens` and `lengths` of instructions; an empty one has a length of 0."""
        ids = [self.encode(text) for text in instructions]
        lengths = torch.tensor([len(one) for one in ids])
        tokens = torch.full((len(ids), max(1, int(lengths.max()))), LEARNED.pad)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = torch.tensor(one)
        return {"tokens": tokens, "lengths": lengths}


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    """All words of texts."""
    return tuple(sorted({word for text in texts for word in words_of(text)}))
