"""`foveate finish RUN`: make a model of a training that was stopped."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate import run_dir, tasks
from foveate.cli.folders import next_commands
from foveate.cli.parse import parse
from foveate.errors import UserError
from foveate.training.folder_lock import lock_folder
from foveate.training.parallel import Processes


@dataclass
class Finish:
    """Make a model of a training that was stopped, from its newest checkpoint. The training can still be resumed."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a training that has not ended."""


def main(arguments: Sequence[str]) -> None:
    folder = parse(Finish, arguments, "finish").folder
    if run_dir.load(folder).checkpoint is None:
        raise UserError(f"{folder} has a model already: its training ended, or was finished before")
    with lock_folder(folder, Processes()):
        checkpoint = run_dir.finish(folder)
    print(f"saved {checkpoint.stem} in {folder}; try: {next_commands(tasks.load(folder), folder)}")
