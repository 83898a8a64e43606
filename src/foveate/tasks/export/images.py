"""Classifiers of images and detectors as Hugging Face folders."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from foveate.data.images.pixels import MIDDLE, REACH
from foveate.files import written
from foveate.forms.image import AugmentedImage, FittedImage
from foveate.forms.public_image import PublicImage
from foveate.interop.layout import written_labels
from foveate.interop.preprocessors import PREPROCESSOR
from foveate.interop.public_folder import layout_for, write_folder
from foveate.tasks.skill import Skill

TASKS = ("classify-image", "detect")

WHOLE_PLACES = 32
"""Pixels of a place of the coarsest map of an RT-DETR: transformers joins maps whose sizes are multiples alone."""


def exports_images(skill: Any) -> bool:
    """Whether a skill labels images, or finds objects in them."""
    return isinstance(skill, Skill) and skill.task.name in TASKS


def export_images(skill: Skill, folder: Path) -> str:
    """Write a model that transformers loads with the same logits; returns the class that loads it.

    Raises UserError for a family, or for sizes, that transformers does not have.
    """
    family = skill.description["family"]
    layout = layout_for(family, skill.model.config)
    writes = skill.processor.writes
    names = written_labels([*writes.labels], getattr(writes, "scores", "softmax"))
    write_folder(folder, family, skill.model.to("cpu"), names)
    with written(folder / PREPROCESSOR) as path:
        path.write_text(json.dumps(preprocessing(skill, family), indent=2) + "\n", encoding="utf-8")
    return str(layout.write_config(skill.model.config)["architectures"][0])


def preprocessing(skill: Skill, family: str) -> dict[str, Any]:
    """How images become pixels, as an image processor of transformers reads it."""
    reads = skill.processor.reads
    if getattr(reads, "pads", False):
        return _padded(reads)
    kind: dict[str, Any] = {"image_processor_type": layout_for(family, skill.model.config).image_processor}
    if kind["image_processor_type"].startswith("EfficientNet"):
        kind["include_top"] = False  # which would divide by the deviation once more
    if isinstance(reads, PublicImage):
        found = {part.name: getattr(reads, part.name) for part in fields(reads)}
        size = _size(found["height"], found["width"], found["crop"], found["longest"])
        crop: dict[str, Any] = {"do_center_crop": False} if found["crop"] is None else {"crop_pct": found["crop"]}
        if found["crop"] is None and found["before_cut"] is not None and "ViT" in kind["image_processor_type"]:
            kind = {"image_processor_type": "BitImageProcessor"}  # the class that cuts the middle out of any size
        if (before := found["before_cut"]) is not None:
            crop = {"do_center_crop": True, "crop_size": size}
            size = dict(zip(("height", "width"), before, strict=True)) if before[1:] else {"shortest_edge": before[0]}
        numbers = {"image_mean": list(reads.mean), "image_std": list(reads.spread)}
        return {**kind, "size": size, **crop, "resample": reads.resample, "rescale_factor": reads.scale, **numbers}
    fitted = isinstance(reads, FittedImage)
    channels, side = (3, reads.size) if fitted else (reads.square.channels, reads.square.size)
    inside = fitted and not kind["image_processor_type"].startswith("RTDetr")  # which reads squares, unpadded
    if fitted and not inside:
        side = -(-side // WHOLE_PLACES) * WHOLE_PLACES
    size = {"longest_edge": side, "shortest_edge": side} if inside else {"height": side, "width": side}
    if isinstance(reads, AugmentedImage) and "ConvNext" in kind["image_processor_type"]:
        size = {"shortest_edge": side}
    mean, deviation = reads.pixel_mean or (MIDDLE,) * channels, reads.pixel_deviation or (REACH,) * channels
    numbers = {"image_mean": list(mean), "image_std": list(deviation)}
    cropped: dict[str, Any] = {"do_center_crop": False}  # which is not what each class does where nothing is said
    cropped |= {"crop_pct": 1.0} if "shortest_edge" in size and not inside else {}
    return {**kind, "size": size, **cropped, "resample": 3, "rescale_factor": 1 / 255, "do_normalize": True, **numbers}


def _padded(reads: PublicImage) -> dict[str, Any]:
    """The same of images that keep their proportions within a frame."""
    return {
        "image_processor_type": "DonutImageProcessor",
        "size": {"height": reads.height, "width": reads.width},
        "do_align_long_axis": reads.turns,
        "do_thumbnail": True,
        "do_pad": True,
        "resample": reads.resample,
        "rescale_factor": reads.scale,
        "image_mean": list(reads.mean),
        "image_std": list(reads.spread),
    }


def _size(height: int, width: int, crop: float | None, longest: int | None) -> dict[str, int]:
    if longest is not None:
        return {"shortest_edge": height, "longest_edge": longest}
    return {"height": height, "width": width} if crop is None else {"shortest_edge": height}
