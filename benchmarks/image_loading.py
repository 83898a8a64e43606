"""Images a second beside torch's DataLoader with the calls of torchvision's transforms, at equal processes, in one run.

    python benchmarks/image_loading.py                   # photographs of 500 x 375 pixels that are made
    python benchmarks/image_loading.py --width 2000      # of 2000 x 1500
    python benchmarks/image_loading.py --data photos     # a folder of images

Both cut a random part of at least 8 % out of each JPEG file, scale it to 224 pixels, flip it and standardise it, in
batches of 32, by as many processes. Rounds take turns; each prints images a second on the clock, and images for each
second of processor time of all processes. Exits with status 1 where a median of foveate's on the clock is more than
5 % below the DataLoader's.
"""

import argparse
import gc
import io
import math
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.images import kept
from foveate.data.images.labelled import ImageFormat, LabelledImage, image_of_file, images_below
from foveate.forms.image import AugmentedImage
from foveate.forms.label import Label
from foveate.forms.processor import Processor

BATCH, SIDE, LEAST = 32, 224, 0.08
LEAST_SPEED = 0.95


class Files(TorchDataset):
    """A dataset of files, each changed by the calls to Pillow and torch that torchvision's RandomResizedCrop,
    RandomHorizontalFlip, ToTensor and Normalize make."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        image = PIL.Image.open(self.files[number]).convert("RGB")
        area = image.width * image.height * random.uniform(LEAST, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        width, height = min(image.width, round((area * ratio) ** 0.5)), min(image.height, round((area / ratio) ** 0.5))
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        part = image.crop((left, top, left + width, top + height)).resize((SIDE, SIDE), PIL.Image.Resampling.BICUBIC)
        if random.random() < 0.5:
            part = part.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(part)).permute(2, 0, 1).contiguous().float().div_(255)
        return pixels.sub_(0.5).div_(0.25), 0


def ours(files: list[Path], workers: int, keep: bool) -> Callable[[int], Iterable[torch.Tensor]]:
    """The batches of an epoch as a training of `classify-image` gets them."""
    examples: list[LabelledImage] = [image_of_file(file, "a") for file in files]
    reads = AugmentedImage(size=SIDE, format=ImageFormat(SIDE, 3), crop=LEAST)
    kept.MOST_KEPT = 2**40 if keep else 0
    buckets = OneBucket(Dataset("photographs", examples, "images"), Processor(reads, Label({"a": 1})))
    batches = BucketedBatches(buckets, BATCH, 1, lambda slow: workers)
    return lambda number: (batch.inputs["pixels"] for batch in batches.epoch(number))


def torchs(files: list[Path], workers: int) -> Callable[[int], Iterable[torch.Tensor]]:
    """The same by torch."""
    loader = DataLoader(Files(files), BATCH, shuffle=True, num_workers=workers)
    return lambda number: (pixels for pixels, _ in loader)


def measure(epoch: Iterable[torch.Tensor]) -> tuple[float, float]:
    """Images a second, and for each second of processor time of this process and those that it began."""
    begin, before = time.perf_counter(), _processor_time()
    count = sum(len(pixels) for pixels in epoch)
    seconds = time.perf_counter() - begin
    del epoch
    gc.collect()  # ends the processes, whose time counts when they have ended
    return count / seconds, count / (_processor_time() - before)


def _processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def make(folder: Path, count: int, width: int) -> list[Path]:
    """Photographs three quarters as high as wide: smooth, with noise."""
    generator, files = np.random.default_rng(1), []
    for number in range(count):
        coarse = generator.integers(0, 256, (15, 20, 3), dtype=np.uint8)
        smooth = np.asarray(
            PIL.Image.fromarray(coarse).resize((width, width * 3 // 4), PIL.Image.Resampling.BICUBIC), np.int16
        )
        noisy = (smooth + generator.normal(0, 8, smooth.shape)).clip(0, 255).astype(np.uint8)
        opened = io.BytesIO()
        PIL.Image.fromarray(noisy).save(opened, "JPEG", quality=85)
        files.append(folder / f"{number}.jpg")
        files[-1].write_bytes(opened.getvalue())
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--width", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = (
            images_below(asked.data)[: asked.images] if asked.data else make(Path(folder), asked.images, asked.width)
        )
        ways = {
            "torch's DataLoader": torchs(files, asked.workers),
            "foveate, decoded whenever read": ours(files, asked.workers, keep=False),
            "foveate, decoded once": ours(files, asked.workers, keep=True),
        }
        for _ in ways["foveate, decoded once"](0):
            pass  # decoded now
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for number in range(1, asked.rounds + 1):
            for way, epoch in ways.items():
                found[way].append(measure(epoch(number)))
    medians = {way: [statistics.median(column) for column in zip(*rows, strict=True)] for way, rows in found.items()}
    base = medians["torch's DataLoader"]
    print(f"{len(files)} images, {asked.workers} processes, medians of {asked.rounds} rounds")
    for way, (by_clock, by_processor) in medians.items():
        print(
            f"{way:32} {by_clock:7.0f} images/s ({by_clock / base[0]:.2f})  "
            f"{by_processor:7.0f} for each second of processor time ({by_processor / base[1]:.2f})"
        )
    sys.exit(any(row[0] < LEAST_SPEED * base[0] for row in medians.values()))


if __name__ == "__main__":
    main()
