"""Models that write about images as Hugging Face folders, with the same logits and searches in transformers."""

import json
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.data.tokens.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.files import read_json, written
from foveate.forms.public_written import PublicTokens
from foveate.interop.preprocessors import PREPROCESSOR
from foveate.interop.public_folder import is_public, layout_for, write_folder
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.export.folders import TOKENIZERS, copy_files
from foveate.tasks.export.images import preprocessing
from foveate.tasks.export.translators import generation_values
from foveate.tasks.hf.generation import GENERATION
from foveate.tasks.hf.image_forms import BLIP_IDS
from foveate.tasks.skill import Skill


def writes_about_images(skill: Any) -> bool:
    """Whether a skill writes texts about images, with a model of two public parts."""
    return isinstance(skill, Skill) and isinstance(skill.processor.writes, PublicTokens)


def export_image_writer(skill: Skill, folder: Path) -> str:
    """Write the folder of a model; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have, before anything is written.
    """
    family, model = str(skill.description["family"]), skill.model.to("cpu")
    config: Any = model.config
    public = layout_for(family, config).write_config(config)
    opens = str(public["architectures"][0])
    if skill.folder is not None and is_public(skill.folder):
        write_again(skill.folder, folder, family, model, (GENERATION,))
        return opens
    writes = skill.processor.writes
    generation = generation_values(writes.tokenizer.special, writes.decoding, writes.rules)
    ids = {name: generation[name] for name in generation if name.endswith("_token_id")}
    if "text_config" in public:  # BLIP's, which has names of its own for the ends of a text
        own = {name: ids[f"{role}_token_id"] for name, role in BLIP_IDS.items() if f"{role}_token_id" in ids}
        ids["text_config"] = {**public["text_config"], **own}
    write_folder(folder, family, model, ids)
    for name, table in ((GENERATION, generation), (PREPROCESSOR, preprocessing(skill, family))):
        with written(folder / name) as path:
            path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    folder_tokenizer(writes.tokenizer).write_folder(folder)
    return opens


def write_again(source: Path, folder: Path, family: str, model: Any, files: tuple[str, ...] = ()) -> None:
    """Write the model of a Hugging Face folder, with all else that the folder says, its tokenizer and other `files`."""
    values, public = read_json(source / run_dir.CONFIG), layout_for(family, model.config).write_config(model.config)
    parts = {name: values[name] | part for name, part in public.items() if isinstance(part, dict)}
    others = {name: values[name] for name in values.keys() - public.keys()}
    write_folder(folder, family, model, others | parts)
    copy_files(source, folder, (*TOKENIZERS, PREPROCESSOR, *files))


def folder_tokenizer(own: Any) -> PublicTokenizer:
    """The tokenizer of a run as public ones are."""
    if not isinstance(own, TextTokenizer):
        return public_tokenizer(own, [], [own.special.end])
    named = {ROLES[role]: str(own.copy().id_to_token(number)) for role, number in own.special.ids.items()}
    return PublicTokenizer(own.copy(), named)
