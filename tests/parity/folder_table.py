"""Writes docs/families.md: what one can do with each kind of Hugging Face folder, as the tests find it.

    python tests/parity/folder_table.py

`test_folder_table.py` compares the page with the program, but for the measured errors, which the tests bound.
"""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

from foveate import models
from foveate.errors import UserError
from foveate.forms.standard_pixels import StandardPixels
from foveate.interop.layout import Layout
from foveate.interop.public_folder import (
    MODEL_TYPES,
    PublicModel,
    layout_at,
    layout_for,
    read_config,
    read_folder,
    read_values,
)
from foveate.nn import attends
from foveate.tasks import TASKS, find_task
from foveate.tasks.start.image_part import part_path
from foveate.tasks.start.parts import ImageEncoder
from foveate.tasks.task import Task

WRITERS = ("vision-encoder-decoder", "blip")
"""The kinds that write about images."""

MATCHERS = ("clip", "siglip")
"""The kinds that compare images and texts."""

PAGE = Path(__file__).parents[2] / "docs" / "families.md"

HEADINGS = [
    *("`model_type`", "model of ours", "predicts", "run", "look", "trained further by", "LoRA", "written back"),
    "error of logits",
]

TEMPLATE = Path(__file__).with_suffix(".md")
"""The page around its table."""


def layout_of(kind: str) -> Layout:
    found: Layout = layout_at(MODEL_TYPES[kind])
    return found


def heads_of(kind: str) -> list[str]:
    """What models of a kind predict, in the order of their layout."""
    return list(dict.fromkeys(layout_of(kind).architectures.values()))


def tasks_of(kind: str) -> list[str]:
    """The tasks whose trainings begin from a folder of this kind."""
    family, own = layout_of(kind).family, []
    part = image_part_of(family)
    for name in TASKS:
        task = find_task(name)
        as_it_is = family in task.families and getattr(task.start, "folders", True)
        takes_part = builds_on_images(task) or (part in task.families and isinstance(task.reads, StandardPixels))
        if as_it_is or (part is not None and takes_part):
            own.append(name)
    return own


def runs(kind: str) -> bool:
    """Whether the tests of its sort run a folder of this kind: by their lists, or as one of images, all of which
    `tests/tasks/test_public_images.py` has."""
    from folders import FOLDERS
    from sound_folders import SOUND_FOLDERS
    from translators import TRANSLATORS

    heard = {one.kind for one in SOUND_FOLDERS.values()}
    return kind in {*FOLDERS, *TRANSLATORS, *WRITERS, *MATCHERS, *heard} or bool(layout_of(kind).image_processor)


@cache
def looks(family: str) -> bool:
    """Whether models of a family attend: `look` shows where, and `--lora` changes the layers that do."""
    return attends(smallest_of(family))


def smallest_of(family: str) -> Any:
    """A model of a family without weights."""
    preset = min(models.presets((family,)).values(), key=lambda one: one.parameters)
    return models.create(preset.name, device="meta", **dict.fromkeys(models.sizes_of_data(family), 7))


def image_part_of(family: str) -> str | None:
    """The family of the part that reads images, in models of a family; None where there is none.
    `tests/tasks/test_every_image_start.py` begins every task from such a part of every kind."""
    model = smallest_of(family)
    path = part_path(model)
    part = None if path is None else model.get_submodule(path)
    return None if part is None or not hasattr(part, "config") else models.family_of(part.config)


def builds_on_images(task: Task) -> bool:
    """Whether models of a task are built on such a part of any other model."""
    return isinstance(getattr(task.start, "body", task.start), ImageEncoder)


def is_written(kind: str, config: Any) -> bool:
    """Whether the model of a folder of this kind is written back."""
    try:
        return bool(layout_of(kind).write_config(config))
    except UserError:
        return False


def error_of(kind: str, place: Path) -> tuple[float, bool]:
    """The largest difference of logits over the heads of a kind, and whether its model is written back."""
    from folders import FOLDERS
    from test_every_folder import hidden_or_logits

    worst, back = 0.0, False
    for head in FOLDERS[kind].heads:
        folder = place / f"{kind}-{head}"
        theirs = FOLDERS[kind].write(head, folder)
        tokens = torch.randint(3, 50, (1, 13))
        with torch.no_grad():
            expected, found = hidden_or_logits(theirs(tokens)), read_folder(folder).model(tokens).logits
        found = found[:, 0] if head in ("text", "pair") else found
        worst = max(worst, float((found - expected).abs().max()))
        back |= is_written(kind, read_config(folder)[1])
    return worst, back


def error_of_translators(kind: str, place: Path) -> tuple[float, bool]:
    """The same for a kind of encoder-decoder."""
    from translators import TRANSLATORS

    folder = place / kind
    theirs = TRANSLATORS[kind].write(folder)
    source, target = torch.randint(3, 49, (1, 13)), torch.randint(3, 49, (1, 9))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        found = read_folder(folder).model(source, torch.tensor([13]), target).logits
    return float((found - expected).abs().max()), is_written(kind, read_config(folder)[1])


