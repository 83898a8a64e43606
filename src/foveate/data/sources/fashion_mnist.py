"""Fashion-MNIST (Xiao et al. 2017, https://arxiv.org/abs/1708.07747): pictures of clothes, from a Debian package."""

import gzip
from pathlib import Path

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.images.labelled import LabelledImage, images_of_arrays
from foveate.data.sources.cache import BeforeFetch, fetched, undamaged
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

PACKAGE = "dataset-fashion-mnist"

CLASSES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)

HELD_OUT = 5_000
"""Images of the training part, its last ones, that are kept for dev."""


def open_fashion_mnist(before_fetch: BeforeFetch) -> Splits[Dataset[LabelledImage]]:
    """The 60,000 images to train and validate on, and the 10,000 to test on."""
    folder = fetched("fashion-mnist", _fetch, before_fetch)
    with undamaged(folder):
        pixels, labels = read_part(folder, "train")
        test_pixels, test_labels = read_part(folder, "t10k")
    cut = len(labels) - HELD_OUT
    return Splits(
        images_of_arrays("fashion-mnist.train", pixels[:cut], labels[:cut]),
        images_of_arrays("fashion-mnist.dev", pixels[cut:], labels[cut:]),
        images_of_arrays("fashion-mnist.test", test_pixels, test_labels),
    )


def read_part(folder: Path, part: str) -> tuple[np.ndarray, list[str]]:
    """The images (N, 28, 28) and labels of a part, from files in IDX format."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = [CLASSES[number] for number in file.read()[8:]]
    if len(labels) != len(pixels):
        raise ValueError(f"{len(pixels):,} images and {len(labels):,} labels")
    return pixels, labels


def _fetch(folder: Path) -> None:
    with debian_packages([PACKAGE], folder) as (package,):
        for name, content in members(package, "*.gz"):
            if name.endswith("-ubyte.gz"):
                (folder / Path(name).name).write_bytes(content)


SOURCE = Source(
    name="fashion-mnist",
    tasks=("classify-image", "complete-image", "gan"),
    about="60,000 + 10,000 grey pictures of clothes, 28 x 28, ten classes, from a Debian package",
    size="31 MB",
    licence="MIT",
    open=open_fashion_mnist,
)
