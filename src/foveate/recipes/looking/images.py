"""Looking at models of images: one that sees, or one that sees and then writes."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from jaxtyping import Float
from PIL.Image import Transpose
from torch import Tensor

from foveate.errors import UserError
from foveate.interop.huggingface import FROM_DISK, config_file, library, parts, told
from foveate.recipes.looking.inputs import check_length, file_of
from foveate.recipes.looking.naming import Naming, Writer, one_side, tokens, two_sides
from foveate.recipes.looking.texts import Words, decoder_path, read_and_write, run, writes
from foveate.recipes.looking.windows import has_windows, patch_size, windows
from foveate.sight import Sight
from foveate.viewer.protocol import File, Input, InputKind, LookResult
from foveate.viewer.sides import Image, SidePair

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""What is opened: formats that browsers know, each with one decoder."""

PIXELS = 64_000_000
"""More pixels than these are not unpacked."""

ORIENTATION = 0x0112
TURNS: dict[Any, Transpose] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""How a picture is turned that a camera wrote as it was held; Pillow's own way fails where other tags are damaged."""

PROCESSOR = "preprocessor_config.json"


class Watcher:
    """A model that is given pixels."""

    takes: InputKind = "image"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.words, self.eye = model, Words(folder), Eye(model.config, folder)
        self.name = f"{type(model).__name__} from {folder}"

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        file = file_of(given, self.name, self.takes)
        pixels = self.eye.see(opened(file))
        naming = Patches(self.eye.shown(pixels), self.model.config)
        if not has_windows(self.model):  # whose maps are small, however many patches there are
            check_length(naming.count, most, "the image", "patches")
        inputs = {"pixel_values": pixels[None].to(self.model.device, self.model.dtype)}
        if writes(self.model):
            sight, names, notes = read_and_write(self.model, inputs, naming, self.words, sites)
        else:
            sight, notes = run(self.model, self.model.base_model, inputs, sites), []
            names = self._names(sight, naming)
        known = windows(self.model, self.model.config, sight, (naming.height, naming.width))
        sight = sight.merge_windows(known)
        for name, sides in known.items():
            names[name] = (naming.grid(sides[0].height, sides[0].width), naming.grid(sides[1].height, sides[1].width))
        if any(sides[1].padding for sides in known.values()):
            notes.append("Windows at the edges reach beyond the image; what is looked at there is not shown.")
        if parted := [name for name in sight.sites if sight[name].shape[0] > 1]:
            names.update(dict.fromkeys(parted))
            notes.append(f"{parted[0]} and its like look at parts of the image apart; the first of them is shown.")
        return LookResult(sight, names, file.name, [self.name, *notes, *sight.notes])

    def _names(self, sight: Sight, naming: Naming) -> dict[str, SidePair]:
        """What is called what in a model that writes nothing: the queries that a detector has learned have no names."""
        if not getattr(self.model.config, "is_encoder_decoder", False):
            return one_side(sight, naming)
        count = getattr(self.model.config, "num_queries", 0)
        return two_sides(sight, naming, Writer(tokens([]), tokens([]), decoder_path(self.model), count))


class Eye:
    """How a picture becomes what a model is given: by the folder's own processor, else by the sizes that it names."""

    def __init__(self, config: Any, folder: Path) -> None:
        found = config_file(folder, PROCESSOR)
        self.processor = _processor(folder) if found else None
        self.size = _size(config)
        plain = self.processor is not None and not getattr(self.processor, "do_normalize", False)
        self.mean, self.spread = (
            torch.tensor(none if plain else _said(self.processor, found, name)).view(-1, 1, 1)
            for name, none in (("image_mean", [0.0] * 3), ("image_std", [1.0] * 3))
        )

    def see(self, picture: PIL.Image.Image) -> Float[Tensor, "C height width"]:
        """The pixels, standardised."""
        if self.processor is not None:
            with told("the picture cannot be prepared"):
                return self.processor(picture, return_tensors="pt")["pixel_values"][0]
        height, width = self.size
        pixels = np.asarray(picture.resize((width, height), PIL.Image.Resampling.BICUBIC), np.float32) / 255
        return (torch.from_numpy(pixels).permute(2, 0, 1) - self.mean) / self.spread

    def shown(self, pixels: Float[Tensor, "C height width"]) -> np.ndarray:
        """The picture again, as the model was given it, (height, width, C) of bytes."""
        values = pixels * self.spread + self.mean
        return (255 * values.clamp(0, 1)).round().byte().permute(1, 2, 0).numpy()


class Patches:
    """What places are called that are patches of an image, perhaps behind tokens that are none."""

    def __init__(self, picture: np.ndarray, config: Any) -> None:
        self.picture, (self.height, self.width) = picture, picture.shape[:2]
        registers = int(getattr(config, "num_register_tokens", 0) or 0)
        distilled = ["[DIST]"] if getattr(config, "model_type", "") == "deit" else []
        self.first = ["[CLS]", *distilled, *(f"[REG {place}]" for place in range(registers))]
        patch = patch_size(config)
        self.count = (self.height // patch[0]) * (self.width // patch[1]) if patch else 0

    def __call__(self, count: int) -> Image | None:
        """The grid of so many places, if square patches of some size make one."""
        for before in (self.first, []):
            edge = math.isqrt(self.height * self.width // max(1, count - len(before)))
            for patch in (edge, edge + 1):
                rows, columns = self.height // max(1, patch), self.width // max(1, patch)
                if rows * columns == count - len(before) > 0:
                    return self.grid(rows, columns, before)
        return None

    def grid(self, rows: int, columns: int, before: Sequence[str] = ()) -> Image:
        """The picture as so many patches."""
        return replace(self.whole, height=rows, width=columns, before=before)

    @cached_property
    def whole(self) -> Image:
        return Image.of(self.picture, 1, 1)


def opened(file: File) -> PIL.Image.Image:
    """A picture file's first picture, upright, in colours. Raises UserError for what is none, or is too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)  # the bound below is stricter
            picture = PIL.Image.open(BytesIO(file.data), formats=FORMATS)
            if picture.width * picture.height > PIXELS:
                raise UserError(
                    f"{file.name} has {picture.width:,} x {picture.height:,} pixels; at most {PIXELS:,} are read"
                )
            turn = TURNS.get(picture.getexif().get(ORIENTATION, 1))
            return (picture if turn is None else picture.transpose(turn)).convert("RGB")
    except PIL.UnidentifiedImageError:
        raise UserError(f"{file.name} is no picture; known are {', '.join(FORMATS)}") from None
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{file.name} is damaged: {error}") from None


def _processor(folder: Path) -> Any:
    """The folder's processor; None where it needs a library that is not there."""
    try:
        return library().AutoImageProcessor.from_pretrained(folder, **FROM_DISK)
    except ImportError:
        return None
    except Exception as error:  # the library raises whatever its parts do
        raise UserError(f"{folder / PROCESSOR} cannot be used: {str(error).splitlines()[0][:200]}") from None


def _said(processor: Any, found: Mapping[str, Any], name: str) -> list[float]:
    """What the pixels are standardised by: as the processor has it, else its file."""
    return list(getattr(processor, name, None) or found.get(name) or [0.5] * 3)


def _size(config: Any) -> tuple[int, int]:
    for part in parts(config):
        size = getattr(part, "image_size", None)
        if isinstance(size, Mapping):
            return int(size["height"]), int(size["width"])
        if isinstance(size, int):
            return size, size
        if isinstance(size, list | tuple) and len(size) == 2:
            return int(size[0]), int(size[1])
    return 224, 224
