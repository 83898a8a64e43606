"""Trained classifiers of texts or pairs and taggers of words as Hugging Face folders, with the same logits in
transformers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from foveate import models
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.forms.public_text import PublicText
from foveate.forms.tagged_words import Tags
from foveate.forms.text_pair import PairText
from foveate.interop.public_folder import write_folder
from foveate.tasks.completion.exporting import public_pair_tokenizer, public_tokenizer
from foveate.tasks.skill import Skill

CLASSES = {
    "classify": "AutoModelForSequenceClassification",
    "pair": "AutoModelForSequenceClassification",
    "tag": "AutoModelForTokenClassification",
}
"""What transformers opens the models of each task with."""

EXACT = 1e-5
"""How far a bias may be from what another layer's bias makes of it."""


def gives_labels(task: Any) -> bool:
    """Whether it is a trained classifier of texts or of pairs, or a tagger."""
    trained_here = isinstance(task, Skill) and not isinstance(task.processor.reads, PublicText)
    return trained_here and task.task.name in CLASSES


def export_labels(skill: Skill, folder: Path) -> str:
    """Write the folder of a classifier of texts or of pairs, or a tagger; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have.
    """
    family, model = str(skill.description["family"]), skill.model
    if family not in ("bert", "gpt"):
        name = skill.recipe.model
        raise UserError(f"transformers has no model like {name}: of those with labels, a BERT and a GPT are exported")
    tokenizer = _tokenizer(skill)
    values = {**_labels(_label_names(skill)), "pad_token_id": tokenizer.special.pad}
    if family == "gpt":
        write_folder(folder, family, _without_label_bias(model), values)
    else:
        write_bert(folder, _pair_as_text(model) if skill.task.name == "pair" else model, values)
    tokenizer.write_folder(folder)
    return CLASSES[skill.task.name]


def write_bert(folder: Path, model: nn.Module, values: Mapping[str, Any]) -> None:
    """Write a BERT; `values` are further fields of its `config.json`, "pad_token_id" among them.

    Raises UserError for a model that transformers does not have.
    """
    config: Any = model.config
    if config.position_offset is not None and (pad := values["pad_token_id"]) != 1:
        raise UserError(f"transformers' RoBERTa counts positions from a padding token 1, but here it is {pad}")
    write_folder(folder, "bert", model, values)


def _tokenizer(skill: Skill) -> PublicTokenizer:
    """The tokenizer, with what the task reads around a text or a pair."""
    reads: Any = skill.processor.reads
    if isinstance(reads, PairText):
        return public_pair_tokenizer(reads.tokenizer, reads.signs, reads.segments)
    return public_tokenizer(reads.tokenizer, *reads.around)


def _label_names(skill: Skill) -> list[str]:
    writes = skill.processor.writes
    return list(writes.lexicon.tags if isinstance(writes, Tags) else writes.labels)


def _labels(names: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _pair_as_text(model: nn.Module) -> nn.Module:
    """The same BERT with the head of a text, which has the same layers: transformers labels pairs with it too."""
    made = models.build("bert", replace(cast(Any, model).config, head="text"))
    made.load_state_dict(model.state_dict())
    return made.eval()


def _without_label_bias(model: nn.Module) -> nn.Module:
    """The same GPT with the bias of its labels in the bias of the norm before it, which nothing else reads.

    Raises UserError if no bias of the norm gives the same logits: there are more labels than the model is wide.
    """
    config: Any = model.config
    if not config.label_bias:
        return model
    state = dict(model.state_dict())
    bias, weight = state.pop("output.bias").double(), state["output.weight"].double()
    norm = (
        "stack.norm.bias" if config.norm == "pre" else f"stack.blocks.{config.layers - 1}.around_feedforward.norm.bias"
    )
    if norm not in state:
        raise UserError("only a GPT with layer norms has a public layout")
    change = torch.linalg.pinv(weight) @ bias
    if not torch.allclose(weight @ change, bias, atol=EXACT, rtol=0):
        raise UserError(f"transformers' GPT has no bias for labels, and {len(bias)} labels need one at this width")
    state[norm] = (state[norm].double() + change).to(state[norm].dtype)
    made = models.build("gpt", replace(config, label_bias=False))
    made.load_state_dict(state)
    return made.eval()
