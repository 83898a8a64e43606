"""Trained models that label, judge or find a part of what they read as Hugging Face folders, with the same logits in
transformers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from foveate import models
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.forms.reward import Reward
from foveate.forms.span import AskedRow, Spans
from foveate.forms.tagged_words import Tags
from foveate.forms.text_pair import PairText
from foveate.interop.layout import written_labels
from foveate.interop.public_folder import is_public, layout_for, write_folder
from foveate.tasks.completion.exporting import public_pair_tokenizer, public_tokenizer
from foveate.tasks.export.folders import TOKENIZERS, copy_files, fields_left
from foveate.tasks.skill import Skill

CLASSES = {
    "classify": "AutoModelForSequenceClassification",
    "pair": "AutoModelForSequenceClassification",
    "reward": "AutoModelForSequenceClassification",
    "tag": "AutoModelForTokenClassification",
    "ask": "AutoModelForQuestionAnswering",
}
"""What transformers opens the models of each task with."""

EXACT = 1e-5
"""How far a bias may be from what another layer's bias makes of it."""


def gives_labels(task: Any) -> bool:
    """Whether it is a model of one of these tasks."""
    return isinstance(task, Skill) and task.task.name in CLASSES


def export_labels(skill: Skill, folder: Path) -> str:
    """Write the folder of such a model; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have.
    """
    family, model = str(skill.description["family"]), skill.model
    layout_for(family)
    if skill.task.name == "pair":
        model = pair_as_text(model, family)
    if skill.folder is not None and is_public(skill.folder):
        write_folder(folder, family, model, fields_left(skill.folder, family, model))
        copy_files(skill.folder, folder, TOKENIZERS)
        return CLASSES[skill.task.name]
    tokenizer = _tokenizer(skill)
    values = {**_outputs(skill.processor.writes), "pad_token_id": tokenizer.special.ids.get("pad")}
    if family == "bert":
        write_bert(folder, model, values)
    else:
        write_folder(folder, family, _without_label_bias(model, family), values)
    if family == "xlnet":
        tokenizer.config["padding_side"] = "left"  # transformers labels a text by its last column
    tokenizer.write_folder(folder)
    return CLASSES[skill.task.name]


def write_bert(folder: Path, model: nn.Module, values: Mapping[str, Any]) -> None:
    """Write a BERT; `values` are further fields of its `config.json`, "pad_token_id" among them.

    Raises UserError for a model that transformers does not have.
    """
    config: Any = model.config
    first = (config.position_offset or 0) - 1
    if first >= 0 and (pad := values.get("pad_token_id", first)) != first:
        raise UserError(f"transformers' RoBERTa counts positions from its padding token, {first}, but here it is {pad}")
    write_folder(folder, "bert", model, values)


def _tokenizer(skill: Skill) -> PublicTokenizer:
    """The tokenizer, with what the task reads around a text or a pair."""
    reads: Any = skill.processor.reads
    if isinstance(reads, PairText):
        return public_pair_tokenizer(reads.tokenizer, reads.signs, reads.segments)
    if isinstance(reads, AskedRow):
        return public_pair_tokenizer(reads.tokenizer, reads.tokenizer.around_pairs, reads.segments)
    return public_tokenizer(reads.tokenizer, *reads.around)


def _outputs(writes: Any) -> dict[str, Any]:
    """What `config.json` says of the logits: the names of labels, or that one is a number."""
    if isinstance(writes, Spans):
        return {}
    if isinstance(writes, Reward):
        return written_labels(["reward"], "number")
    if isinstance(writes, Tags):
        return written_labels([*writes.lexicon.tags])
    return written_labels([*writes.labels], writes.scores)


def pair_as_text(model: nn.Module, family: str) -> nn.Module:
    """The same model with the head of a text, which has the same layers: transformers labels pairs with it too."""
    made = models.build(family, replace(cast(Any, model).config, head="text"))
    made.load_state_dict(model.state_dict())
    return made.eval()


def _without_label_bias(model: nn.Module, family: str) -> nn.Module:
    """Of a language model that labels a text, the same with the bias of its labels in that of the norm before it, which
    nothing else reads, where the norm has one.

    Raises UserError if no bias of the norm gives the same logits: there are more labels than the model is wide.
    """
    config: Any = model.config
    if config.head != "text" or not getattr(config, "label_bias", False):
        return model
    state = dict(model.state_dict())
    norm = (
        "stack.norm.bias" if config.norm == "pre" else f"stack.blocks.{config.layers - 1}.around_feedforward.norm.bias"
    )
    if norm not in state or config.pooling != "last":
        return model
    bias, weight = state.pop("output.bias").double(), state["output.weight"].double()
    change = torch.linalg.pinv(weight) @ bias
    if not torch.allclose(weight @ change, bias, atol=EXACT, rtol=0):
        raise UserError(f"transformers' GPT has no bias for labels, and {len(bias)} labels need one at this width")
    state[norm] = (state[norm].double() + change).to(state[norm].dtype)
    made = models.build(family, replace(config, label_bias=False))
    made.load_state_dict(state)
    return made.eval()
