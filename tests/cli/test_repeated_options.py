"""Options that take a list keep all their values, also when they are given several times."""

from dataclasses import dataclass
from pathlib import Path

from foveate.cli.aliases import gathered, repeated
from foveate.cli.parse import parse


@dataclass
class Part:
    stop: tuple[str, ...] = ()
    """Texts that end the output."""


@dataclass
class Command:
    part: Part
    data: tuple[Path, ...] = ()
    """Files to read."""
    threads: int = 1
    """Number of threads."""


def test_lists_are_joined_and_of_single_values_the_last_counts() -> None:
    words = ["--part.stop", "a", "b", "--threads", "2", "-d", "x", "--part.stop=c", "--data", "y", "--threads", "3"]
    found = parse(Command, words, "try")
    assert found == Command(Part(("a", "b", "c")), (Path("x"), Path("y")), 3)


def test_what_is_given_once_stays_as_it_is() -> None:
    assert not repeated(["run", "--stop", "a", "--threads", "-1"])
    words = ["RUN", "--threads", "-1", "--stop", "a"]
    assert gathered(words, {"--stop"}) == words
