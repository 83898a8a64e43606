"""Models that compare images and texts as Hugging Face folders, with the same logits in transformers."""

import json
import string
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.files import written
from foveate.forms.public_image import FILE
from foveate.forms.public_match import PublicFit
from foveate.interop.public_folder import is_public, layout_for, write_folder
from foveate.tasks.export.image_writers import folder_tokenizer, write_again
from foveate.tasks.export.images import preprocessing
from foveate.tasks.skill import Skill

LARGEST_ID = 2
"""transformers takes the token with the largest id for the end of a text where a CLIP's config says this."""


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
    if config.kind == "clip" and end[0] == LARGEST_ID:
        raise UserError("the token that ends a text is number 2, which transformers' CLIP takes for another one")
    ids = {"eos_token_id": end[0], "pad_token_id": writes.tokenizer.special.pad}
    write_folder(folder, family, model, {"text_config": public["text_config"] | ids})
    with written(folder / FILE) as path:
        path.write_text(json.dumps(preprocessing(skill, family), indent=2) + "\n", encoding="utf-8")
    _tokenizer(writes).write_folder(folder)
    return opens


def _tokenizer(writes: PublicFit) -> PublicTokenizer:
    found = folder_tokenizer(writes.tokenizer)
    if not writes.plain:
        return found
    own = found.copy()
    marks = "".join(f"\\{mark}" for mark in string.punctuation)
    plain = [normalizers.Replace(Regex(f"[{marks}]"), ""), normalizers.Lowercase()]
    plain += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    own.normalizer = normalizers.Sequence([*plain, *([own.normalizer] if own.normalizer is not None else [])])
    return PublicTokenizer(own, found.config)
