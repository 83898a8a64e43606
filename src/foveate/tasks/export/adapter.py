"""The low-rank updates of a run, written for another library."""

from pathlib import Path
from typing import Any

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.interop.peft_adapter import write_adapter
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import is_public
from foveate.nn.low_rank import SCALE
from foveate.tasks.run_config import ADAPTER, describe
from foveate.tensor_files import read_tensors


def export_adapter(folder: Path, out: Path) -> Path:
    """Write the adapter of a run that was trained with --lora, as of peft; the folder of the base model.

    Raises UserError for another run, and for a base that transformers cannot read.
    """
    description = describe(run_dir.load(folder))
    if not (folder / ADAPTER).is_file():
        raise UserError(f"{folder} has no {ADAPTER}: it was not trained with --lora")
    if description.family != "bert":
        raise UserError(f"{folder} is a {description.family}; adapters are written for BERT and RoBERTa only")
    base = locate(str(description.recipe.get("start")))
    if not is_public(base):
        raise UserError(f"{folder} began from {base}, which is no Hugging Face folder: peft could not load it")
    config: Any = from_dict(models.config_class("bert"), description.architecture, str(folder / run_dir.CONFIG))
    state = read_tensors(folder / run_dir.WEIGHTS).tensors
    write_adapter(out, base, config, state, read_tensors(folder / ADAPTER).tensors, SCALE)
    return base
