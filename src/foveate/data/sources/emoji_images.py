"""Drawings of emoji by Microsoft and Google with their names and subcategories, from npm packages.

The drawings are decoded once, to 64 x 64 pixels. Of people only the drawings without a skin tone are kept.
"""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from foveate.data.images.scenes import Sprite, crop_to_visible
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.packages import from_npm, members
from foveate.files import parse_json, read_json_value, workshop

NAMES = "emojibase-data", "17.0.0", "d01d0e2ca4e22cb402679532155342c71e2e871f25c32223c013b8b166ebdf5a"
FLUENT = "@lobehub/fluent-emoji-3d", "1.1.0", "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58"
GOOGLE = "emoji-datasource-google", "16.0.0", "fb5fd131b362aab7a55542d2a147a79708cce0a8b1c1bbacd470172708b5c438"

IMAGES = {FLUENT: "package/assets/*.webp", GOOGLE: "package/img/google/64/*.png"}
"""The packages of drawings and their files, which are named by code points: `1f44b.webp`."""

SIDE = 64
"""Height and width of the decoded drawings."""

COMPONENT = 2
"""The group of parts of emoji: skin tones and hair styles."""

SIZE = "97 MB, of which 56 MB are kept"
LICENCE = "MIT (Fluent Emoji, emojibase), Apache-2.0 (Noto Emoji); names from Unicode CLDR under Unicode-3.0"


def open_drawings(before_fetch: BeforeFetch) -> list[Sprite]:
    """All emoji that were drawn, about 1,900 in 98 subcategories and 9 groups, in Unicode's order."""
    folder = fetched("emoji-images-1", _fetch, before_fetch)
    with undamaged(folder):
        pixels = np.load(folder / "drawings.npy", mmap_mode="r", allow_pickle=False)
        table = read_json_value(folder / "emoji.json")
        return [
            Sprite(
                emoji["name"],
                emoji["category"],
                emoji["group"],
                tuple(crop_to_visible(pixels[number]) for number in emoji["drawings"]),
            )
            for emoji in table
        ]


def is_test(number: int) -> bool:
    """Returns whether the emoji of this number, from 0, is one of every fifth, which only test data show."""
    return number % 5 == 4


def is_dev(number: int) -> bool:
    """Returns whether the emoji of this number, from 0, is one of every twentieth, which only data to validate on
    show."""
    return number % 20 == 7


def _fetch(folder: Path) -> None:
    with workshop(folder) as temporary:
        contents = {package: _package(package, temporary) for package in (NAMES, *IMAGES)}
        names, groups = (_json(contents[NAMES], path) for path in ("en/data.json", "meta/groups.json"))
        found = [_decoded(members(contents[package], pattern)) for package, pattern in IMAGES.items()]
        for (name, version, _), package in contents.items():
            licence = folder / f"{name.replace('/', '-')}-{version}"
            for path, text in members(package, "package/LICENSE", "package/README.md", "package/package.json"):
                licence.mkdir(exist_ok=True)
                (licence / Path(path).name).write_bytes(text)
    pixels: list[np.ndarray] = []
    table = []
    for emoji in _in_order(names):
        drawings = [images[code] for images in found if (code := _code(emoji["hexcode"])) in images]
        drawings = [image for image in drawings if crop_to_visible(image).size]
        if not drawings:
            continue
        numbers = list(range(len(pixels), len(pixels) + len(drawings)))
        group, category = (groups[kind][str(emoji[kind[:-1]])] for kind in ("groups", "subgroups"))
        table.append({"name": emoji["label"], "category": category, "group": group, "drawings": numbers})
        pixels += drawings
    np.save(folder / "drawings.npy", np.stack(pixels))
    (folder / "emoji.json").write_text(json.dumps(table, ensure_ascii=False, indent=0), encoding="utf-8")


def _package(package: tuple[str, str, str], folder: Path) -> Path:
    name, version, sha256 = package
    place = folder / name.replace("/", "-")
    place.mkdir()
    return from_npm(name, version, sha256, place)


def _json(package: Path, path: str) -> Any:
    path = f"package/{path}"
    return parse_json(dict(members(package, path))[path], path)


def _in_order(names: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The emoji that are in a group, in Unicode's order, without parts such as the skin tones alone.

    Those of people in a skin tone are inside others, and not read.
    """
    whole = (emoji for emoji in names if emoji.get("group") not in (None, COMPONENT))
    return sorted(whole, key=lambda emoji: emoji["order"])


def _code(name: str) -> str:
    """Code points in the one way to write them: "263A-FE0F" is "263a"."""
    return "-".join(part for part in name.lower().split("-") if part != "fe0f")


def _decoded(files: Iterator[tuple[str, bytes]]) -> dict[str, np.ndarray]:
    """The pixels (64, 64, 4) of each file, by its code points."""
    found = {}
    for path, content in files:
        with PIL.Image.open(io.BytesIO(content), formats=("WEBP", "PNG")) as image:
            small = image.convert("RGBA").resize((SIDE, SIDE), PIL.Image.Resampling.LANCZOS)
        found[_code(Path(path).stem)] = np.asarray(small)
    return found
