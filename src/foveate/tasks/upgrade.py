"""Opens run folders of version 0.2 and earlier. It goes with version 0.4.

Their recipes had one table, `examples`, for the data and for the settings of what is now a form, and each task had a
file of its own for what it learned.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.files import read_json
from foveate.run_dir import CONFIG, PROCESSOR

OLD_NAMES = {
    "batch_tokens": "batch",
    "validation_texts": "validation_examples",
    "validation_sentences": "validation_examples",
    "validation_pairs": "validation_examples",
    "validation_passages": "validation_examples",
}
"""Settings that had other names."""

OF_OBJECTIVES = ("label_smoothing", "choice_weight", "entropy_bonus")
"""Settings that every training had, whichever its objective was."""


def upgrade_recipe(values: dict[str, Any], known: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The recipe with each setting in the part that has a field of its name now, as `known` says."""
    if {"reads", "writes"} & values.keys():
        return values
    if "base" in values:
        values["start"] = values.pop("base")
    direct = ("model", "out", "start", "lora", "lora_layers", "architecture")
    found = {name: values.pop(name) for name in direct if name in values}
    tables = {name: values.pop(name) for name in ("training", "examples") if isinstance(values.get(name), dict)}
    loose = {**values}
    for given in (*tables.values(), loose):
        for name, value in given.items():
            now = OLD_NAMES.get(name, name)
            part = next((part for part, names in known.items() if now in names), None)
            if given is loose and part in (None, "examples", "training"):
                found[name] = value  # reported as unknown
            elif part is not None:
                found.setdefault(part, {})[now] = value
            elif given is not tables.get("training"):
                found.setdefault("examples", {})[name] = value
            elif name not in OF_OBJECTIVES:
                found.setdefault("training", {})[name] = value
    return found


Values = dict[str, Any]

UPGRADES: dict[str, Callable[[Values], Values]] = {
    "translate": lambda old: {"reads": {}, "writes": {}},
    "autoencode": lambda old: {"reads": {}, "writes": {}},
    "language": lambda old: dict.fromkeys(("reads", "writes"), old["conditions.json"]),
    **dict.fromkeys(("dpo", "rlhf"), lambda old: {"reads": {}, "writes": {}}),
    "cloze": lambda old: {name: {"hiding": old["hiding"]} for name in ("reads", "writes")},
    "classify-image": lambda old: {
        "reads": _without(old, "labels", "architecture"),
        "writes": {"labels": old["labels"]},
    },
    "classify-sound": lambda old: {
        "reads": {"log_mel": old["log_mel"], "frames": old["frames"], "augment": old.get("augment", True)},
        "writes": {"labels": old["labels"]},
    },
    "answer": lambda old: {"reads": {"format": old["format"]}, "writes": {"labels": old["answers"]}},
    "match-image": lambda old: {
        "reads": {"format": _format(old)},
        "writes": {"longest": old["architecture"]["max_length"]},
    },
    "draw": lambda old: {
        "reads": {"caption_dropout": old["caption_dropout"], "longest": old["architecture"]["max_length"]},
        "writes": {"learned": old["palette"]},
    },
    "caption": lambda old: {"reads": {"format": _format(old)}, "writes": {}},
    "read": lambda old: {
        "reads": {name: old[name] for name in ("height", "width", "augment")},
        "writes": {"characters": old["characters"]},
    },
    "detect": lambda old: {
        "reads": {name: old[name] for name in ("size", "augment")},
        "writes": {name: old[name] for name in ("labels", "usual_box", "denoising")},
    },
    "classify": lambda old: {"reads": {}, "writes": {"labels": old["labels.json"]["counts"]}},
    "tag": lambda old: {"reads": {}, "writes": {}},
    "reward": lambda old: {"reads": {}, "writes": {}},
    "embed": lambda old: {"reads": {}, "writes": {}},
    "match": lambda old: {"reads": {}, "writes": {"thresholds": old["rules.json"]["thresholds"]}},
    "ask": lambda old: {"reads": {}, "writes": {"labels": old["answers"]}},
    "pair": lambda old: {
        "reads": {"segments": old["labels.json"]["segments"]},
        "writes": {"labels": old["labels.json"]["counts"], "rules": old["labels.json"].get("rules", {})},
    },
    "gan": lambda old: {"reads": {"labels": old["labels"]}, "writes": {"format": old["format"]}},
    "walk": lambda old: {"reads": {"words": old["words"]}, "writes": {"sights": old["sights"]}},
    "control": lambda old: {
        "reads": {name: old[name] for name in ("words", "channels", "views") if name in old},
        "writes": {"count": old["actions"], "kind": old.get("kind", "choices")},
    },
    "speak": lambda old: {
        "reads": {name: old[name] for name in ("characters", "texts")},
        "writes": {name: old[name] for name in ("codec", "longest")},
    },
    "transcribe": lambda old: {
        "reads": {"log_mel": old["log_mel"], "longest": old["longest"], "augment": old.get("augment", True)},
        "writes": {name: old[name] for name in ("characters", "frequent")},
    },
    "complete-image": lambda old: {
        "reads": _without(old, "architecture"),
        "writes": {"format": old["format"], "levels": old["levels"]},
    },
}
"""What of an old `processor.json` (and of the files beside it, by their names) each form has now."""


def upgrade_processor(task: str, folder: Path) -> Values:
    """What processor.json says in this version, from the files of an earlier one. Raises UserError for damaged ones."""
    names = (PROCESSOR, "labels.json", "lexicon.json", "conditions.json", "rules.json")
    files = {name: read_json(folder / name) for name in names if (folder / name).is_file()}
    old = files.pop(PROCESSOR, {})
    files |= {"architecture": read_json(folder / CONFIG).get("architecture", {})} if (folder / CONFIG).is_file() else {}
    if task not in UPGRADES or not isinstance(old, dict):
        raise UserError(f"{folder / PROCESSOR} is damaged: it has no forms")
    try:
        return UPGRADES[task]({**old, **files})
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / PROCESSOR} is damaged: {error}") from None


def _format(old: Values) -> Values:
    """The size and the channels of images, which were a file of their own."""
    return {name: old[name] for name in ("size", "channels")}


def notes_files(description: Mapping[str, Any]) -> bool:
    """Whether a run notes digests of its files of text: for cloze, version 0.2 noted those of passages."""
    return description.get("task") != "cloze" or "reads" in description.get("recipe", {})


def _without(values: Values, *names: str) -> Values:
    return {name: value for name, value in values.items() if name not in names}
