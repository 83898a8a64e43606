"""Fashion-MNIST from its package."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from archives import write_archive

from foveate.data.sources import fashion_mnist, open_source
from foveate.errors import UserError


def idx(values: np.ndarray) -> bytes:
    """A file in IDX format: two zeros, the type, the number of dimensions, the dimensions, the values."""
    header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    return gzip.compress(header + values.astype(np.uint8).tobytes())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of 13 images to train on, of which 3 are kept for dev, and 5 to test on; image N is N in all places."""
    contents = {}
    for part, count in (("train", 13), ("t10k", 5)):
        numbers = np.arange(count)
        place = f"usr/share/datasets/fashion-mnist/{part}"
        contents[f"{place}-images-idx3-ubyte.gz"] = idx(numbers[:, None, None] * np.ones((1, 28, 28)))
        contents[f"{place}-labels-idx1-ubyte.gz"] = idx(numbers % 10)
    write_archive(tmp_path / "dataset-fashion-mnist_1.0_all.deb", contents)

    class Packages:
        def __init__(self, names: list[str], folder: Path) -> None:
            assert names == ["dataset-fashion-mnist"]

        def __enter__(self) -> list[Path]:
            return [tmp_path / "dataset-fashion-mnist_1.0_all.deb"]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fashion_mnist, "debian_packages", Packages)
    monkeypatch.setattr(fashion_mnist, "HELD_OUT", 3)


def test_the_three_parts(package: None) -> None:
    splits = open_source("fashion-mnist", task="classify-image")
    parts = [list(part) for part in (splits.train, splits.dev, splits.test)]
    assert [len(part) for part in parts] == [10, 3, 5]
    assert [example.read().getpixel((0, 27)) for example in parts[1]] == [10, 11, 12]
    assert [example.label for example in parts[1]] == ["T-shirt", "Trouser", "Pullover"]
    assert parts[2][4].label == "Coat"


def test_a_damaged_cache(package: None, tmp_path: Path) -> None:
    open_source("fashion-mnist", task="classify-image")
    (tmp_path / "cache/fashion-mnist/train-labels-idx1-ubyte.gz").write_bytes(idx(np.arange(3)))
    with pytest.raises(UserError, match="is damaged: 13 images and 3 labels; remove it to fetch it again"):
        open_source("fashion-mnist", task="classify-image")


def test_it_is_for_one_task() -> None:
    with pytest.raises(UserError, match="fashion-mnist is text for classify-image"):
        open_source("fashion-mnist", task="classify")
