"""Labelled images for models that generate images of a class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foveate.contracts import Batch
from foveate.data.images.processor import ImageProcessor


@dataclass(kw_only=True)
class ClassImageProcessor(ImageProcessor):
    """Turns labelled images into inputs `pixels` (B, C, h, w) and `classes` (B,)."""

    augment: bool = False

    def batch(self, prepared: Sequence[tuple[np.ndarray, int]], generator: np.random.Generator | None) -> Batch:
        found = super().batch(prepared, generator)
        found.inputs["classes"] = found.labels[:, 0]
        return found
