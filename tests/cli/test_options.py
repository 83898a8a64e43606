"""Every option that takes a number or a name says in one line what it must be."""

import re
from typing import Any

import pytest

from foveate.cli.effect import EffectOptions
from foveate.cli.explore import Explore
from foveate.cli.help import full_help
from foveate.cli.look import Look
from foveate.cli.parse import parse
from foveate.errors import UserError

INPUTS = {"look": ("model", "input"), "effect": ("model", "input"), "explore": ("model",)}

USAGE = re.compile(r"^│ (--[\w.-]+) (\S*(?:\[.*\]|INT|FLOAT)\S*)", re.MULTILINE)


@pytest.mark.parametrize(("kind", "command"), [(Look, "look"), (EffectOptions, "effect"), (Explore, "explore")])
def test_a_value_of_another_kind(kind: Any, command: str) -> None:
    usage = dict(USAGE.findall(re.sub(r"\x1b\[[0-9;]*m", "", full_help(kind, command, {}))))
    numbers = [flag for flag, pattern in usage.items() if re.search(r"\b(INT|FLOAT)\b", pattern)]
    assert "--max-tokens" in numbers
    for flag in numbers:
        for given in (["x"], ["1", "x"] if "[" in usage[flag] else ["1.5"]):
            with pytest.raises(UserError) as wrong:
                parse(kind, [*INPUTS[command], flag, *given], command)
            assert re.fullmatch(rf"{flag} is '{' '.join(given)}', but must be (a )?whole numbers?", str(wrong.value))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--measure", "value"], "unknown --measure 'value'; did you mean values?"),
        (["--measure", "weights", "7"], "unknown --measure '7'; known: difference, gradients, relevance, "),
        (["--max-tokens"], "--max-tokens needs a value"),
        (["--max-tokens=many"], "--max-tokens is 'many', but must be a whole number"),
    ],
)
def test_names_and_missing_values(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        parse(Look, ["model", "input", *arguments], "look")
