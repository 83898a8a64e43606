"""Images as models of Hugging Face folders read them: by the numbers of their `preprocessor_config.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import flat, turn_upright
from foveate.errors import UserError, show_value
from foveate.files import read_json
from foveate.forms.form import Changes, Fit, Learned
from foveate.forms.image import Fitted, ImageForm, count_places

FILE = "preprocessor_config.json"

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Those of ImageNet's pixels, which most folders have."""

MOST = 8192
"""Pixels of the longest side that an image is scaled to."""


@dataclass
class PublicImage(ImageForm):
    """An image that is scaled, cropped and standardised as a folder says: inputs `pixels` (B, C, h, w), and for models
    that find objects `sizes` (B, 2).

    With a `height` and a `width` the image is scaled to just these. With a `crop` its shorter side becomes
    `height / crop`, and the middle is cut out. With a `longest` side the shorter one becomes `height`, unless the
    longer one then were too long, and nothing is cut.
    """

    worth_optimizing: ClassVar[float] = float("inf")

    height: Learned[int] = 224
    width: Learned[int] = 224
    crop: Learned[float | None] = None
    """Share of the scaled image that is kept."""
    longest: Learned[int | None] = None
    """The longest side of an image that keeps its proportions."""
    resample: Learned[int] = 2
    """Pillow's number of the filter: 2 is bilinear, 3 bicubic."""
    scale: Learned[float] = 1 / 255
    """What 8-bit pixels are multiplied by."""
    mean: Learned[tuple[float, ...]] = MEAN
    spread: Learned[tuple[float, ...]] = SPREAD
    """The mean and the deviation of each channel, by which pixels are standardised."""

    @classmethod
    def of_folder(cls, folder: Path, size: int, channels: int) -> "PublicImage":
        """What a folder says; without the file, images of this size, standardised as ImageNet's. Raises UserError."""
        path = folder / FILE
        if not path.is_file():
            return cls(size, size, mean=MEAN[:channels], spread=SPREAD[:channels])
        values = read_json(path)
        if not isinstance(values, Mapping):
            raise UserError(f"{path} holds no table of settings")
        found = _sizes(values, str(path), size)
        scaled = values.get("do_rescale", True)
        plain = not values.get("do_normalize", True)
        return cls(
            **found,
            resample=_number(values, "resample", 2, str(path)),
            scale=float(values.get("rescale_factor", 1 / 255)) if scaled else 1.0,
            mean=(0.0,) * channels if plain else _numbers(values, "image_mean", MEAN, channels, str(path)),
            spread=(1.0,) * channels if plain else _numbers(values, "image_std", SPREAD, channels, str(path)),
        )

    def sizes(self) -> dict[str, int]:
        return {"channels": len(self.mean), **({"image_size": self.height} if self.height == self.width else {})}

    def learn(self, train: Dataset[Any], architecture: Any) -> "PublicImage":
        """Nothing: the folder has said all."""
        return self

    def prepare(self, value: PIL.Image.Image) -> Fitted:
        image = flat(turn_upright(value)).convert("L" if len(self.mean) == 1 else "RGB")
        scaled = self._scaled(image)
        pixels = np.asarray(scaled).reshape(*scaled.size[::-1], -1).transpose(2, 0, 1)
        return Fitted(pixels, Fit(image.size, scaled.size, False))

    def places(self, prepared: Fitted) -> int:
        return count_places(prepared.pixels.shape[1:])

    def tensors(
        self, prepared: Sequence[Fitted], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """Smaller images are padded by zeros at the right and the bottom."""
        height, width = (max(one.pixels.shape[axis] for one in prepared) for axis in (1, 2))
        pixels = torch.zeros(len(prepared), len(self.mean), height, width)
        mean, spread = (torch.tensor(part).view(-1, 1, 1) for part in (self.mean, self.spread))
        for row, one in enumerate(prepared):
            standard = (torch.from_numpy(one.pixels.copy()).float() * self.scale - mean) / spread
            pixels[row, :, : standard.shape[1], : standard.shape[2]] = standard
        inputs = {"pixels": pixels}
        if self.longest is not None:
            inputs["sizes"] = torch.tensor([one.pixels.shape[1:] for one in prepared])
        return inputs, Changes(fits=[one.fit for one in prepared])

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.ascontiguousarray(self.prepare(value).pixels.transpose(1, 2, 0))

    def _scaled(self, image: PIL.Image.Image) -> PIL.Image.Image:
        width, height = image.size
        filter_ = PIL.Image.Resampling(self.resample)
        if self.longest is not None:
            share = min(self.height / min(width, height), self.longest / max(width, height))
            return image.resize((max(1, int(width * share)), max(1, int(height * share))), filter_)
        if self.crop is None:
            return image.resize((self.width, self.height), filter_)
        shorter = int(self.height / self.crop)
        share = shorter / min(width, height)
        sides = [shorter if side == min(width, height) else int(side * share) for side in (width, height)]
        scaled = image.resize(sides, filter_)
        left, top = (sides[0] - self.width) // 2, (sides[1] - self.height) // 2
        return scaled.crop((left, top, left + self.width, top + self.height))


def _sizes(values: Mapping[str, Any], where: str, usual: int) -> dict[str, Any]:
    """Height, width, crop and longest side of what a file says."""
    size = values.get("size", usual)
    if isinstance(size, int):
        size = {"height": size, "width": size}
    if not isinstance(size, Mapping) or not all(type(one) is int and 0 < one <= MOST for one in size.values()):
        raise UserError(f"{where} has the size {show_value(size)}, which cannot be")
    if {"height", "width"} <= size.keys():
        return {"height": size["height"], "width": size["width"]}
    if "shortest_edge" not in size:
        raise UserError(f"{where} has the size {show_value(dict(size))}, which foveate does not know")
    edge = size["shortest_edge"]
    if "longest_edge" in size:
        return {"height": edge, "width": edge, "longest": size["longest_edge"]}
    if edge >= 384:  # such images are not cropped
        return {"height": edge, "width": edge}
    share = values.get("crop_pct") or 224 / 256
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise UserError(f"{where} has the crop_pct {show_value(share)}, but it must be above 0 and at most 1")
    return {"height": edge, "width": edge, "crop": float(share)}


def _number(values: Mapping[str, Any], name: str, usual: int, where: str) -> int:
    found = values.get(name, usual)
    if type(found) is not int or found not in {int(one) for one in PIL.Image.Resampling}:
        raise UserError(f"{where} has the {name} {show_value(found)}, which cannot be")
    return found


def _numbers(
    values: Mapping[str, Any], name: str, usual: tuple[float, ...], channels: int, where: str
) -> tuple[float, ...]:
    found = values.get(name, list(usual[:channels]))
    if not isinstance(found, list) or len(found) != channels or not all(isinstance(one, int | float) for one in found):
        raise UserError(f"{where} has the {name} {show_value(found)}; the model reads {channels} channels")
    if name == "image_std" and not all(found):
        raise UserError(f"{where} has the image_std {found}, by which nothing can be divided")
    return tuple(map(float, found))
