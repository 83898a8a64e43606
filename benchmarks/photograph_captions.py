"""Captions of photographs by decoders that first learn captions as text, beside the caption of the nearest photograph.

    python benchmarks/photograph_captions.py FLICKR8K --out runs/photographs
    foveate eval runs/photographs/soft --data runs/photographs/test.tsv --allow-outside

FLICKR8K has `captions.csv` (image, caption), `images/` and `other-captions.txt`, captions of photographs that are not
there. The last 160 photographs are the test, the 100 before them the validation. The feature map of EfficientNet-Lite0,
from ImageNet, is computed once for each photograph; the decoder reads the principal directions of its channels. Without
a photograph, its context is zero. A decoder learns the other captions so, then those of the training photographs, and
others with the map of the training photograph whose captions are the most similar, until CIDEr-D of the validation is
best. Hard attention begins with the captioner that learned soft attention.

Each model is saved as a run of `foveate train caption`, whose weights have the directions in them.
"""

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import foveate
from foveate import models
from foveate.contracts import Batch
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.decoding import read_image
from foveate.decoding import Decoding
from foveate.forms.form import Changes
from foveate.forms.processor import Processor
from foveate.metrics.captions import caption_metrics
from foveate.tasks.caption import TASK
from foveate.tasks.learning import Lesson
from foveate.tasks.skill import skill_class
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

VALIDATION, TEST = 100, 160

BODY = "efficientnet-lite0"

STAND_IN, DIRECTIONS = "googlenet-small-images", 256
"""An image encoder with as many channels as directions are read, in whose place the known maps are."""

VOCABULARY = 2000

SIMILAR, LENT = 0.3, 0.6
"""How similar a caption must be to those of a photograph to be learned with its map, and the share of such batches."""

RECURRENT = {"embedding": 256, "width": 256, "dropout": 0.3, "image_positions": "none"}
TRANSFORMER = {"encoder_layers": None, "width": 256, "feedforward": 512, "dropout": 0.3}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("show-tell-tiny", RECURRENT),
    "soft": ("show-attend-tell-tiny", RECURRENT),
    "hard": ("show-attend-tell-hard-tiny", RECURRENT),
    "transformer": ("captioner-transformer-tiny", TRANSFORMER),
}
"""The preset of each model, and its sizes."""

STEPS = {"none": 600, "soft": 240, "hard": 240, "transformer": 240}
"""Batches of photographs. Without attention a step takes half the time."""

DECODING = Decoding(length_extra=30, width=5)

EVERY = 40
"""Steps between two validations, which write without a beam."""


@dataclass
class Photographs:
    """Photographs with their captions, and the map of each."""

    examples: list[CaptionedImage]
    maps: Tensor
    """(I, C, h, w)"""

    def part(self, rows: slice) -> "Photographs":
        return Photographs(self.examples[rows], self.maps[rows])


