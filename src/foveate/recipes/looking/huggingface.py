"""Looking at the model of a Hugging Face folder: which viewer fits what the model reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.interop.huggingface import load
from foveate.recipes.looking import images, sounds, texts
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import ModelViewer

VIEWERS: dict[str, Callable[[Any, Path], ModelViewer]] = {
    "input_ids": texts.Reader,
    "pixel_values": images.Watcher,
    "input_features": sounds.Listener,
}
"""The viewer for each main input that a model of transformers may have."""


def open_folder(folder: Path, device: str) -> ModelViewer:
    """The viewer of a folder's model. Raises UserError, one line, if the model cannot be opened or has no viewer."""
    model = load(folder, choose_device(device))
    given = getattr(model, "main_input_name", "")
    if given not in VIEWERS:
        raise UserError(
            f"{folder} is a {type(model).__name__}, which is given '{given}'; models can be looked at here that are "
            f"given {', '.join(VIEWERS)} (any other from Python, by foveate.look)"
        )
    return VIEWERS[given](model, folder)
