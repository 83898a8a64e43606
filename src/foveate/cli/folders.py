"""What commands are given: the run folder, whose task adds flags of its own, and places to write to."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.cli.parse import parse
from foveate.data.sources.hub import is_hub_name
from foveate.errors import UserError, one_line
from foveate.files import real_path
from foveate.interop.pretrained import GGUF, PRETRAINED, locate
from foveate.interop.public_folder import is_public
from foveate.tasks import find_task, opener
from foveate.tasks.loading import Runs, load
from foveate.tasks.run_config import WRITTEN, describe
from foveate.tasks.skill import Skill


def parse_with_task(kind: Any, arguments: Sequence[str], command: str, options_of: str = "") -> Any:
    """The dataclass `kind`, filled from the arguments of a command; its `options` are those that the folder's task has
    for "run" or "eval": `options_of`, or the command itself.

    The folder is found as the first argument that is one with a config; where there is none, the first task's options
    stand for any. Raises UserError as `parse` does, and for a folder that is damaged.
    """
    after = zip(["", *arguments], arguments, strict=False)
    word = next((word for before, word in after if before != "--data" and is_model(word)), None)
    if word is None:
        options = getattr(Runs(find_task("translate")), f"{options_of or command}_options")({}, command)
        try:
            return parse(kind[type(options)], arguments, command)
        except UserError:  # perhaps for an option of the task of a model that is not there
            if arguments and not arguments[0].startswith("-"):
                load(Path(arguments[0]), "cpu")
            raise
    folder = locate(word, lambda line: print(line, file=sys.stderr))
    tell_unfinished(folder)
    where, public = str(folder / run_dir.CONFIG), is_public(folder)
    recipe = {} if public else describe(run_dir.load(folder)).recipe
    options = getattr(opener(folder), f"{options_of or command}_options")(recipe, where)
    return parse(kind[type(options)], arguments, command, kind(Path(word), options))


SUCH_AS = {"text": '"..."', "image": "photo.jpg", "audio": "sound.wav", "question": 'photo.jpg "..."'}
"""What stands for an input of each kind in a suggested command."""


def next_commands(skill: Skill, folder: Path) -> str:
    """Suggests commands for a model that was just made: run it and, if it attends, look at it."""
    command = f"{shlex.quote(str(folder))} {SUCH_AS[skill.takes]}"
    look = f", or to see where it looks: foveate look {command}" if skill.attends() else ""
    return f"foveate run {command}{look}"


def tell_unfinished(folder: Path) -> None:
    """Print a note where the training in a folder has not ended, so that its newest checkpoint is used."""
    checkpoint = run_dir.newest_checkpoint(folder)
    if checkpoint is not None:
        step = int(checkpoint.stem.removeprefix("step-"))
        print(f"{one_line(folder)}: its training has not ended; this is its model after step {step:,}", file=sys.stderr)


def is_model(word: str) -> bool:
    """Returns whether an argument is a folder with a model, or a name of trained weights."""
    files = (run_dir.CONFIG, "adapter_config.json", f"{run_dir.UNFINISHED}/{run_dir.CONFIG}")
    gguf = word.endswith(GGUF) and os.path.isfile(word)
    return (
        gguf
        or word in PRETRAINED
        or is_hub_name(word)
        or any(os.path.isfile(os.path.join(word, name)) for name in files)
    )


def check_no_part(path: Path, folder: Path, flag: str) -> None:
    """Raise UserError for a file to write to, named by a flag, that the model in the folder consists of."""
    target = real_path(path)
    if target.parent == real_path(folder) and target.name in (run_dir.CONFIG, *WRITTEN):
        raise UserError(f"{path} is a part of the model: name another {flag}")
