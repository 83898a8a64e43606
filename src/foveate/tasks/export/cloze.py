"""Trained BERTs and XLNets that fill in words as Hugging Face folders, with the same logits in transformers."""

from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.interop.public_folder import write_folder
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.export.labels import write_bert
from foveate.tasks.filler import Filler

CLASSES = {"bert": "AutoModelForMaskedLM", "xlnet": "XLNetLMHeadModel"}
"""What transformers opens the models of each family with."""


def fills_in_words(task: Any) -> bool:
    """Whether it was trained by `foveate train cloze`."""
    return type(task) is Filler


def export_cloze(skill: Filler, folder: Path) -> str:
    """Write the folder of a model that fills in words; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have.
    """
    family = str(skill.description["family"])
    if family not in CLASSES:
        raise UserError(f"transformers has no model like {skill.recipe.model}: a BERT and an XLNet are exported")
    own = skill.processor.reads.tokenizer
    special = own.special
    values = {"pad_token_id": special.pad, "bos_token_id": special.start, "eos_token_id": special.end}
    if family == "bert":
        write_bert(folder, skill.model, values)
    else:
        write_folder(folder, family, skill.model, values)
    public_tokenizer(own, [special.start], [special.end]).write_folder(folder)
    return CLASSES[family]
