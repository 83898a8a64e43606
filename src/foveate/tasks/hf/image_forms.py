"""The forms of Hugging Face folders whose models write about images: how images are read, and texts written."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.processor import Processor
from foveate.forms.public_image import PublicImage
from foveate.forms.public_written import PublicCaption, PublicLineText
from foveate.special_tokens import Role
from foveate.tasks.hf.generation import Generation, read_generation
from foveate.tasks.hf.translation_tokenizers import single_id

READERS = ("trocr", "mbart")
"""The decoders of folders that read what is written in an image; others describe it."""

BLIP_IDS = {"bos_token_id": "decoder_start", "sep_token_id": "eos", "pad_token_id": "pad"}
"""What BLIP calls the tokens with which a text starts and ends, and that of padding."""

LONGEST = 128
"""Tokens of a text at most, where a folder does not say."""

WRITES: dict[str, type[Any]] = {"read": PublicLineText, "caption": PublicCaption}
"""What is written, by task."""


def task_of(folder: Path) -> str:
    """The task that the model of a folder was trained for, as far as its decoder tells."""
    decoder = read_json(folder / run_dir.CONFIG).get("decoder")
    kind = decoder.get("model_type") if isinstance(decoder, Mapping) else None
    return "read" if kind in READERS else "caption"


def generation_of(folder: Path) -> Generation:
    """How the model of a folder is asked to write. Raises UserError for a setting that foveate does not obey."""
    config = read_json(folder / run_dir.CONFIG)
    if config.get("model_type") == "blip":  # whose decoder begins and ends by its own tokens, whatever the folder says
        text = config.get("text_config") or {}
        usual = {"bos_token_id": 30522, "sep_token_id": 102, "pad_token_id": 0}
        own = {f"{role}_token_id": text.get(name, usual[name]) for name, role in BLIP_IDS.items()}
        found = read_generation(folder, own, fixed=True)
    else:
        decoder = config.get("decoder") or {}
        names = [name for name in decoder if name.endswith("_token_id")]
        found = read_generation(folder, {name: decoder[name] for name in names})
    if found.decoding.max_new_tokens is None:
        found.decoding = replace(found.decoding, max_new_tokens=LONGEST)
    return found


def tokenizer_of(folder: Path, generation: Generation) -> TextTokenizer:
    """The tokenizer of a folder, whose texts begin and end with the tokens that the folder names.

    Raises UserError where it names none.
    """
    values, found = generation.values, TextTokenizer.of(PublicTokenizer.load(folder))
    ids: dict[Role, int | None] = {
        "start": single_id(values, "decoder_start_token_id", folder),
        "end": single_id(values, "eos_token_id", folder),
        "pad": single_id(values, "pad_token_id", folder),
    }
    if ids["start"] is None:
        ids["start"] = single_id(values, "bos_token_id", folder)
    ends: tuple[tuple[Role, str], ...] = (("start", "decoder_start_token_id"), ("end", "eos_token_id"))
    for role, name in ends:
        if ids[role] is None:
            raise UserError(f"{folder} names no {name}, with which a text would {role}")
    named: dict[Role, int] = {role: number for role, number in ids.items() if number is not None}
    roles = {**found.special.ids, **named}
    if values.get("model_type") == "blip":  # the start stands in place of what BERT has before a text
        return found.with_ends((), (roles["end"],), roles)
    return TextTokenizer(found.copy(), roles)


def forms_of(folder: Path, config: Any, task: str, public: bool = False) -> Processor:
    """The forms of a folder for a task: of its model as it is (`public`), or to train it further."""
    generation = generation_of(folder)
    vision = config.vision
    reads = PublicImage.of_folder(folder, getattr(vision, "image_size", 224), vision.channels)
    kind, own = WRITES[task], tokenizer_of(folder, generation)
    writes = kind(decoding=generation.decoding, tokenizer=own, rules=generation.rules, public=public)
    return Processor(reads, writes)
