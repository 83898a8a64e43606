"""The low-rank updates of a run, written for another library."""

from pathlib import Path
from typing import Any

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.interop.peft_adapter import write_adapter
from foveate.interop.peft_merged import HEADS
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import header_of, is_public, layout_of, reads_sounds
from foveate.models.text import CAUSAL
from foveate.nn.low_rank import SCALE
from foveate.tasks.run_config import ADAPTER, describe
from foveate.tensor_files import read_tensors

TASK_TYPES = {head: name for name, head in HEADS.items()}
"""What peft calls the task of a model with a head."""


def export_adapter(folder: Path, out: Path) -> Path:
    """Write the adapter of a run that was trained with --lora, as of peft; the folder of the base model.

    Raises UserError for another run, and for a base that transformers cannot read.
    """
    description = describe(run_dir.load(folder))
    if not (folder / ADAPTER).is_file():
        raise UserError(f"{folder} has no {ADAPTER}: it was not trained with --lora")
    base = locate(str(description.recipe.get("start")))
    if not is_public(base):
        raise UserError(f"{folder} began from {base}, which is no Hugging Face folder: peft could not load it")
    layout = layout_of(base, any_head=True)
    if layout.family != description.family or layout.image_processor or reads_sounds(header_of(base).model_type):
        raise UserError(f"{folder} is a {description.family}; adapters are written for models of texts only")
    where = str(folder / run_dir.CONFIG)
    config: Any = from_dict(models.config_class(description.family), description.architecture, where)
    if layout.family == "bert" and config.head == "text" and config.pooling != "first":
        raise UserError("transformers' classifier reads the first token: train with --architecture.pooling first")
    if layout.family == "gpt-neox" and config.head == "words":  # whose output layer has another name in each version
        raise UserError(f"{folder} is a gpt-neox, of whose adapters peft makes other outputs: export the whole model")
    if config.head == "pair":
        config.head = "text"  # which transformers labels pairs with too: it has the same layers
    layout.write_config(config)  # which refuses what transformers does not have
    kind = TASK_TYPES.get(config.head) if config.head != "words" or description.family in CAUSAL else None
    state, updates = (read_tensors(folder / name).tensors for name in (run_dir.WEIGHTS, ADAPTER))
    write_adapter(out, base, layout.key_map(config), kind, state, updates, SCALE)
    return base
