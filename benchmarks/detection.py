"""A detector of foveate beside a plain dense one, from the same trained body, on the same images.

    python benchmarks/detection.py cells/train cells/test --epochs 6 --seeds 3

Both begin from EfficientNet-Lite0, read the same images at the same size, flip them, and learn for as many epochs. The
dense one is what one writes in an afternoon: two feature maps (strides of 8 and 16) joined from above, two towers of
convolutions, each place inside of an object's middle learns its class (focal loss) and its four sides (generalized
IoU), and of boxes that overlap the surest one is kept. Prints AP50, AP and processor seconds of the training, one
thread each, with means over the seeds.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.data.images.boxes import boxed_images
from foveate.forms.boxes import shares, surest
from foveate.forms.image import FittedImage
from foveate.metrics.detection import ScoredBoxes, detection_metrics, match_image
from foveate.models.vision.image_encoder import fix_norms
from foveate.nn import box_corners, generalized_iou
from foveate.tasks.start.weights import open_start

STRIDES, MIDDLE, BATCH, RATE, SURE, SAME = (8, 16), 1.5, 8, 1e-3, 0.05, 0.6


class Dense(nn.Module):
    """Two feature maps, joined from above, and for each place the logits of classes and four sides."""

    def __init__(self, classes: int, width: int = 96) -> None:
        import foveate

        super().__init__()
        self.body = foveate.create("efficientnet-lite0-16", classes=1)
        fine, coarse = self.body.grid_widths[-2:]
        self.fine, self.coarse = nn.Conv2d(fine, width, 1), nn.Conv2d(coarse, width, 1)
        self.smooth = nn.Conv2d(width, width, 3, padding=1)
        self.classes_tower, self.sides_tower = self._tower(width), self._tower(width)
        self.logits = nn.Conv2d(width, classes, 3, padding=1)
        self.sides = nn.Conv2d(width, 4, 3, padding=1)
        nn.init.constant_(self.logits.bias, -4.6)

    @staticmethod
    def _tower(width: int) -> nn.Sequential:
        layers = (
            layer
            for _ in range(2)
            for layer in (nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(8, width), nn.ReLU())
        )
        return nn.Sequential(*layers)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, S, N), and sides in pixels: left, top, right, bottom (B, S, 4)."""
        *_, fine, coarse = self.body.grids(pixels)
        coarse = self.coarse(coarse)
        fine = self.smooth(self.fine(fine) + F.interpolate(coarse, scale_factor=2.0))
        logits, sides = [], []
        for one, stride in zip((fine, coarse), STRIDES, strict=True):
            logits.append(self.logits(self.classes_tower(one)).flatten(2).mT)
            sides.append(self.sides(self.sides_tower(one)).flatten(2).mT.clamp(-4, 4).exp() * 4 * stride)
        return torch.cat(logits, 1), torch.cat(sides, 1)


