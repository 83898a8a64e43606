"""`foveate train TASK ...`: train a model."""

import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from foveate import models
from foveate.cli.compare import show_comparison
from foveate.cli.folders import next_commands
from foveate.cli.help import full_help, short_help
from foveate.cli.parse import parse
from foveate.data.sources import SOURCES
from foveate.errors import UserError, one_line, quoted
from foveate.files import parse_json
from foveate.limits import check_file
from foveate.tasks import TASKS, find_task, load
from foveate.tasks import train as train_task
from foveate.tasks.comparing import are_compared, compare_runs, seeds_line, short_names, whole_figures
from foveate.tasks.start.usual import NONE, usual_start
from foveate.tasks.task import Task
from foveate.training import main_process
from foveate.training.parallel.launcher import launch

USAGE = f"""usage: foveate train TASK ...

tasks: {", ".join(TASKS)}

`foveate train TASK --help` explains the options that matter most, `--help-all` every option; the options of a model are
those of its preset, so `foveate train TASK --model PRESET --help-all` shows another model's.

`--seeds N` trains N times, with seeds of their own in folders of their own, and compares them (docs/comparing-runs.md).
`--processes N` trains by N processes of this machine, which share out each step (docs/several-processes.md)."""

PROCESSES, MOST_PROCESSES = "--processes", 1024
"""The flag of the number of processes on this machine, and the most."""

SEEDS, MOST_SEEDS = "--seeds", 100
"""The flag of the number of trainings that differ in their seeds, and the most."""

BATCH_FLAGS = ("--batch", "--batch-tokens", "--text.batch", "--text.batch-tokens")
"""Flags with the size of a batch, which is not made smaller where it is given."""

ARCHITECTURE = "--architecture."
"""What flags of a model's fields begin with."""

MOST_NAMED = 3
"""Presets that an error names."""

MATTER = (
    *("--data", "--validation", "--text.data", "--text.validation", "--model", "--from", "--out"),
    *("--epochs", "--minutes", "--learning-rate", "--batch", "--threads", "--device"),
)
"""The options that `--help` explains, in this order."""