def error_of_sounds(kind: str, place: Path) -> tuple[float, bool]:
    """The same for a kind of model that reads sounds, over all of its folders."""
    from sound_folders import RATE, SOUND_FOLDERS, write_sound
    from test_every_sound_folder import logits_of

    worst, back = 0.0, False
    samples = write_sound(place / "sound.wav", RATE, 3)
    for name, one in SOUND_FOLDERS.items():
        for head in one.heads if one.kind == kind else ():
            folder = place / f"{name}-{head}"
            theirs = one.write(head, folder)
            ((found, expected),) = logits_of(name, head, folder, theirs, [(place / "sound.wav", samples)])
            worst = max(worst, float((found - expected).abs().max()))
            back |= is_written(kind, read_config(folder)[1])
    return worst, back


def error_of_writers(kind: str, place: Path) -> tuple[float, bool]:
    """The same of a kind that writes about images, over all of its rows."""
    from image_writers import IMAGE_WRITERS
    from test_every_image_writer import logits_of, sizes_of

    worst, back = 0.0, False
    for name, row in IMAGE_WRITERS.items():
        if row.config().model_type == kind:
            folder = place / f"{kind}-{name}"
            theirs = row.write(folder)
            pixels, target = torch.randn(1, 3, *sizes_of(name)), torch.randint(3, 49, (1, 9))
            with torch.no_grad():
                found = read_folder(folder).model(pixels, target).logits
            worst = max(worst, float((found - logits_of(theirs, pixels, target)).abs().max()))
            back |= is_written(kind, read_config(folder)[1])
    return worst, back


def error_of_matchers(kind: str, place: Path) -> tuple[float, bool]:
    """The same for a kind that compares images and texts."""
    import transformers
    from image_folders import write_matcher

    folder = place / kind
    write_matcher(kind, folder)
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    pixels, tokens = torch.randn(2, 3, 20, 20), torch.randint(3, 50, (3, 64))
    tokens[:, -1] = theirs.config.text_config.eos_token_id
    with torch.no_grad():
        expected = theirs(input_ids=tokens, pixel_values=pixels).logits_per_image
        found = read_folder(folder).model(pixels, tokens, torch.full((3,), 64)).logits
    return float((found - expected).abs().max()), is_written(kind, read_config(folder)[1])


def image_folders(place: Path) -> Any:
    """The folder of each kind of image model, and an image."""
    from image_folders import Folders

    pixels = np.random.default_rng(3).integers(0, 255, (61, 83, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(place / "x.png")
    return Folders(root=place)


def image_error(kind: str, folders: Any) -> tuple[float, bool]:
    """The same of the image folders of a kind, whose trained models are written in the layout of their family."""
    from image_folders import models as image_models
    from image_folders import reference, timm_models

    image, worst, back = folders["root"] / "x.png", 0.0, False
    for name in (*image_models(), *timm_models()):
        if read_values(folders[name])["model_type"] != kind:
            continue
        pixels, expected = reference(folders[name], image)
        public = read_folder(folders[name])
        with torch.no_grad():
            error = float((public.model(pixels).logits - expected["logits"]).abs().max())
        worst = max(worst, error)
        back |= is_written_as_ours(public)
    return worst, back


def is_written_as_ours(public: PublicModel) -> bool:
    """Whether a model of this family and with these sizes has a public layout."""
    config: Any = public.model.config
    try:
        return bool(layout_for(public.family, config).write_config(config))
    except UserError:
        return False


def cells(kind: str) -> list[str]:
    """The cells of a row, but for what must be measured."""
    family, tasks = layout_of(kind).family, tasks_of(kind)
    named = ", ".join(f"`{name}`" for name in tasks) or "no task"
    seen = looks(family)
    marks = [yes(runs(kind)), yes(seen), named, yes(seen and bool(tasks))]
    return [f"`{kind}`", family, ", ".join(heads_of(kind)), *marks]


def yes(holds: bool) -> str:
    return "yes" if holds else "no"


def page() -> str:
    from folders import FOLDERS
    from translators import TRANSLATORS

    measures = {
        **dict.fromkeys(FOLDERS, error_of),
        **dict.fromkeys(TRANSLATORS, error_of_translators),
        **dict.fromkeys(WRITERS, error_of_writers),
        **dict.fromkeys(MATCHERS, error_of_matchers),
    }
    lines = ["| " + " | ".join(HEADINGS) + " |", "| " + " | ".join(["---"] * len(HEADINGS)) + " |"]
    with tempfile.TemporaryDirectory() as place:
        images = image_folders(Path(place))
        for kind in MODEL_TYPES:
            if layout_of(kind).feature_extractor:
                error, back = error_of_sounds(kind, Path(place))
            elif measure := measures.get(kind):
                error, back = measure(kind, Path(place))
            else:
                error, back = image_error(kind, images)
            lines.append("| " + " | ".join([*cells(kind), yes(back), f"{error:.0e}"]) + " |")
    return TEMPLATE.read_text(encoding="utf-8").replace("{table}", "\n".join(lines))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