class KnownMaps(nn.Module):
    """An image encoder that is given its own maps."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.grid_width = width

    def grid(self, maps: Tensor) -> Tensor:
        return maps


# -- photographs


def read_photographs(folder: Path, kept: Path) -> Photographs:
    """All photographs of a folder, with their maps, which are kept in a file."""
    found: dict[Path, list[str]] = {}
    with (folder / "captions.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((folder / "images" / row["image"]).resolve(), []).append(row["caption"])
    if not kept.is_file():
        save_file({"maps": compute_maps(list(found)).half()}, kept)
    examples = [
        CaptionedImage(str(path), tuple(captions), partial(read_image, path), file=path)
        for path, captions in found.items()
    ]
    return Photographs(examples, load_file(kept)["maps"].float())


def compute_maps(paths: Sequence[Path]) -> Tensor:
    skill: Any = foveate.load(BODY)
    reads, maps = skill.processor.reads, []
    with torch.inference_mode():
        for begin in range(0, len(paths), 20):
            prepared = [reads.prepare(reads.open(path)) for path in paths[begin : begin + 20]]
            maps.append(skill.model.eval().grid(reads.tensors(prepared)[0]["pixels"]))
    return torch.cat(maps).contiguous()


def principal_directions(maps: Tensor) -> Tensor:
    """What channels are multiplied by for their principal directions, (C, D), with a root mean square of 1."""
    places = maps.permute(0, 2, 3, 1).flatten(0, 2)
    directions = torch.linalg.eigh(places.T @ places)[1].flip(1)[:, :DIRECTIONS]
    return directions / (places @ directions).square().mean().sqrt()


def write_table(part: Photographs, path: Path) -> None:
    """The captions of photographs as a table that foveate reads."""
    lines = [f"{one.place}\t{caption}\n" for one in part.examples for caption in one.captions]
    path.write_text("".join(lines), encoding="utf-8")


def turn(maps: Tensor, directions: Tensor) -> Tensor:
    """Maps (I, C, h, w) in some directions."""
    return torch.einsum("ichw,cd->idhw", maps, directions)


def find_nearest(asked: Photographs, known: Photographs) -> list[int]:
    """The number of the known photograph with the nearest map, by the cosine of the means of its places, which are
    scaled to one length; less the mean of all."""
    means = [nn.functional.normalize(part.maps, dim=1).mean((2, 3)) for part in (asked, known)]
    means = [nn.functional.normalize(own - means[1].mean(0), dim=1) for own in means]
    found: list[int] = (means[0] @ means[1].T).argmax(1).tolist()
    return found


def read_parts(folder: Path, out: Path) -> tuple[Photographs, Photographs, Photographs]:
    """The photographs to learn from, to validate on, and of the test."""
    out.mkdir(parents=True, exist_ok=True)
    found = read_photographs(folder, out / "maps.safetensors")
    begin, end = len(found.examples) - TEST - VALIDATION, len(found.examples) - TEST
    return found.part(slice(begin)), found.part(slice(begin, end)), found.part(slice(end, None))


def read_text(folder: Path, train: Photographs) -> CaptionedImage:
    """The captions of others, as if they were of a photograph."""
    others = (folder / "other-captions.txt").read_text(encoding="utf-8").splitlines()
    return CaptionedImage("other-captions.txt", tuple(others), train.examples[0].read)


# -- captions that lend photographs


def count_words(writes: Any, texts: Sequence[Any]) -> np.ndarray:
    """How many of some texts, given as tokens, have each word."""
    words = np.arange(len(writes.tokenizer))
    return np.sum([np.isin(words, one) for one in texts], 0, dtype=np.float32)


def rarity(writes: Any, counts: np.ndarray) -> np.ndarray:
    """How rare each word is in texts with these counts, (M, N); 0 for words that are unknown."""
    rare = np.log(len(counts) / counts.sum(0).clip(1)) * (counts.sum(0) > 0)
    rare[writes.tokenizer.special.unknown] = 0
    return rare


def cosines(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    rows, columns = (own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-6) for own in (rows, columns))
    return rows @ columns.T


def lend_photographs(writes: Any, text: CaptionedImage, train: Photographs) -> list[tuple[Any, int]]:
    """The tokens of captions that are similar enough to those of a photograph, with its number."""
    tokens = writes.prepare(text)
    counts = np.stack([count_words(writes, [one]) for one in tokens])
    own = np.log1p(np.stack([count_words(writes, writes.prepare(one)) for one in train.examples]))
    rare = rarity(writes, counts)
    similar = cosines(counts * rare, own * rare)
    found = zip(tokens, similar.argmax(1).tolist(), similar.max(1), strict=True)
    return [(one, number) for one, number, most in found if most >= SIMILAR]


def photograph_batches(
    writes: Any, train: Photographs, text: CaptionedImage, directions: Tensor, size: int, seed: int
) -> Iterator[tuple[Any, Tensor]]:
    """Tokens of captions, each with the map of its photograph, or of the one that is lent to it."""
    own = [(tokens, number) for number, one in enumerate(train.examples) for tokens in writes.prepare(one)]
    lent = lend_photographs(writes, text, train)
    maps, generator = turn(train.maps, directions), np.random.default_rng(seed)
    of_own, of_lent = (batches_of_like_length([tokens for tokens, _ in pairs], size, seed) for pairs in (own, lent))
    while True:
        is_lent = generator.random() < LENT
        chosen = [lent[number] for number in next(of_lent)] if is_lent else [own[number] for number in next(of_own)]
        yield [tokens for tokens, _ in chosen], maps[[number for _, number in chosen]]


def text_batches(writes: Any, text: CaptionedImage, size: int, seed: int) -> Iterator[tuple[Any, Tensor]]:
    """Tokens of captions, each with one place that is zero."""
    tokens = writes.prepare(text)
    for rows in batches_of_like_length(tokens, size, seed):
        yield [tokens[row] for row in rows], torch.zeros(len(rows), DIRECTIONS, 1, 1)


def batches_of_like_length(tokens: Sequence[Any], size: int, seed: int) -> Iterator[list[int]]:
    """The rows of each batch, without an end."""
    generator = np.random.default_rng(seed)
    while True:
        order = sorted(generator.permutation(len(tokens)).tolist(), key=lambda row: len(tokens[row]))
        parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
        yield from (parts[number] for number in generator.permutation(len(parts)))


# -- models


@dataclass
class Student:
    """A captioner in training, which is given the directions of known maps."""

    lesson: Lesson
    processor: Processor
    model: nn.Module
    directions: Tensor

    @classmethod
    def of(cls, kind: str, out: Path, examples: Dataset[Any], directions: Tensor, seed: int) -> "Student":
        preset, sizes = MODELS[kind]
        settings = {
            "architecture": {**sizes, "image_encoder": BODY},
            "size": 224,
            "vocabulary": VOCABULARY,
            "decoding": DECODING,
            "data": out / "train.tsv",
            "validation": out / "validation.tsv",
            "allow_outside": True,
        }
        recipe = TASK.recipe(model=preset, start=BODY, device="cpu", seed=seed, out=out / kind, **settings)
        lesson = Lesson(TASK, recipe)
        processor = lesson.processor_of(examples)
        config: Any = recipe.architecture
        config = replace(config, vocabulary=len(processor.writes.tokenizer), image_encoder=STAND_IN)
        torch.manual_seed(seed)
        model: Any = models.build(lesson.plan.preset.family, config)
        place, name = (model.places, "encoder") if hasattr(model, "places") else (model, "image_encoder")
        setattr(place, name, KnownMaps(DIRECTIONS))
        return cls(lesson, processor, model, directions)

    @property
    def writes(self) -> Any:
        return self.processor.writes

    def write(self, maps: Tensor, beam: int) -> list[str]:
        """The caption of each map."""
        options = self.writes.run_options()
        options.decoding.width = beam
        batches = (([], {"pixels": turn(some, self.directions)}) for some in maps.split(40))
        with torch.inference_mode():
            found = [*self.writes.decide_all(self.model.eval(), batches, options)]
        return [one.text for answers in found for one in answers]

    def measure(self, part: Photographs, beam: int) -> dict[str, float]:
        return caption_metrics(self.write(part.maps, beam), part.examples)

    def keep(self, path: Path) -> None:
        """Keep the weights for the directions in a file."""
        save_file({name: value.clone() for name, value in self.model.state_dict().items()}, path)

    def save(self) -> None:
        """Save a run of `foveate train caption`: channels, the last inputs of each layer that reads them, have the
        weights of the directions times the directions."""
        whole = self.lesson.model_of(self.processor.sizes())
        own = dict(whole.named_parameters())
        for name, value in self.model.named_parameters():
            if own[name].shape != value.shape:
                value = torch.cat([value[:, :-DIRECTIONS], value[:, -DIRECTIONS:] @ self.directions.T], 1)
            own[name].data.copy_(value)
        skill = skill_class(TASK, self.processor)
        recipe, description = self.lesson.recipe, self.lesson.description(whole)
        skill(TASK, recipe, whole.eval(), self.processor, description).save(recipe.out)


# -- training


def schedule(step: int, steps: int) -> float:
    """The share of the greatest rate: it rises for 30 steps, and falls as a cosine."""
    return min(1.0, step / 30) * max(0.02, (1 + math.cos(math.pi * step / steps)) / 2)


def learn(
    student: Student,
    batches: Iterator[tuple[Any, Tensor]],
    steps: int,
    rate: float,
    validation: Photographs | None = None,
) -> None:
    """Learn from batches; with a validation, keep the weights of the best CIDEr-D."""
    model = student.model.train()
    settings = Training(device="cpu", precision="float32", optimizer="muon", weight_decay=0.05)
    updater = Updater(model, CrossEntropy(), settings)
    best, kept = -1.0, model.state_dict()
    for step in range(1, steps + 1):
        tokens, maps = next(batches)
        inputs, targets, weight = student.writes.tensors(tokens, Changes(), None)
        updater([Batch({"pixels": maps, **inputs}, targets, weight, "")], rate * schedule(step, steps), step)
        if validation is not None and step % EVERY == 0:
            found = student.measure(validation, 1)["cider"]
            print(f"step {step}: CIDEr-D {found:.2f} on validation", file=sys.stderr, flush=True)
            if found > best:
                best, kept = found, {name: value.clone() for name, value in model.state_dict().items()}
            model.train()
    model.load_state_dict(kept)
    model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/photographs"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--text-steps", type=int, default=400)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    train, validation, test = read_parts(asked.folder, asked.out)
    known = Photographs([*train.examples, *validation.examples], torch.cat([train.maps, validation.maps]))
    for name, part in (("train", train), ("validation", validation), ("test", test)):
        write_table(part, asked.out / f"{name}.tsv")
    directions, text = principal_directions(train.maps), read_text(asked.folder, train)
    examples = Dataset("captions", [*train.examples, text], "images")

    print("| captions by | BLEU-4 | CIDEr-D | on validation | processor seconds |\n| --- | ---: | ---: | ---: | ---: |")
    nearest = [known.examples[number].captions[0] for number in find_nearest(test, known)]
    found = caption_metrics(nearest, test.examples)
    print(f"| the nearest photograph's | {found['bleu']:.2f} | {found['cider']:.2f} | | |", flush=True)
    for kind in asked.models:
        student = Student.of(kind, asked.out, examples, directions, asked.seed)
        start = asked.out / ("soft.safetensors" if kind == "hard" else f"text-{kind}.safetensors")
        if kind != "hard" and not start.is_file():
            begin = time.process_time()
            learn(student, text_batches(student.writes, text, asked.batch, asked.seed), asked.text_steps, 5e-3)
            student.keep(start)
            print(f"{start}: {time.process_time() - begin:.0f} processor seconds", file=sys.stderr, flush=True)
        student.model.load_state_dict(load_file(start), strict=kind != "hard")
        begin = time.process_time()
        pairs = photograph_batches(student.writes, train, text, directions, asked.batch, asked.seed)
        learn(student, pairs, asked.steps or STEPS[kind], 2e-3, validation)
        seconds = time.process_time() - begin
        found, other = (student.measure(part, DECODING.width) for part in (test, validation))
        row = [f"{found['bleu']:.2f}", f"{found['cider']:.2f}", f"{other['cider']:.2f}", f"{seconds:.0f}"]
        print(f"| {kind} | {' | '.join(row)} |", flush=True)
        student.keep(asked.out / f"{kind}.safetensors")
        student.save()


if __name__ == "__main__":
    main()
