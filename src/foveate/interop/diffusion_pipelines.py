"""Opens text-to-image pipelines: folders of the diffusers library, from local safetensors only.

Code in the folder is never run, nothing is unpickled, and nothing is downloaded.
"""

import logging
from pathlib import Path
from typing import Any

import torch

from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.huggingface import LOCAL_ONLY, check_files, import_transformers, short_errors

INDEX = "model_index.json"
"""The file that lists the parts of a pipeline."""

LIBRARIES = {"diffusers", "transformers", "stable_diffusion", None}
"""Where parts of a pipeline may come from; other names are those of code in the folder."""

DENOISERS = ("transformer", "unet")
"""Names of the part that attends to the caption while it removes noise."""


def load_pipeline(folder: Path, device: torch.device) -> Any:
    """The pipeline of a folder. Raises UserError if it cannot be opened safely, or has no model that removes noise."""
    check_files(folder)
    index = read_json(folder / INDEX)
    for name, part in index.items():
        if isinstance(part, list) and (len(part) != 2 or part[0] not in LIBRARIES):
            raise UserError(f"{folder}: its {name} is code of the folder or of {part[0]}, which is never run")
    if isinstance(index.get("_class_name"), list):
        raise UserError(f"{folder}: its pipeline is code of the folder, which is never run")
    diffusers = import_diffusers()
    left_out = {name: None for name, part in index.items() if part == [None, None]}
    with short_errors(f"diffusers {diffusers.__version__} cannot open {folder}"):
        pipeline = diffusers.DiffusionPipeline.from_pretrained(folder, use_safetensors=True, **LOCAL_ONLY, **left_out)
    pipeline.set_progress_bar_config(disable=True)
    if denoiser(pipeline) is None:
        raise UserError(f"{folder} is a {type(pipeline).__name__}, which has no {' or '.join(DENOISERS)} to look at")
    return pipeline.to(device)


def denoiser(pipeline: Any) -> Any:
    """The model of a pipeline that removes noise; None if it has none."""
    return next((part for name in DENOISERS if (part := getattr(pipeline, name, None)) is not None), None)


def import_diffusers() -> Any:
    """Import diffusers and disable its messages. Raises UserError if it is not installed."""
    import_transformers()
    try:
        import diffusers
    except ImportError:
        raise UserError("a text-to-image pipeline needs the diffusers library: pip install diffusers") from None
    diffusers.utils.logging.set_verbosity(logging.CRITICAL)
    diffusers.utils.logging.disable_progress_bar()
    return diffusers