def places(size: int) -> tuple[Tensor, Tensor]:
    """The middle of each place in pixels (S, 2), and its stride (S,)."""
    middles, strides = [], []
    for stride in STRIDES:
        steps = (torch.arange(size // stride) + 0.5) * stride
        down, across = torch.meshgrid(steps, steps, indexing="ij")
        middles.append(torch.stack([across, down], -1).flatten(0, 1))
        strides.append(torch.full((len(middles[-1]),), float(stride)))
    return torch.cat(middles), torch.cat(strides)


def owners(middles: Tensor, strides: Tensor, corners: Tensor) -> Tensor:
    """The object (K) of each place (S): the smallest one whose middle is near, at the stride that suits its size."""
    centre, sizes = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
    near = (middles[:, None] - centre).abs().amax(-1) < MIDDLE * strides[:, None]
    inside = ((middles[:, None] > corners[:, :2]) & (middles[:, None] < corners[:, 2:])).all(-1)
    small = sizes.amax(-1) < 64
    suits = torch.where(strides[:, None] == STRIDES[0], small, ~small)
    areas = torch.where(near & inside & suits, sizes.prod(-1), torch.inf)
    least = areas.min(1)
    return torch.where(least.values.isinf(), -1, least.indices)


def loss(
    logits: Tensor, sides: Tensor, middles: Tensor, strides: Tensor, objects: list[tuple[Tensor, Tensor]]
) -> Tensor:
    total, count = logits.new_zeros(()), 0
    for own_logits, own_sides, (corners, labels) in zip(logits, sides, objects, strict=True):
        wanted = torch.zeros_like(own_logits)
        chosen = owners(middles, strides, corners) if len(corners) else torch.full((len(own_logits),), -1)
        rows = (chosen >= 0).nonzero()[:, 0]
        wanted[rows, labels[chosen[rows]]] = 1
        share = own_logits.sigmoid()
        weight = torch.where(wanted > 0, 0.25 * (1 - share) ** 2, 0.75 * share**2)
        total = total + (weight * F.binary_cross_entropy_with_logits(own_logits, wanted, reduction="none")).sum()
        found = sided_boxes(middles[rows], own_sides[rows])
        total = total + (1 - generalized_iou(found, corners[chosen[rows]])).sum()
        count += len(rows)
    return total / max(count, 1)


def sided_boxes(middles: Tensor, sides: Tensor) -> Tensor:
    return torch.cat([middles - sides[..., :2], middles + sides[..., 2:]], -1)


def suppressed(boxes: Tensor, scores: Tensor, labels: Tensor) -> ScoredBoxes:
    """Of boxes of a class that overlap, the surest one."""
    order = scores.argsort(descending=True)[:400]
    found = ScoredBoxes(boxes[order].numpy(), labels[order].numpy(), scores[order].numpy())
    kept = surest(found, SAME)
    return ScoredBoxes(found.boxes[kept], found.labels[kept], found.scores[kept])


def batches(images: list[Any], order: np.ndarray) -> Iterator[list[int]]:
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        yield order[begin : begin + BATCH].tolist()


def dense(train: Path, test: Path, size: int, epochs: int, seed: int) -> dict[str, float]:
    """The metrics of the plain detector, and the processor seconds of its training."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    begin, generator = time.process_time(), np.random.default_rng(seed)
    learned, held = boxed_images([train]), boxed_images([test])
    names = sorted({label for one in learned for label in one.labels})
    start = open_start("efficientnet-lite0")
    reads = FittedImage(**start.images | {"size": size})
    prepared = reads.prepare_all(learned)
    model = Dense(len(names)).to(memory_format=torch.channels_last)
    start.fill(model.body, part=True)
    fix_norms(model.body)
    model.train()
    steps, step = int(epochs * len(learned) / BATCH), 0
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-4)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, max(steps, 2), pct_start=0.1)
    middles, strides = places(size)
    while step < steps:
        for chosen in batches(prepared, generator.permutation(len(prepared))):
            inputs, changes = reads.tensors([prepared[number] for number in chosen], generator)
            objects = []
            for number, fit in zip(chosen, changes.fits, strict=True):
                own = learned[number]
                given = torch.from_numpy(shares(np.array(own.boxes, np.float32).reshape(-1, 4), fit))
                corners = box_corners(given) * torch.tensor([*fit.scaled, *fit.scaled])
                objects.append((corners, torch.tensor([names.index(label) for label in own.labels])))
            with torch.autocast("cpu", torch.bfloat16):
                logits, sides = model(inputs["pixels"].to(memory_format=torch.channels_last))
            value = loss(logits.float(), sides.float(), middles, strides, objects)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            rates.step()
            step += 1
            if step == steps:
                break
    seconds = time.process_time() - begin
    return {**measured(model, reads, held, names, middles), "seconds": seconds}


@torch.no_grad()
def measured(model: Dense, reads: FittedImage, held: Any, names: list[str], middles: Tensor) -> dict[str, float]:
    model.eval()
    found, right = [], []
    for example in held:
        fitted = reads.prepare(reads.value(example) if hasattr(reads, "value") else example.read())
        inputs, _ = reads.tensors([fitted])
        logits, sides = model(inputs["pixels"])
        scores, labels = logits[0].sigmoid().max(-1)
        sure = scores > SURE
        factor = fitted.fit.given[0] / fitted.fit.scaled[0]
        boxes = sided_boxes(middles[sure], sides[0][sure]) * factor
        found.append(suppressed(boxes, scores[sure], labels[sure]))
        numbers = np.array([names.index(label) for label in example.labels])
        flags = np.zeros(len(numbers), bool)
        right.append(ScoredBoxes(np.array(example.boxes, np.float64), numbers, None, flags, flags))
    return detection_metrics([*map(match_image, found, right)])


def by_foveate(train: Path, test: Path, size: int, epochs: int, seed: int, more: list[str]) -> dict[str, float]:
    """The metrics of a run of `foveate train detect`, and the processor seconds of the whole command."""
    import resource

    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ["foveate", "train", "detect", "--data", str(train), "--validation", str(test), "--size", str(size)]
        command += ["--epochs", str(epochs), "--seed", str(seed), "--threads", "1", "--out", str(out), *more]
        command += ["--validation-examples", "2", "--validate-every", "1000000"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["foveate", "eval", str(out), "--data", str(test), "--json"]
        given = subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True).stdout
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**next(iter(json.loads(given)["ways"].values())), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "train", type=Path, help="images with boxes to learn from: a folder of Pascal VOC or a COCO file"
    )
    parser.add_argument("test", type=Path, help="images with boxes to measure on")
    parser.add_argument("--size", type=int, default=256, help="longer side of the images in pixels")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=("dense", "foveate"), help="the only one to train")
    arguments, more = parser.parse_known_args()  # other settings are those of the training by foveate
    given = arguments.train, arguments.test, arguments.size, arguments.epochs
    ways = {
        "dense": lambda seed: dense(*given, seed),
        "foveate": lambda seed: by_foveate(*given, seed, more),
    }
    for name, way in ways.items():
        if arguments.only in (None, name):
            rows = [way(seed) for seed in range(1, arguments.seeds + 1)]
            figures = {key: [round(row[key], 2) for row in rows] for key in ("AP50", "AP", "seconds")}
            print(name, *(f"{key} {mean(values):.1f} {values}" for key, values in figures.items()), flush=True)


if __name__ == "__main__":
    main()
