"""What makes a training the same one: its task, model, data and the settings that must not change on the way."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.training.settings import FREE, REMEDIES

CHANGED_DEFAULTS = ("warmup", "schedule")
"""Settings whose defaults were others in earlier versions."""

HELD_OUT = "held_out_every"
"""The name of the share of a user's examples that is held out. Earlier versions, which did not note it, held out at
most one in twenty."""

HOLD_OUT_RULE = "held_out_by"
"""The name of the rule by which examples are held out, which versions before 2 did not note."""

HOLDING_OUT = (HELD_OUT, HOLD_OUT_RULE)

CONTENT = " (content of "
"""Separates the name of a setting and that of a file in an identity whose value is the digest of the file."""


def refuse_changes(then: Mapping[str, Any], now: Mapping[str, Any], run: Path, free: Collection[str] = FREE) -> None:
    """Raise UserError where the training in the folder `run` is another one than that of now.

    Settings of today that it lacks are passed over: earlier versions had others. Those that are `free` may change.
    """
    if now.get(HELD_OUT, 20) < 20:
        then = {HELD_OUT: 20, **then}
    if HOLD_OUT_RULE in now:
        then = {HOLD_OUT_RULE: 1, **then}
    contents = {name.partition(CONTENT)[2]: value for name, value in now.items() if CONTENT in name}
    for name in sorted(then.keys() - free, key=_importance):
        file = name.partition(CONTENT)[2]
        before, current = then[name], contents.get(file) if file else now.get(name)
        unread = current is None and (file or name in HOLDING_OUT)  # a missing file is reported where it is read
        if before == current or unread:
            continue
        if file:
            other = f"that started with another {file.removesuffix(')')}: restore it"
        elif name == "task":
            other = f"of another task, {before}: use that"
        elif name in HOLDING_OUT:
            other = f"of an earlier version, which held out other examples: `foveate finish {run}` makes a model of it"
        elif name in CHANGED_DEFAULTS:
            other = (
                f"with {name} {before!r}, not {current!r} (an earlier version's default?): resume it with {before!r}"
            )
        else:
            other = f"with {name} {before!r}, not {current!r}: resume it with {before!r}"
        raise UserError(f"{run} has a training {other}, or train in another folder")


def changed_remedies(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each of REMEDIES that changed."""
    return [
        f"{name} is now {now[name]}; it was {then[name]}" for name in REMEDIES if now[name] != then.get(name, now[name])
    ]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of mappings as one, with names like "model.width"."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def _importance(name: str) -> tuple[bool, bool, str]:
    """The order in which differing settings are reported: task and model explain most others."""
    return name != "task", name != "model", name
