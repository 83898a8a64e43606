"""The forms of models that have the parts of public ones: images of their size, and texts of any tokenizer."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from foveate.errors import UserError
from foveate.forms.form import setting_names
from foveate.forms.public_image import PublicImage
from foveate.models.vision.image_encoder import ImageBody


def forms_for(
    usual_reads: Any, writes_kind: Any, reads_kind: type[PublicImage] = PublicImage
) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """The forms of a task for its models whose config has a public part that reads images, `vision`.

    `usual_reads` is the form of the task's other models, whose settings such a model does not have.
    """

    def choose(reads: Any, writes: Any, architecture: Any) -> tuple[Any, Any]:
        vision = getattr(architecture, "vision", None)
        vision = vision.config if isinstance(vision, ImageBody) else vision
        if vision is None or isinstance(reads, PublicImage):
            return reads, writes
        kept = {"pixel_range", *({"size"} if hasattr(architecture, "image_size") else ())}
        for name in setting_names(type(reads)):
            if name not in kept and getattr(reads, name) != getattr(usual_reads, name):
                raise UserError(f"reads.{name} does nothing for such a model: its images have the size of its patches")
        side = ("size" in kept and reads.size) or getattr(vision, "image_size", 224)
        channels = vision.channels
        middle = (0.5,) * channels
        image = reads_kind(side, side, mean=middle, spread=middle, pixel_range=reads.pixel_range)
        names = {part.name for part in fields(writes_kind)}
        own = {name: getattr(writes, name) for name in setting_names(type(writes)) if name in names}
        return image, writes_kind(**own)

    return choose
