"""Models whose folder has no tokenizer as Hugging Face folders, with all else that the folder says."""

from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.preprocessors import PREPROCESSOR, PROCESSOR
from foveate.interop.public_folder import MODEL_TYPES, layout_at, layout_for, write_folder
from foveate.tasks.export.folders import TOKENIZERS, copy_files, fields_left
from foveate.tasks.export.labels import pair_as_text
from foveate.tasks.hf.generation import GENERATION
from foveate.tasks.hf.model_alone import ModelAlone


def is_alone(skill: Any) -> bool:
    """Whether the folder of a model lacks its tokenizer."""
    return isinstance(skill, ModelAlone)


def export_alone(skill: ModelAlone, folder: Path) -> str:
    """Write the folder of a model; the class of transformers that opens it.

    Raises UserError for a model without a head, and for one that transformers does not have.
    """
    if skill.task.name == "embed":
        raise UserError(f"transformers has no class for the models of `{skill.task.name}`: they are not exported")
    assert skill.folder is not None
    family, model = str(skill.description["family"]), skill.model.to("cpu")
    if skill.task.name == "pair":
        model = pair_as_text(model, family)
    config: Any = model.config
    layout = layout_for(family, config)
    values, public = read_json(skill.folder / run_dir.CONFIG), layout.write_config(config)
    parts = {name: values[name] | part for name, part in public.items() if isinstance(part, dict) and name in values}
    more = fields_left(skill.folder, family, model) | parts
    if layout_at(MODEL_TYPES[values["model_type"]]) is not layout:  # equal models of another type, as HuBERT's are
        more |= {name: public[name] for name in ("model_type", "architectures")}
    write_folder(folder, family, model, more)
    copy_files(skill.folder, folder, (*TOKENIZERS, PREPROCESSOR, PROCESSOR, GENERATION))
    return str(read_json(folder / run_dir.CONFIG)["architectures"][0])