def main(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    count, arguments = _take_flag(arguments, PROCESSES)
    if count is not None and "RANK" not in os.environ and (processes := _number(PROCESSES, count, MOST_PROCESSES)) > 1:
        sys.exit(launch(processes, ["train", *arguments]))
    task, *rest = arguments or [""]
    rest = _with_start(task, rest)
    seeds, rest = _take_flag(rest, SEEDS)
    if seeds is not None:
        _train_seeds(task, rest, _number(SEEDS, seeds, MOST_SEEDS))
        return
    kind, default = _read_begun(task, rest)
    if {"-h", "--help"} & set(rest):
        print(short_help(full_help(kind, f"train {task}", {"default": default}), MATTER, usual_commands(task)))
        return
    recipe = settings(task, rest)
    predictor = train_task(recipe)
    if main_process():
        print(f"saved in {one_line(recipe.out)}; try: {next_commands(predictor, recipe.out)}")


def _number(flag: str, given: str, most: int) -> int:
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise UserError(f"{flag} is {quoted(given)}, but must be a number from 1 to {most}")
    return int(given)


def _with_start(task: str, arguments: Sequence[str]) -> list[str]:
    """The arguments with the weights that the task begins from where data are few, unless they name weights, a model or
    its fields; `--from none` is taken away."""
    start, rest = _take_flag(arguments, "--from")
    if start == NONE:
        return rest
    names = {word.partition("=")[0] for word in arguments}
    chosen = names & {"--from", "--model", "-m", "--config", "-h", "--help", "--help-all"}
    page = find_task(task)
    if chosen or getattr(page, "usual_start", None) is None or any(name.startswith(ARCHITECTURE) for name in names):
        return list(arguments)
    found = usual_start(page, settings(task, _take_flag(arguments, SEEDS)[1]))
    return [*arguments, *([] if found is None else ["--from", found])]


def _train_seeds(task: str, arguments: Sequence[str], count: int) -> None:
    """Train several times, each with a seed of its own in a folder of its own, and compare."""
    usual = settings(task, arguments)
    folders = [usual.out / f"seed-{usual.training.seed + number}" for number in range(count)]
    for number, folder in enumerate(folders):
        print(f"{one_line(folder)}: {number + 1} of {count}", flush=True)
        recipe = settings(task, arguments)
        recipe.out, recipe.training.seed = folder, usual.training.seed + number
        train_task(recipe)
    if count > 1 and main_process():
        skills = [load(folder) for folder in folders]
        metric = skills[0].processor.writes.metric
        if are_compared(skills[0].task):
            found = compare_runs(skills, short_names(folders))
            show_comparison(found)
            figures = [one.value for one in found.found.figures]
        else:
            figures = whole_figures(skills)
            for name, figure in zip(short_names(folders), figures, strict=True):
                print(f"{name}: {figure:.4g}")
        print(seeds_line(metric, figures))


def settings(task: str, arguments: Sequence[str]) -> Any:
    """The settings of a task, from a config file and flags. Raises UserError for what does not fit."""
    kind, default = _read_begun(task, arguments)
    _file, flags = _take_flag(arguments, "--config")
    page = find_task(task)
    _check_fields(page, default, flags)
    parsed = parse(kind, flags, f"train {task}", default)
    recipe = _one_text(page.of_flags(parsed, default) if isinstance(page, Task) else parsed, default.examples)
    if any(flag.partition("=")[0] in BATCH_FLAGS for flag in flags):
        recipe.training.keep_batches = True
    return recipe


def _read_begun(task: str, arguments: Sequence[str]) -> tuple[Any, Any]:
    """The class of the settings, for the family that is asked for, and the settings before all other flags."""
    kind = find_task(task)
    file, rest = _take_flag(arguments, "--config")
    model = _take_flag(rest, "--model")[0] or _take_flag(rest, "-m")[0]
    values = {} if file is None else _read(Path(file))
    start, _ = _take_flag(rest, "--from")
    if start is not None:
        values = {**values, "start": start}
    if model is not None:
        values = _for_model(model, values, file)
    default = kind.from_json(values, file or "the recipe")
    if isinstance(kind, Task):
        return type(flags := kind.as_flags(default)), flags
    return kind[models.config_class(default.preset.family)], default


def _check_fields(page: Any, default: Any, flags: Sequence[str]) -> None:
    """Raise UserError for a field of the architecture that the model lacks and another one of the task has."""
    own = page.presets().get(default.model)
    if own is None:
        return
    for flag in flags:
        name = flag.partition("=")[0]
        field = name.removeprefix(ARCHITECTURE).removeprefix("no-").partition(".")[0].replace("-", "_")
        if name.startswith(ARCHITECTURE) and not _has(own.family, field):
            others = [preset for preset, row in page.presets().items() if _has(row.family, field)]
            if others:
                shown = ", ".join(others[:MOST_NAMED]) + (", ..." if len(others) > MOST_NAMED else "")
                raise UserError(f"{name} is an option of {shown}, not of {default.model}: give --model too")


def _has(family: str, field: str) -> bool:
    """Whether models of a family have a field."""
    return field in {part.name for part in fields(models.config_class(family))}


def usual_commands(task: str) -> list[str]:
    """Examples of a task's command: on files, on data by name, with another model."""
    kind = find_task(task)
    own = f"foveate train {task} --data {kind.files.split(' or ')[0]}"
    source = next((name for name, source in SOURCES.items() if task in source.tasks), None)
    by_name = [] if source is None else [f"foveate train {task} {source} --minutes 10"]
    another = next(name for name in kind.presets() if name != kind.model)
    return [f"{own} --out runs/mine", *by_name, f"{own} --model {another}"]


def _for_model(model: str, values: dict[str, Any], file: str | None) -> dict[str, Any]:
    """A file's recipe for a model that a flag names: another model than the file's has other fields."""
    another = values.get("model", model) != model
    if another and values.get("architecture") and main_process():
        print(f"{file}: its architecture is of {values['model']}, and left out for {model}", file=sys.stderr)
    return {**values, "model": model, **({"architecture": None} if another else {})}


def _one_text(recipe: Any, filed: Any) -> Any:
    """The recipe without the text by name of a config file where flags give files, and the other way round."""
    text = recipe.examples
    if text.data != filed.data and text.source == filed.source:
        text = replace(text, source=None)
    elif text.source != filed.source and text.data == filed.data:
        text = replace(text, data=())
    return replace(recipe, examples=text)


def _take_flag(arguments: Sequence[str], flag: str) -> tuple[str | None, list[str]]:
    """The value of a flag that decides what the other flags are, and the arguments without it."""
    rest, value, words = [], None, iter(arguments)
    for word in words:
        if word == flag:
            value = next(words, None)
            if value is None:
                raise UserError(f"{flag} needs a value")
        elif word.startswith(f"{flag}="):
            value = word.partition("=")[2]
        else:
            rest.append(word)
    return value, rest


def _read(path: Path) -> dict[str, Any]:
    """The recipe in a TOML or JSON file, such as the `config.json` of a run folder."""
    try:
        check_file(path)
        text = path.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text, path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    recipe = values.get("recipe", values) if isinstance(values, dict) else None
    if not isinstance(recipe, dict):
        raise UserError(f"{path} holds no table of settings")
    return recipe
