"""`foveate demo`: three translators in minutes."""

from collections.abc import Sequence

from foveate.cli.parse import parse
from foveate.tasks.demo import Demo, demo


def main(arguments: Sequence[str]) -> None:
    demo(parse(Demo, arguments, "demo"))
