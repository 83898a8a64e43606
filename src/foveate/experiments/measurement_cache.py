"""Measurements that take long are made once: an interrupted comparison goes on where it was."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveate.errors import UserError
from foveate.experiments.comparison import conditions
from foveate.files import written
from foveate.training.hardware import wants_bfloat16


def measure_once(
    path: Path, of: dict[str, Any], measure: Callable[[], Any], conditions: Callable[[], str] = conditions
) -> Any:
    """What `measure` gives, which JSON can hold: from `path` if it is there already, else it is written there, with
    the `conditions` that it was measured under.

    `of` says what is measured, in JSON values; it is written before, so that a training that was broken off on the way
    is not continued as another one. Raises UserError if the file is of something else, or damaged.
    """
    if path.is_file():
        found = _read(path)
        if other := [name for name in {**found["of"], **of} if found["of"].get(name) != of.get(name)]:
            raise UserError(
                f"{path.parent} was begun with another {other[0]}, {found['of'].get(other[0])!r} and not "
                f"{of.get(other[0])!r}; remove it or choose another --out"
            )
        if "measured" in found:
            return found["measured"]
    _write(path, {"of": of})
    measured = measure()
    _write(path, {"of": of, "conditions": conditions(), "measured": measured})
    return measured


def training_conditions(model: nn.Module) -> str:
    """What this process trains such a model with, where its precision is left to `training`."""
    precision = "bfloat16" if wants_bfloat16("auto", model, torch.device("cpu")) else "float32"
    return f"{conditions()}, in {precision}"


def conditions_note(paths: Mapping[str, Path]) -> list[str]:
    """A note for all conditions under which what is at these paths was trained and measured, now or earlier."""
    found: dict[str, list[str]] = {}
    for name, path in paths.items():
        found.setdefault(_read(path).get("conditions", "what an earlier version did not keep"), []).append(name)
    if len(found) == 1:
        return [f"Trained with {next(iter(found))}."]
    return [f"Trained with {conditions}: {', '.join(names)}." for conditions, names in found.items()]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("of"), dict):
        raise UserError(f"{path} is damaged; remove it, and it is measured again")
    return found


def _write(path: Path, found: dict[str, Any]) -> None:
    with written(path) as temporary:
        temporary.write_text(json.dumps(found, indent=1), encoding="utf-8")
