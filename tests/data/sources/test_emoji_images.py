"""Drawings of emoji: read from packages made here, laid out as the real ones."""

import io
import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from archives import write_archive

from foveate.data.sources import emoji_images
from foveate.errors import UserError


def image(colour: str, side: int, kind: str) -> bytes:
    """A disc of one colour on a transparent square."""
    rows, columns = np.mgrid[:side, :side] - (side - 1) / 2
    pixels = np.zeros((side, side, 4), np.uint8)
    pixels[rows**2 + columns**2 < (side / 4) ** 2] = (*PIL.Image.new("RGB", (1, 1), colour).getpixel((0, 0)), 255)
    packed = io.BytesIO()
    PIL.Image.fromarray(pixels).save(packed, kind)
    return packed.getvalue()


def emoji(code: str, name: str, order: int, **more: object) -> dict[str, object]:
    return {"hexcode": code, "label": name, "order": order, "group": 4, "subgroup": 42, **more}


NAMES = [
    emoji("1F34F", "green apple", 7),
    emoji("263A", "smile", 3, group=0, subgroup=0, skins=[emoji("263A-1F3FB", "smile: light skin tone", 4)]),
    emoji("1F36F", "never drawn", 5),
    emoji("1F3FB", "light skin tone", 2, group=2, subgroup=32),
    {"hexcode": "1F1E6", "label": "regional indicator A"},
]
GROUPS = {"groups": {"0": "smileys", "2": "component", "4": "food"}, "subgroups": {"0": "faces", "42": "fruit"}}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    contents = {
        "emojibase-data": {"package/en/data.json": json.dumps(NAMES), "package/meta/groups.json": json.dumps(GROUPS)},
        "@lobehub/fluent-emoji-3d": {
            "package/assets/263a-fe0f.webp": image("yellow", 96, "WEBP"),
            "package/assets/263a-1f3fb.webp": image("white", 96, "WEBP"),
            "package/assets/1f3fb.webp": image("white", 96, "WEBP"),
        },
        "emoji-datasource-google": {
            "package/LICENSE": "free",
            "package/img/google/64/1f34f.png": image("lime", 64, "PNG"),
            "package/img/google/64/263a-fe0f.png": image("blue", 64, "PNG"),
        },
    }

    def fetch(name: str, version: str, sha256: str, folder: Path) -> Path:
        write_archive(folder / "it.tgz", contents[name])
        return folder / "it.tgz"

    monkeypatch.setattr(emoji_images, "from_npm", fetch)
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    return tmp_path / "emoji-images-1"


def test_drawings_with_names_and_classes(packages: Path) -> None:
    """In Unicode's order; in both styles where both were drawn, and without skin tones."""
    smile, apple = emoji_images.open_drawings(lambda place: None)
    assert (smile.name, smile.category, smile.group) == ("smile", "faces", "smileys")
    assert (apple.name, apple.category, apple.group) == ("green apple", "fruit", "food")
    middles = [tuple(style[style.shape[0] // 2, style.shape[1] // 2, :3]) for style in smile.styles]
    assert [[round(part / 255) for part in colour] for colour in middles] == [[1, 1, 0], [0, 0, 1]]
    (lime,) = apple.styles
    assert 30 <= lime.shape[0] <= 34  # the disc has half of the image's height
    assert lime.shape[0] == lime.shape[1]
    assert (packages / "emoji-datasource-google-16.0.0/LICENSE").read_text() == "free"
    assert not list(packages.rglob("*.tgz"))


def test_a_damaged_cache(packages: Path) -> None:
    emoji_images.open_drawings(lambda place: None)
    (packages / "drawings.npy").write_bytes(b"no array")
    with pytest.raises(UserError, match=r"emoji-images-1 is damaged: .*; remove it to fetch it again"):
        emoji_images.open_drawings(lambda place: None)


def test_no_emoji_is_in_two_parts() -> None:
    numbers = range(1000)
    assert sum(map(emoji_images.is_test, numbers)) == 200
    assert sum(map(emoji_images.is_dev, numbers)) == 50
    assert not any(emoji_images.is_test(number) and emoji_images.is_dev(number) for number in numbers)
