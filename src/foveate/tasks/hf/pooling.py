"""How a folder of the sentence-transformers project makes one vector of many."""

from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.errors import UserError, show_value
from foveate.files import read_json, read_json_value

MODULES, MODULES_READ = "modules.json", ("Transformer", "Pooling", "Normalize")
"""The file of the sentence-transformers project, and what it may list."""

SETTINGS, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
"""What it says of prompts, and of its Transformer."""

_MODES = tuple(
    f"pooling_mode_{way}"
    for way in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
)


def embeds_sentences(folder: Path) -> bool:
    """Whether it is a folder of the sentence-transformers project, whose model gives one vector of many."""
    return "Pooling" in _modules(folder)


def read_pooling(folder: Path) -> tuple[str, bool]:
    """How such a folder makes one vector of many: "mean" or "first", and whether it is normalized.

    A folder without a word on this has the normalized mean. Raises UserError for another way, or a further layer.
    """
    kinds = _modules(folder)
    if not kinds:
        return "mean", True
    if further := sorted(kinds.keys() - {*MODULES_READ}):
        raise UserError(f"{folder / MODULES} names a {further[0]}; foveate reads {', '.join(MODULES_READ)}")
    config = folder / kinds.get("Pooling", "") / run_dir.CONFIG
    values = read_json(config) if "Pooling" in kinds and config.is_file() else {}
    ways = [name.removeprefix("pooling_mode_") for name, on in values.items() if on is True and name in _MODES]
    ways += [values["pooling_mode"]] if isinstance(values.get("pooling_mode"), str) else []
    known = {"mean_tokens": "mean", "mean": "mean", "cls_token": "first", "cls": "first"}
    if len(ways) > 1 or (ways and ways[0] not in known):
        raise UserError(f"{config} names a way to make one vector that foveate has not: it has mean and first token")
    return known[ways[0]] if ways else "mean", "Normalize" in kinds


def read_prompt(folder: Path) -> str:
    """What such a folder puts before each text by default; empty where it names nothing.

    Raises UserError for a setting of `config_sentence_transformers.json`, `sentence_bert_config.json` or the pooling
    that foveate does not obey.
    """
    values = _read(folder / SETTINGS)
    if values.get("truncate_dim") is not None:
        raise UserError(f"{folder / SETTINGS} has truncate_dim {values['truncate_dim']!r}, which foveate does not obey")
    name, prompts = values.get("default_prompt_name"), values.get("prompts") or {}
    if name is None:
        return ""
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    if not isinstance(prompt, str):
        raise UserError(f"{folder / SETTINGS} has default_prompt_name {show_value(name)}, but no such prompt")
    pooling = _read(folder / _modules(folder).get("Pooling", "") / run_dir.CONFIG)
    if prompt and pooling.get("include_prompt") is False:
        raise UserError(f"{folder} has include_prompt false in its pooling, which foveate does not obey")
    return prompt


def read_max_length(folder: Path, most: int) -> int:
    """The tokens of a text that such a folder reads, at most `most`. Raises UserError for what cannot be."""
    values = _read(folder / TRANSFORMER)
    length = values.get("max_seq_length") or most
    if type(length) is not int or length < 1:
        raise UserError(f"{folder / TRANSFORMER} has max_seq_length {show_value(length)}, which cannot be")
    return min(length, most)


def lowercases(folder: Path) -> bool:
    """Whether such a folder reads lower case, whatever its tokenizer does."""
    return bool(_read(folder / TRANSFORMER).get("do_lower_case"))


def _read(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}


def _modules(folder: Path) -> dict[str, str]:
    """What `modules.json` lists, each with its folder; nothing where there is no such file."""
    if not (folder / MODULES).is_file():
        return {}
    try:
        modules = read_json_value(folder / MODULES)
        return {str(module["type"]).rpartition(".")[2]: str(module.get("path", "")) for module in modules}
    except UserError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / MODULES} is damaged: {error}") from None
