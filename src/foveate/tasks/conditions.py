"""The names of the kinds of text that a language model was trained to tell apart, as its run folder keeps them."""

import json
from collections.abc import Sequence
from pathlib import Path

from foveate.errors import UserError
from foveate.files import read_json

CONDITIONS = "conditions.json"


def save_conditions(names: Sequence[str], path: Path) -> None:
    path.write_text(json.dumps({"conditions": list(names)}, ensure_ascii=False) + "\n", encoding="utf-8")


def load_conditions(path: Path, count: int) -> list[str]:
    """The `count` names in a file of `save_conditions`. Raises UserError for a file with something else in it."""
    names = read_json(path).get("conditions")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path} is damaged: {names!r} stands where a list of names must be")
    if len(names) != count:
        raise UserError(
            f"{path} has {len(names)} conditions, but the model {count}: probably they are of two different models"
        )
    return names
