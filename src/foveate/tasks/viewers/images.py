"""The viewer of transformers' image models, some of which generate text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.errors import MOST, UserError, show_value
from foveate.forms.inputs import check_length, open_image, require_file
from foveate.forms.naming import DecoderNames, Naming, encoder_decoder_names, single_input_names, token_names
from foveate.interop.huggingface import (
    LOCAL_ONLY,
    import_transformers,
    short_errors,
    vision_configs,
)
from foveate.interop.preprocessors import OF_IMAGES, read_preprocessor
from foveate.sight import Sight
from foveate.sight.measured_look import check_windows, finished
from foveate.tasks.viewers.one_pass import look_and_predict, run_and_look
from foveate.tasks.viewers.texts import FolderTokenizer, TextViewer, decoder_path, generate_and_look, generates
from foveate.tasks.viewers.windows import find_windows, has_windows, patch_size
from foveate.viewer.protocol import File, Input, InputKind, LookResult
from foveate.viewer.sides import Image, SidePair


class ImageViewer:
    """A model that reads pixels."""

    takes: InputKind = "image"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.tokenizer, self.preprocessor = (
            model,
            FolderTokenizer(folder),
            ImagePreprocessor(model.config, folder),
        )
        self.name = f"{type(model).__name__} from {folder}"

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        file = require_file(given, self.name, self.takes)
        pixels, naming = self.read(file, max_length)
        inputs = {"pixel_values": pixels}
        if generates(self.model):
            sight, names, notes = generate_and_look(self.model, inputs, naming, self.tokenizer, sites, measure)
        else:
            sight, notes = look_and_predict(self.model, inputs, sites, measure)
            names = self._names(sight, naming)
        check_windows(measure, has_windows(self.model))
        relevance = measure == "relevance"  # whose sites are stacks
        known = {} if relevance else find_windows(self.model, self.model.config, sight, (naming.height, naming.width))
        sight = finished(sight.merge_windows(known), measure)
        for name, sides in known.items():
            names[name] = (naming.grid(sides[0].height, sides[0].width), naming.grid(sides[1].height, sides[1].width))
        if any(sides[1].padding for sides in known.values()):
            notes.append("Windows at the edges contain padding, which is not shown.")
        if separated := [name for name in sight.sites if sight[name].shape[0] > 1]:
            names.update(dict.fromkeys(separated))
            notes.append(
                f"{separated[0]} and similar modules attend to parts of the image separately; the first part is shown."
            )
        return LookResult(sight, names, file.name, [self.name, *notes, *sight.notes])

    def read(self, file: File, max_length: int) -> "tuple[Float[Tensor, '1 C height width'], Patches]":
        """The pixels of an image as the model reads them, and the names of its patches."""
        pixels = self.preprocessor.prepare(open_image(file))
        naming = Patches(self.preprocessor.restore(pixels), self.model.config)
        if not has_windows(self.model):  # maps of windows are small for any number of patches
            check_length(naming.count, max_length, "the image", "patches")
        return pixels[None].to(self.model.device, self.model.dtype), naming

    def _names(self, sight: Sight, naming: Naming) -> dict[str, SidePair]:
        """The names for a model that generates nothing; the learned queries of a detector have no names."""
        count = getattr(self.model.config, "num_queries", 0)
        if not getattr(self.model.config, "is_encoder_decoder", False):
            patches: Naming = lambda places: None if places == count else naming(places)  # noqa: E731
            return single_input_names(sight, patches)
        return encoder_decoder_names(
            sight, naming, DecoderNames(token_names([]), token_names([]), decoder_path(self.model), count)
        )


class PairViewer:
    """A model that reads an image and a text, each by a part of its own, as CLIP does."""

    takes: InputKind = "question"

    def __init__(self, model: Any, folder: Path) -> None:
        self.image, self.text = ImageViewer(model, folder), TextViewer(model, folder)
        self.model, self.name = model, self.image.name

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        file = require_file(given, self.name, self.takes)
        ids, labels = self.text.read(file.question, max_length)
        pixels, naming = self.image.read(file, max_length)
        inputs = {"pixel_values": pixels, "input_ids": torch.tensor([ids], device=self.model.device)}
        sight, _ = run_and_look(self.model, self.model, inputs, sites, measure)
        sight = finished(sight, measure)
        names: dict[str, SidePair] = {}
        for part, tokens in (("text_model*", token_names(labels)), ("vision_model*", naming)):
            if any(fnmatchcase(site, part) for site in sight.sites):
                names |= single_input_names(sight[part], tokens)
        return LookResult(sight, names, f"{file.name}: {file.question}", [self.name, *sight.notes])


class ImagePreprocessor:
    """Converts a picture into a model's input, with the folder's own processor, or with the sizes in its config."""

    def __init__(self, config: Any, folder: Path) -> None:
        found, where = read_preprocessor(folder, OF_IMAGES)
        self.processor = _processor(folder, where) if found else None
        self.size = _size(config)
        plain = self.processor is not None and not getattr(self.processor, "do_normalize", False)
        self.mean, self.spread = (
            torch.tensor(none if plain else _statistics(self.processor, found or {}, name)).view(-1, 1, 1)
            for name, none in (("image_mean", [0.0] * 3), ("image_std", [1.0] * 3))
        )

    def prepare(self, picture: PIL.Image.Image) -> Float[Tensor, "C height width"]:
        """The standardised pixels."""
        if self.processor is not None:
            with short_errors("the picture cannot be processed"):
                return self.processor(picture, return_tensors="pt")["pixel_values"][0]
        height, width = self.size
        pixels = np.asarray(picture.resize((width, height), PIL.Image.Resampling.BICUBIC), np.float32) / 255
        return (torch.from_numpy(pixels).permute(2, 0, 1) - self.mean) / self.spread

    def restore(self, pixels: Float[Tensor, "C height width"]) -> np.ndarray:
        """The picture as the model reads it, (height, width, C) of bytes."""
        values = pixels * self.spread + self.mean
        return (255 * values.clamp(0, 1)).round().byte().permute(1, 2, 0).numpy()


class Patches:
    """Names of positions that are patches of an image, perhaps after other tokens."""

    def __init__(self, picture: np.ndarray, config: Any) -> None:
        self.picture, (self.height, self.width) = picture, picture.shape[:2]
        registers = int(getattr(config, "num_register_tokens", 0) or 0)
        distilled = ["[DIST]"] if getattr(config, "model_type", "") == "deit" else []
        self.first = ["[CLS]", *distilled, *(f"[REG {place}]" for place in range(registers))]
        patch = patch_size(config)
        self.count = (self.height // patch[0]) * (self.width // patch[1]) if patch else 0

    def __call__(self, count: int) -> Image | None:
        """The grid of this many positions, if square patches of some size make one."""
        for before in (self.first, []):
            edge = math.isqrt(self.height * self.width // max(1, count - len(before)))
            for patch in (edge, edge + 1):
                rows, columns = self.height // max(1, patch), self.width // max(1, patch)
                if rows * columns == count - len(before) > 0:
                    return self.grid(rows, columns, before)
        return None

    def grid(self, rows: int, columns: int, before: Sequence[str] = ()) -> Image:
        """The picture with a grid of patches."""
        return replace(self.whole, height=rows, width=columns, before=before)

    @cached_property
    def whole(self) -> Image:
        return Image.of(self.picture, 1, 1)


def _processor(folder: Path, where: str) -> Any:
    """The folder's image processor; None if it needs a library that is not installed."""
    try:
        return import_transformers().AutoImageProcessor.from_pretrained(folder, **LOCAL_ONLY)
    except ImportError:
        return None
    except Exception as error:  # the library raises many types of errors
        raise UserError(f"{where} cannot be used: {str(error).splitlines()[0][:200]}") from None


def _statistics(processor: Any, found: Mapping[str, Any], name: str) -> list[float]:
    """The mean or standard deviation of the pixels, from the processor or its file."""
    values = getattr(processor, name, None) or found.get(name) or [0.5] * 3
    numbers = isinstance(values, list | tuple) and all(
        type(one) in (int, float) and -MOST < one < MOST for one in values
    )
    if not numbers or len(values) not in (1, 3) or (name == "image_std" and not all(values)):
        raise UserError(f"the {name} of the image processor is {show_value(values)}, but must be three numbers")
    return list(values)


def _size(config: Any) -> tuple[int, int]:
    for part in vision_configs(config):
        size = getattr(part, "image_size", None)
        if isinstance(size, Mapping):
            return int(size["height"]), int(size["width"])
        if isinstance(size, int):
            return size, size
        if isinstance(size, list | tuple) and len(size) == 2:
            return int(size[0]), int(size[1])
    return 224, 224
