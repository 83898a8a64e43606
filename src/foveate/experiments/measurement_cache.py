"""A cache of slow measurements, so that an interrupted comparison can continue."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveate.errors import UserError
from foveate.experiments.comparison import conditions
from foveate.files import read_json, written
from foveate.training.hardware import autocast_type


def measure_once(
    path: Path, settings: dict[str, Any], measure: Callable[[], Any], conditions: Callable[[], str] = conditions
) -> Any:
    """The result of `measure`, a JSON value: from the file `path`, or measured and written there with `conditions`.

    `settings` (JSON values) identify the measurement. They are written first, so that an interrupted training is not
    resumed with other settings. Raises UserError if the file has other settings or is damaged.
    """
    if path.is_file():
        saved = _read(path)
        if other := [name for name in {**saved["of"], **settings} if saved["of"].get(name) != settings.get(name)]:
            raise UserError(
                f"{path.parent} was started with {other[0]} {saved['of'].get(other[0])!r}, not "
                f"{settings.get(other[0])!r}: remove it or choose another --out"
            )
        if "measured" in saved:
            return saved["measured"]
    _write(path, {"of": settings})
    measured = measure()
    _write(path, {"of": settings, "conditions": conditions(), "measured": measured})
    return measured


def training_conditions(model: nn.Module, device: str) -> str:
    """The conditions of this process, with the precision that `training` chooses for the model on a device."""
    precision = "bfloat16" if autocast_type("auto", model, torch.device(device)) else "float32"
    return f"{conditions(device)}, in {precision}"


def conditions_note(paths: Mapping[str, Path]) -> list[str]:
    """A note with the conditions of the results at these paths."""
    names_by_conditions: dict[str, list[str]] = {}
    for name, path in paths.items():
        names_by_conditions.setdefault(_read(path).get("conditions", "an unknown environment"), []).append(name)
    if len(names_by_conditions) == 1:
        return [f"Trained with {next(iter(names_by_conditions))}."]
    return [f"Trained with {conditions}: {', '.join(names)}." for conditions, names in names_by_conditions.items()]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except UserError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("of"), dict):
        raise UserError(f"{path} is damaged: remove it to measure again")
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    with written(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
