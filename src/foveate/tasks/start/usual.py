"""Trained weights that a training of few texts or images begins from, where the user names neither weights nor a
model."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.pretrained import locate
from foveate.run_dir import CHECKPOINTS, CONFIG, UNFINISHED
from foveate.tasks.examples.hub_data import local_paths
from foveate.tasks.recipe import Recipe
from foveate.tasks.start.weights import say
from foveate.tasks.task import Task

FEW = 10_000
"""Texts below which trained weights are better than nothing: with 8,385 MiniLM has 83.6 % of the film reviews right,
the best of what is trained from nothing 76.3 % and counted words 79.0 % (docs/classification.md). Of 15,184 pairs a
`bert-mini` learns nothing, and MiniLM has 78.4 % (docs/matching.md). A detector finds nothing in photographs after as
many steps from nothing as from the weights of ImageNet find most (docs/detection.md)."""

ENGLISH = 0.99
"""The least share of ASCII among the characters of texts that weights trained on English are taken for."""

ASKED = 1000
"""Texts whose characters are counted."""

NONE = "none"
"""The name of no weights."""


def usual_start(task: Task, recipe: Recipe) -> str | None:
    """The name of the weights to begin from, if there are any for data like these; says which, or why none.

    A training that is resumed goes on as it began.
    """
    if task.usual_start is None or recipe.start is not None:
        return None
    if any((recipe.out / CHECKPOINTS).glob("step-*.safetensors")):
        return _begun(recipe)
    try:
        found = [*islice(_examples(task, recipe), FEW)]
    except UserError:  # which the training reports, after what it checks before
        return None
    count, images = len(found), task.reads.kind == "image"
    if not count or count >= FEW or not (images or _are_english(task, found)):
        return None
    try:
        locate(task.usual_start, say)
    except UserError as error:
        say(f"trained from nothing: {task.usual_start}, better for {count:,} {task.unit}, is not here ({error})")
        return None
    what, of = ("images", "ImageNet") if images else (task.unit, "English")
    say(f"{count:,} {what} are few: begins from {task.usual_start} ({of}); --from {NONE} begins from nothing")
    return task.usual_start


def _are_english(task: Task, examples: Sequence[Any]) -> bool:
    """Returns whether nearly all characters of texts are ASCII."""
    texts = "".join(task.reads.place(one) for one in examples[:: max(1, len(examples) // ASKED)])
    return sum(map(str.isascii, texts)) >= ENGLISH * len(texts)


def _examples(task: Task, recipe: Recipe) -> Iterable[Any]:
    """What there is to learn from, before any of it is held out: a text is not read to its end."""
    chosen = recipe.examples
    if chosen.source is not None:
        return task.open_source(chosen.source, recipe).train
    if not chosen.data:
        return ()
    data, validation = (local_paths(paths, task.name) for paths in (chosen.data, chosen.validation))
    data, _ = task.parts_to_learn(data, validation)
    return task.read_files(data, recipe)


def _begun(recipe: Recipe) -> str | None:
    """The weights that the training in the folder of a recipe began from."""
    for place in (recipe.out / CONFIG, recipe.out / UNFINISHED / CONFIG):
        if place.is_file():
            start = read_json(place).get("recipe", {}).get("start")
            return str(start) if start else None
    return None
