"""How a folder of the sentence-transformers project makes one vector of many."""

from pathlib import Path

from foveate import bundle
from foveate.errors import UserError
from foveate.files import read_json, read_json_value

MODULES, MODULES_READ = "modules.json", ("Transformer", "Pooling", "Normalize")
"""The file of the sentence-transformers project, and what it may list."""

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
    config = folder / kinds.get("Pooling", "") / bundle.CONFIG
    values = read_json(config) if "Pooling" in kinds and config.is_file() else {}
    ways = [name.removeprefix("pooling_mode_") for name, on in values.items() if on is True and name in _MODES]
    ways += [values["pooling_mode"]] if isinstance(values.get("pooling_mode"), str) else []
    known = {"mean_tokens": "mean", "mean": "mean", "cls_token": "first", "cls": "first"}
    if len(ways) > 1 or (ways and ways[0] not in known):
        raise UserError(f"{config} names a way to make one vector that foveate has not: it has mean and first token")
    return known[ways[0]] if ways else "mean", "Normalize" in kinds


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
