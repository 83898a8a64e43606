"""Looking at the model of a Hugging Face folder: which viewer fits what the model reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.interop.huggingface import load
from foveate.tasks.viewers import images, proteins, sounds, texts, videos
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import ModelViewer

VIEWERS: dict[str, Callable[[Any, Path], ModelViewer]] = {
    "input_ids": texts.TextViewer,
    "pixel_values": images.ImageViewer,
    "input_features": sounds.SoundViewer,
}
"""The viewer for each main input that a model of transformers may have."""


def open_folder(folder: Path, device: str) -> ModelViewer:
    """The viewer of a folder's model. Raises UserError, one line, if the model cannot be opened or has no viewer."""
    model = load(folder, choose_device(device))
    given = getattr(model, "main_input_name", "")
    if given not in VIEWERS:
        raise UserError(
            f"{folder} is a {type(model).__name__}, which reads '{given}'; the command line supports models that read "
            f"{', '.join(VIEWERS)} (others can be looked at from Python, with foveate.look)"
        )
    if all(hasattr(model, part) for part in ("text_model", "vision_model")):
        return images.PairViewer(model, folder)
    if given == "pixel_values" and videos.reads_films(model):
        return videos.VideoViewer(model, folder)
    if given == "input_ids" and proteins.contact_head(model) is not None:
        return proteins.ProteinViewer(model, folder)
    return VIEWERS[given](model, folder)
