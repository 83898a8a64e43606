"""Trained BERTs and XLNets that fill in words as Hugging Face folders, with the same logits in transformers."""

from pathlib import Path
from typing import Any, cast

from foveate import run_dir
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.public_folder import write_folder
from foveate.special_tokens import Role
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.export.labels import write_bert
from foveate.tasks.filler import Filler
from foveate.tasks.hf.fillers import PublicFiller

CLASSES = {"bert": "AutoModelForMaskedLM", "deberta": "AutoModelForMaskedLM", "xlnet": "XLNetLMHeadModel"}
"""What transformers opens the models of each family with."""


ROLES: dict[str, Role] = {"pad_token_id": "pad", "bos_token_id": "start", "eos_token_id": "end"}
"""The numbers of tokens in `config.json`."""


def fills_in_words(task: Any) -> bool:
    """Whether it fills in words: trained by `foveate train cloze`, or of a Hugging Face folder."""
    return isinstance(task, Filler)


def export_cloze(skill: Filler, folder: Path) -> str:
    """Write the folder of a model that fills in words; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have.
    """
    family = str(skill.description["family"])
    if family not in CLASSES:
        raise UserError(f"transformers has no model like {skill.recipe.model}: a BERT and an XLNet are exported")
    own = skill.processor.reads.tokenizer
    values = _numbers_of_tokens(skill)
    if family == "bert":
        write_bert(folder, skill.model, values)
    else:
        write_folder(folder, family, skill.model, values)
    if isinstance(own, PublicTokenizer):
        own.write_folder(folder)
    else:
        public_tokenizer(own, [own.special.start], [own.special.end]).write_folder(folder)
    return CLASSES[family]


def _numbers_of_tokens(skill: Filler) -> dict[str, Any]:
    """The special tokens in `config.json`, as the public folder has them or by the tokenizer's roles."""
    if isinstance(skill, PublicFiller):
        values = read_json(cast(Path, skill.folder) / run_dir.CONFIG)
        return {name: values[name] for name in ROLES if name in values}
    special = skill.processor.reads.tokenizer.special
    return {name: special[role] if role != "pad" else special.pad for name, role in ROLES.items()}
