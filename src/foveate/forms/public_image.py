"""Images as models of Hugging Face folders read them: by the numbers of their processor."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.decoding import flat, turn_upright
from foveate.data.images.kept import Unread
from foveate.data.images.labelled import is_damaged, report_damaged
from foveate.errors import UserError, one_line, show_value
from foveate.files import read_json
from foveate.forms.form import Changes, Fit, Learned
from foveate.forms.image import Fitted, ImageForm, count_places
from foveate.interop.preprocessors import OF_IMAGES, PREPROCESSOR, read_preprocessor
from foveate.interop.timm_config import is_timm

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Those of ImageNet's pixels, which most folders have."""

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Pillow's numbers of timm's names."""

MOST = 8192
"""Pixels of the longest side that an image is scaled to."""


@dataclass
class PublicImage(ImageForm):
    """An image that is scaled, cropped and standardised as a folder says: inputs `pixels` (B, C, h, w), and for models
    that find objects `sizes` (B, 2).

    With a `height` and a `width` the image is scaled to just these. With a `crop` its shorter side becomes
    `height / crop`, and the middle is cut out; with `before_cut` it becomes this, or the image is scaled to this height
    and width. With a `longest` side the shorter one becomes `height`, unless the
    longer one then were too long, and nothing is cut.
    """

    worth_optimizing: ClassVar[float] = float("inf")

    height: Learned[int] = 224
    width: Learned[int] = 224
    crop: Learned[float | None] = None
    """Share of the scaled image that is kept."""
    before_cut: Learned[tuple[int, ...] | None] = None
    """The shorter side of the scaled image, or its height and width, where its middle is cut out."""
    longest: Learned[int | None] = None
    """The longest side of an image that keeps its proportions."""
    pads: Learned[bool] = False
    """The image keeps its proportions, and is padded by black around it to the height and the width (Donut)."""
    multiple: Learned[int] = 1
    """Sides of an image that keeps its proportions are cut down to multiples of this many pixels (YOLOS)."""
    turns: Learned[bool] = False
    """An image that lies where the height and the width stand, or stands where they lie, is turned clockwise first."""
    rounds: Learned[bool] = False
    """The middle begins at the nearest pixel, as in timm, and not at the one before."""
    resample: Learned[int] = 2
    """Pillow's number of the filter: 2 is bilinear, 3 bicubic."""
    scale: Learned[float] = 1 / 255
    """What 8-bit pixels are multiplied by."""
    mean: Learned[tuple[float, ...]] = MEAN
    spread: Learned[tuple[float, ...]] = SPREAD
    """The mean and the deviation of each channel, by which pixels are standardised."""

    @classmethod
    def of_folder(cls, folder: Path, size: int, channels: int) -> "PublicImage":
        """What a folder says; without the file, which is told, images of this size, standardised as ImageNet's.

        Raises UserError for what a model cannot read by."""
        values, path = read_preprocessor(folder, OF_IMAGES)
        config = folder / "config.json"
        if values is None and config.is_file() and is_timm(settings := read_json(config)):
            return cls.of_timm(settings, channels, str(config))
        if values is None:
            print(
                f"{one_line(folder)} has no {PREPROCESSOR}: {size} pixels, standardised as ImageNet's", file=sys.stderr
            )
            return cls(size, size, mean=MEAN[:channels], spread=SPREAD[:channels])
        kind = _kind(values)
        found = _sizes(values, kind, path, size)
        if not values.get("do_resize", True):
            raise UserError(f"{path} has do_resize False; foveate's models read images of one size")
        scaled = values.get("do_rescale", True)
        if values.get("rescale_offset"):
            raise UserError(f"{path} has rescale_offset True; foveate's models have False only")
        mean, spread = (0.0,) * channels, (1.0,) * channels
        deviation = _numbers(values, "image_std", kind.spread, channels, path)
        if values.get("do_normalize", kind.normalizes):
            mean, spread = _numbers(values, "image_mean", kind.mean, channels, path), deviation
        if kind.twice and values.get("include_top", True):
            spread = tuple(one * other for one, other in zip(spread, deviation, strict=True))
        return cls(
            **found,
            resample=_number(values, "resample", kind.resample, path),
            scale=float(values.get("rescale_factor", 1 / 255)) if scaled else 1.0,
            mean=mean,
            spread=spread,
        )

    @classmethod
    def of_timm(cls, values: Mapping[str, Any], channels: int, where: str) -> "PublicImage":
        """What a `config.json` of timm says of images: the shorter side is scaled, and the middle cut out; "squash"
        scales both sides. Raises UserError."""
        own = values["pretrained_cfg"]
        if not isinstance(own, Mapping):
            raise UserError(f"{where} has the pretrained_cfg {show_value(own)}, which cannot be")
        size, share = own.get("input_size", [3, 224, 224]), own.get("crop_pct", 0.875)
        side = size[-1] if isinstance(size, list) and len(size) == 3 and size[1] == size[2] else None
        if type(side) is not int or not 0 < side <= MOST:
            raise UserError(f"{where} has the input_size {show_value(size)}; foveate's models read squares")
        if not isinstance(share, int | float) or not 0.1 <= share <= 1:
            raise UserError(f"{where} has the crop_pct {show_value(share)}, but it must be above 0 and at most 1")
        filter_, mode = own.get("interpolation", "bilinear"), own.get("crop_mode", "center")
        if filter_ not in FILTERS or mode not in ("center", "squash"):
            what, value = ("interpolation", filter_) if filter_ not in FILTERS else ("crop_mode", mode)
            raise UserError(f"{where} has the {what} {show_value(value)}, which foveate does not know")
        before = int(side / share)
        return cls(
            height=side,
            width=side,
            before_cut=(before,) if mode == "center" else (before, before),
            rounds=True,
            resample=FILTERS[filter_],
            mean=_numbers(own, "mean", MEAN, channels, where),
            spread=_numbers(own, "std", SPREAD, channels, where),
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

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """They stay where they are, because they are large."""
        damaged = {number: example for number, example in enumerate(dataset) if is_damaged(example)}
        kept = [number for number in range(len(dataset)) if number not in damaged]
        return Prepared([Unread(dataset[number].read) for number in kept], kept, report_damaged([*damaged.values()]))

    def places(self, prepared: Fitted | Unread) -> int:
        if isinstance(prepared, Unread):
            return count_places((self.height, self.width))
        return count_places(prepared.pixels.shape[1:])

    def tensors(
        self, prepared: Sequence[Fitted | Unread], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """Smaller images are padded by zeros at the right and the bottom."""
        images = [one if isinstance(one, Fitted) else self.prepare(one.read()) for one in prepared]
        height, width = (max(one.pixels.shape[axis] for one in images) for axis in (1, 2))
        pixels = torch.zeros(len(images), len(self.mean), height, width)
        mean, spread = (torch.tensor(part).view(-1, 1, 1) for part in (self.mean, self.spread))
        for row, one in enumerate(images):
            standard = (torch.from_numpy(one.pixels.copy()).float() * self.scale - mean) / spread
            pixels[row, :, : standard.shape[1], : standard.shape[2]] = standard
        inputs = {"pixels": pixels}
        if self.longest is not None:
            inputs["sizes"] = torch.tensor([one.pixels.shape[1:] for one in images])
        return inputs, Changes(fits=[one.fit for one in images])

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.ascontiguousarray(self.prepare(value).pixels.transpose(1, 2, 0))

    def _scaled(self, image: PIL.Image.Image) -> PIL.Image.Image:
        width, height = image.size
        filter_ = PIL.Image.Resampling(self.resample)
        if self.pads:
            return self._padded(image, filter_)
        if self.longest is not None:
            share = min(self.height / min(width, height), self.longest / max(width, height))
            sides = (int(side * share) // self.multiple * self.multiple for side in (width, height))
            return image.resize([max(self.multiple, side) for side in sides], filter_)
        if self.crop is None and self.before_cut is None:
            return image.resize((self.width, self.height), filter_)
        scaled = image.resize(self._before_cut(width, height), filter_)
        spare = scaled.width - self.width, scaled.height - self.height
        left, top = (round(one / 2) if self.rounds else one // 2 for one in spare)
        return scaled.crop((left, top, left + self.width, top + self.height))

    def _padded(self, image: PIL.Image.Image, filter_: PIL.Image.Resampling) -> PIL.Image.Image:
        """The shorter side becomes that of the frame; what is then larger than the frame is scaled again, to fit."""
        if self.turns and (image.width - image.height) * (self.width - self.height) < 0:
            image = image.transpose(PIL.Image.Transpose.ROTATE_270)
        share = min(self.height, self.width) / min(image.size)
        image = image.resize((int(image.width * share), int(image.height * share)), filter_)
        width, height = min(image.width, self.width), min(image.height, self.height)
        if (width, height) != image.size:
            if image.height > image.width:
                width = int(image.width * height / image.height)
            elif image.width > image.height:
                height = int(image.height * width / image.width)
            image = image.resize((max(1, width), max(1, height)), filter_)
        frame = PIL.Image.new(image.mode, (self.width, self.height))
        frame.paste(image, ((self.width - image.width) // 2, (self.height - image.height) // 2))
        return frame

    def _before_cut(self, width: int, height: int) -> tuple[int, int]:
        """Width and height of the image whose middle is cut out."""
        sides = (int(self.height / self.crop),) if self.crop is not None else self.before_cut or ()
        if len(sides) == 2:
            return sides[1], sides[0]
        least, (shorter,) = min(width, height), sides
        return int(shorter * width / least), int(shorter * height / least)


@dataclass(frozen=True)
class ImageProcessorKind:
    """What an image processor of transformers does where its file does not say."""

    resample: int = 3
    by_shorter_side: bool = False
    """A size that is one number is that of the shorter side."""
    cuts: bool = False
    """The middle is cut out."""
    pads: bool = False
    """What lacks of the height and the width is padded."""
    normalizes: bool = True
    """Pixels are standardised."""
    mean: tuple[float, ...] = MEAN
    spread: tuple[float, ...] = SPREAD
    """Where a file does not say them."""
    multiple: int = 1
    """Sides of images that keep their proportions are multiples of this."""
    twice: bool = False
    """They are divided by the deviation once more, unless `include_top` is False."""


KINDS = {
    "ViT": ImageProcessorKind(resample=2),
    "Detr": ImageProcessorKind(resample=2),
    "EfficientNet": ImageProcessorKind(mean=(0.5,) * 3, spread=(0.5,) * 3, twice=True),
    "Yolos": ImageProcessorKind(resample=2, multiple=16),
    "RTDetr": ImageProcessorKind(resample=2, normalizes=False),
    "DeformableDetr": ImageProcessorKind(resample=2),
    "ConditionalDetr": ImageProcessorKind(resample=2),
    "DeiT": ImageProcessorKind(cuts=True),
    "Beit": ImageProcessorKind(),
    "Bit": ImageProcessorKind(by_shorter_side=True, cuts=True),
    "Donut": ImageProcessorKind(resample=2, pads=True),
    "Blip": ImageProcessorKind(),
    "CLIP": ImageProcessorKind(by_shorter_side=True, cuts=True),
    "Siglip": ImageProcessorKind(),
    "ConvNext": ImageProcessorKind(by_shorter_side=True),
    "DINOv3ViT": ImageProcessorKind(resample=2),
}
"""By what the names of their classes begin with."""


def _kind(values: Mapping[str, Any]) -> ImageProcessorKind:
    name = str(values.get("image_processor_type") or values.get("feature_extractor_type") or "")
    for ending in ("Fast", "Pil", "ImageProcessor", "FeatureExtractor"):
        name = name.removesuffix(ending)
    return KINDS.get(name, ImageProcessorKind(resample=2))


def _sizes(values: Mapping[str, Any], kind: ImageProcessorKind, where: str, usual: int) -> dict[str, Any]:
    """Height, width, crop and longest side of what a file says."""
    size = _size(values, "size", usual, kind.by_shorter_side, where)
    if kind.pads and values.get("do_pad", True):
        turns = values.get("do_align_long_axis", False)
        return {**_height_and_width(size, where), "pads": True, "turns": bool(turns)}
    edge = size.get("shortest_edge")
    if values.get("do_center_crop", kind.cuts) and "longest_edge" not in size:
        cut = _size(values, "crop_size", usual, False, where)
        before = (edge,) if edge is not None else (size["height"], size["width"])
        return {**_height_and_width(cut, where), "before_cut": before}
    if edge is None:
        return _height_and_width(size, where)
    if "longest_edge" in size:
        own = {"height": edge, "width": edge, "longest": size["longest_edge"]}
        return own if kind.multiple == 1 else {**own, "multiple": kind.multiple}
    if edge >= 384:  # such images are not cropped
        return {"height": edge, "width": edge}
    share = values.get("crop_pct") or 224 / 256
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise UserError(f"{where} has the crop_pct {show_value(share)}, but it must be above 0 and at most 1")
    return {"height": edge, "width": edge, "crop": float(share)}


def _size(values: Mapping[str, Any], name: str, usual: int, shorter: bool, where: str) -> dict[str, int]:
    """A size as a table; one number is that of the `shorter` side, or of both."""
    size = values.get(name)
    size = usual if size is None else size
    if isinstance(size, list) and len(size) == 2:  # older files of Donut: width and height
        size = {"width": size[0], "height": size[1]}
    if isinstance(size, int):
        size = {"shortest_edge": size} if shorter else {"height": size, "width": size}
    if not isinstance(size, Mapping) or not all(type(one) is int and 0 < one <= MOST for one in size.values()):
        raise UserError(f"{where} has the {name} {show_value(size)}, which cannot be")
    if not {"height", "width"} <= size.keys() and "shortest_edge" not in size:
        raise UserError(f"{where} has the {name} {show_value(dict(size))}, which foveate does not know")
    return dict(size)


def _height_and_width(size: Mapping[str, int], where: str) -> dict[str, int]:
    if "height" not in size:
        raise UserError(f"{where} has the crop_size {show_value(dict(size))}, which foveate does not know")
    return {"height": size["height"], "width": size["width"]}


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
    if name in ("image_std", "std") and not all(found):
        raise UserError(f"{where} has the {name} {found}, by which nothing can be divided")
    return tuple(map(float, found))
