"""Models that compare images and texts as Hugging Face folders, with the same logits in transformers."""

import json
import string
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, normalizers
from torch import nn

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.swapped_ids import with_swapped_ids
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.files import written
from foveate.forms.public_match import PublicFit
from foveate.interop.preprocessors import PREPROCESSOR
from foveate.interop.public_folder import is_public, layout_for, write_folder
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.export.image_writers import folder_tokenizer, write_again
from foveate.tasks.export.images import preprocessing
from foveate.tasks.skill import Skill

LARGEST_ID = 2
"""Where a CLIP's config names this token as the end of a text, transformers takes the one with the largest id."""


def compares_images(skill: Any) -> bool:
    """Whether a skill compares images and texts."""
    return isinstance(skill, Skill) and skill.task.name == "match-image"


def export_matcher(skill: Skill, folder: Path) -> str:
    """Write the folder of a model; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have, before anything is written.
    """
    family, model = str(skill.description["family"]), skill.model.to("cpu")
    config: Any = model.config
    public = layout_for(family, config).write_config(config)
    opens = str(public["architectures"][0])
    if skill.folder is not None and is_public(skill.folder):
        write_again(skill.folder, folder, family, model)
        return opens
    writes: PublicFit = skill.processor.writes
    end = writes.around[1][-1:] or [writes.tokenizer.special.end]
    tokenizer, ends_with = _tokenizer(writes), end[0]
    if config.kind == "clip" and ends_with == LARGEST_ID:
        ends_with = config.vocabulary - 1
        model, tokenizer = _with_swapped_ids(model, tokenizer, LARGEST_ID, ends_with)
    ids = {"eos_token_id": ends_with, "pad_token_id": writes.tokenizer.special.pad}
    write_folder(folder, family, model, {"text_config": public["text_config"] | ids})
    with written(folder / PREPROCESSOR) as path:
        path.write_text(json.dumps(preprocessing(skill, family), indent=2) + "\n", encoding="utf-8")
    tokenizer.write_folder(folder)
    return opens


def _with_swapped_ids(
    model: nn.Module, tokenizer: PublicTokenizer, first: int, second: int
) -> tuple[nn.Module, PublicTokenizer]:
    """The same model and tokenizer, in which two tokens have each other's number."""
    found: Any = deepcopy(model)
    with torch.no_grad():
        weight = found.token_embedding.weight
        weight[[first, second]] = weight[[second, first]]
    return found, PublicTokenizer(with_swapped_ids(tokenizer.copy(), first, second), tokenizer.config)


def _tokenizer(writes: PublicFit) -> PublicTokenizer:
    own, around = writes.tokenizer, [list(tokens) for tokens in writes.around]
    found = folder_tokenizer(own) if isinstance(own, TextTokenizer) else public_tokenizer(own, *around)
    if not writes.plain:
        return found
    own = found.copy()
    marks = "".join(f"\\{mark}" for mark in string.punctuation)
    plain = [normalizers.Replace(Regex(f"[{marks}]"), ""), normalizers.Lowercase()]
    plain += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    own.normalizer = normalizers.Sequence([*plain, *([own.normalizer] if own.normalizer is not None else [])])
    return PublicTokenizer(own, found.config)
