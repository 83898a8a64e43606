"""Few photographs of twelve topics: the stamps of Tux Paint, a drawing program, from a Debian package."""

from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.images import LabelledImage, labelled_images
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


def open_stamps(before_fetch: BeforeFetch) -> Splits[Dataset[LabelledImage]]:
    """The images of all topics, three tenths of each topic to test on."""
    folder = fetched("stamps", _fetch, before_fetch)
    with undamaged(folder):
        images = labelled_images([folder])
    numbers: dict[str, int] = {}
    parts: dict[str, list[LabelledImage]] = {"train": [], "dev": [], "test": []}
    for image in images:
        place = numbers[image.label] = numbers.get(image.label, -1) + 1
        parts["test" if place % 10 in TEST else "dev" if place % 10 in DEV else "train"].append(image)
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
