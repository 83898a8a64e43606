"""Each training that a recorded figure took, as its command stands, for two steps on examples that are made: the run
folder has the preset and the settings that the record says."""

import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fake_robot
import made_examples
import pytest
import recorded
import tiny_bert
from recorded import without

from foveate import run_dir
from foveate.cli import main
from foveate.cli.eval import Eval
from foveate.cli.folders import parse_with_task
from foveate.cli.train import PROCESSES, settings
from foveate.data.sources import babyai, panda
from foveate.data.sources.splits import Splits
from foveate.files import read_json
from foveate.forms.prose import ReadProse
from foveate.interop.pretrained import efficientnet, minilm
from foveate.tasks import find_task
from foveate.tasks.recipe import Recipe
from foveate.tasks.task import Task

RECORDS = {name: record for name, record in recorded.RECORDS.items() if record.task}

SHORT = {
    "--steps": "2",
    "--validate-every": "2",
    "--save-every": "2",
    "--warmup": "1",
    "--log-every": "1",
    "--validation-examples": "6",
}
"""What makes a training short."""

LEFT_OUT = ("--epochs", "--minutes", PROCESSES, *SHORT)

FREE = {flag.removeprefix("--").replace("-", "_") for flag in LEFT_OUT} | {"data", "validation"}
"""The settings in which a short training differs."""


OF_DATA = ("--data", "--validation")


class Desk:
    """A folder in which commands are given, with small data in place of theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, tuple[Path, ...]] = {}
        self.given: dict[str, str] = {}
        """The newest command for each folder of a run."""

    def data(self, task: Task) -> tuple[Path, ...]:
        """The files of examples of a task: labelled images as large as those of Fashion-MNIST, prose of two kinds."""
        if task.name not in self.made:
            folder = self.folder / f"{task.name} examples"
            if made_examples.nearest(made_examples.EXAMPLES, task.reads, task.writes) is made_examples.labelled_images:
                folder.mkdir()
                self.made[task.name] = made_examples.labelled_images(folder, 28).data
            else:
                self.made[task.name] = made_examples.examples_of(task, folder).data
            if isinstance(task.reads, ReadProse):
                (first,) = self.made[task.name]
                self.made[task.name] = first, Path(shutil.copy(first, folder / "verse.txt"))
        return self.made[task.name]

    def words(self, command: str) -> list[str]:
        """The words of a command behind `foveate train`, with data that there are."""
        _foveate, _train, task, *words = shlex.split(command)
        found, flag = [task], ""
        for word in words:
            flag = word if word.startswith("--") else flag
            if word in OF_DATA:
                found += [word, *map(str, self.data(find_task(task)))]
            elif flag not in OF_DATA:
                found.append(word)
        return found

    def give(self, command: str) -> Path:
        """Gives a command and returns the folder of its run. What was given before is there already."""
        words = without(self.words(command), LEFT_OUT)
        out = words[words.index("--out") + 1]
        if self.given.get(out) != command:
            shutil.rmtree(out, ignore_errors=True)  # of another record
            main(["train", *words, *(part for pair in SHORT.items() for part in pair)])
            self.given[out] = command
        return Path(out)

    def recipe(self, command: str) -> dict[str, Any]:
        """What a command says, in plain values."""
        task, *flags = self.words(command)
        found: dict[str, Any] = settings(task, without(flags, [PROCESSES])).as_json()
        return found


def small_source(task: Task, name: str, recipe: Recipe, desk: Desk) -> Splits[Any]:
    """The examples in place of data by name. Those that this machine makes are the source's own, but few."""
    if task.name == "control":
        return OPEN_SOURCE(task, name, recipe)
    part = task.read(desk.data(task), recipe)
    return Splits(part, part, part)


OPEN_SOURCE = Task.open_source


def random_weights(name: str, folder: Path, desk: Desk) -> Path:
    """Weights of the sizes of those of a name, which learned nothing."""
    if name == "minilm":
        sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
        return tiny_bert.write_folder(folder, initial=True, max_position_embeddings=512, **sizes)
    assert name == "efficientnet-lite0"
    return desk.give(f"foveate train classify-image fashion-mnist --model {name} --size 32 --out {folder}")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    found = Desk(tmp_path_factory.mktemp("desk"))
    weights: dict[str, Path] = {}

    def fetch(name: str, before_fetch: object) -> Path:
        if name not in weights:
            weights[name] = random_weights(name, found.folder / f"weights-{name}", found)
        return weights[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found.folder)
        patch.setenv("FOVEATE_CACHE", str(found.folder / "cache"))
        patch.setattr(Task, "open_source", lambda task, name, recipe: small_source(task, name, recipe, found))
        patch.setattr(minilm, "fetch", partial(fetch, "minilm"))
        patch.setattr(efficientnet, "fetch", partial(fetch, "efficientnet-lite0"))
        for source in (babyai, panda):
            patch.setattr(source, "EPISODES", made_examples.COUNT)
            patch.setattr(source, "COUNTS", (2, 2))
        fake_robot.install(patch)
        yield found


def differing(said: Any, kept: Any, name: str = "") -> list[str]:
    """The names of the settings that a run does not have as its command says them; what data decides is 0 there."""
    if isinstance(said, dict):
        inner = {key: kept.get(key) if isinstance(kept, dict) else None for key in said}
        return [found for key, value in said.items() for found in differing(value, inner[key], f"{name}.{key}")]
    free = name.rpartition(".")[2] in FREE
    return [] if free or said == kept or (name.startswith(".architecture.") and not said) else [name]


@pytest.mark.parametrize("name", RECORDS)
def test_a_recorded_training_runs(name: str, desk: Desk) -> None:
    record = RECORDS[name]
    for command in record.before:
        desk.give(command)
    folder = desk.give(record.command)
    kept = read_json(folder / run_dir.CONFIG)["recipe"]
    said = desk.recipe(record.command)
    assert kept["model"] == record.preset
    assert differing(said, kept) == []
    parse_with_task(Eval, shlex.split(str(record.measured))[2:], "eval").options.check()


def test_a_run_of_another_command_is_told_from_it(desk: Desk) -> None:
    command = RECORDS["acceptor"].command
    kept = read_json(desk.give(command) / run_dir.CONFIG)["recipe"]
    assert differing(desk.recipe(f"{command} --learning-rate 0.5 --no-lowercase"), kept) == [
        ".reads.lowercase",
        ".training.learning_rate",
    ]
    assert differing(desk.recipe(command.replace("movie-sentiment", "exchanged-words")), kept) == [".examples.source"]
