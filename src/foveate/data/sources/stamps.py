"""Few photographs of twelve topics, and photographs with captions: the stamps of Tux Paint, a drawing program, from a
Debian package."""

import re
from pathlib import Path, PurePosixPath

from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, captioned_images
from foveate.data.images.labelled import LabelledImage, labelled_images
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

PACKAGE = "tuxpaint-stamps-default"

ROOT = "usr/share/tuxpaint/stamps/"

TOPICS = {
    "birds": "animals/birds",
    "clothes": "clothes",
    "fish": "animals/fish",
    "flowers": "plants/flowers",
    "fruit": "food/fruit",
    "insects": "animals/insects",
    "instruments": "hobbies/music",
    "mammals": "animals/mammals",
    "road signs": "town/roadsigns",
    "tools": "household/tools",
    "vegetables": "food/vegetables",
    "vehicles": "vehicles",
}
"""The folder of each topic. Drawings in folders "cartoon" are left out; some of the others are drawings too."""

TEST, DEV = (2, 5, 8), (9,)
"""Of each ten images of a topic, which are for the test and which for validation."""


def _part(place: int) -> str:
    return "test" if place % 10 in TEST else "dev" if place % 10 in DEV else "train"


def open_stamps(before_fetch: BeforeFetch) -> Splits[Dataset[LabelledImage]]:
    """The images of all topics, three tenths of each topic to test on."""
    folder = fetched("stamps", _fetch, before_fetch)
    with undamaged(folder):
        images = labelled_images([folder])
    numbers: dict[str, int] = {}
    parts: dict[str, list[LabelledImage]] = {"train": [], "dev": [], "test": []}
    for image in images:
        place = numbers[image.label] = numbers.get(image.label, -1) + 1
        parts[_part(place)].append(image)
    sets = [Dataset(f"stamps.{part}", found, "images", [f"of {len(TOPICS)} topics"]) for part, found in parts.items()]
    return Splits(*sets)


def _fetch(folder: Path) -> None:
    with debian_packages([PACKAGE], folder) as (package,):
        for topic, place in TOPICS.items():
            (folder / topic).mkdir()
            for name, content in members(package, f"{ROOT}{place}/*.png"):
                if "/cartoon/" not in name:
                    (folder / topic / Path(name).name).write_bytes(content)


SOURCE = Source(
    name="stamps",
    tasks=("classify-image", "complete-image"),
    about="271 pictures of twelve topics, mostly photographs: birds, fruit, tools, ..., from a Debian package",
    size="161 MB",
    licence="GPL-2+",
    open=open_stamps,
)


TABLE = "captions.tsv"

UNUSED = re.compile(r"/(cartoon|symbols)/")
"""Folders whose captions are left out: drawings, letters, coins."""


def open_stamp_captions(before_fetch: BeforeFetch) -> Splits[Dataset[CaptionedImage]]:
    """The stamps outside of `UNUSED` folders that have a description, three tenths of them to test on."""
    folder = fetched("stamp-captions", _fetch_captions, before_fetch)
    with undamaged(folder):
        images = captioned_images([folder / TABLE])
    parts: dict[str, list[CaptionedImage]] = {"train": [], "dev": [], "test": []}
    for place, image in enumerate(images):
        parts[_part(place)].append(image)
    return Splits(*(Dataset(f"stamp-captions.{part}", found, "images") for part, found in parts.items()))


def _fetch_captions(folder: Path) -> None:
    captions: dict[str, str] = {}
    with debian_packages([PACKAGE], folder) as (package,):
        for name, content in members(package, f"{ROOT}*.txt"):
            captions[name.removesuffix(".txt")] = " ".join(content.decode("utf-8").partition("\n")[0].split())
        written = []
        for name, content in members(package, f"{ROOT}*.png"):
            caption = captions.get(name.removesuffix(".png"))
            if caption and not UNUSED.search(name):
                file = "-".join(PurePosixPath(name).parts[4:])
                (folder / file).write_bytes(content)
                written.append(f"{file}\t{caption}\n")
    (folder / TABLE).write_text("".join(sorted(written)), encoding="utf-8")


CAPTIONS = Source(
    name="stamp-captions",
    tasks=("caption",),
    about="photographs and drawings of all kinds with a short description each, too few to learn to describe others",
    size="161 MB",
    licence="GPL-2+",
    open=open_stamp_captions,
)
