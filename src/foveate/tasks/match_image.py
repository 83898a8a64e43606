"""Matching of images and captions: which of many captions belongs to an image."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import PIL.Image
import torch
import tyro
from torch import Tensor

from foveate.data import TRAINERS
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, captioned_images
from foveate.data.images.decoding import read_image
from foveate.data.images.matching_processor import MatchingProcessor
from foveate.data.images.processor import choose_format
from foveate.errors import TextError, UserError, one_line
from foveate.tasks.answers.drawn_words import check_captions
from foveate.tasks.caption import Captions
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Task
from foveate.tasks.protocols import NoOptions
from foveate.training import Objective
from foveate.training.objectives.contrastive import Contrastive

BATCH = 64
"""Images that are read together."""

AMONG = 100
"""Captions from which an image's own is chosen."""


@dataclass
class Matched(Captions):
    """Which captioned images to learn from, a table with path<TAB>caption on each line or a JSON file of COCO captions,
    and what becomes of them."""

    batch: int = 64
    """Images of a batch, each of which is compared with all captions of it."""
    validation_examples: int = 500
    """Images that each validation during training measures."""


@dataclass
class Fit:
    """How well an image and a caption fit."""

    text: str
    cosine: float
    """The cosine of the angle between their vectors, -1 to 1."""

    @property
    def line(self) -> str:
        """What was given and the cosine, with a tab between them."""
        return f"{one_line(self.text)}\t{self.cosine:.3f}"


@dataclass
class MatchImage(Task[Architecture]):
    """Train a model that tells which caption belongs to an image.

    `foveate run` takes the path of an image and a caption with a tab between them.
    """

    task = "match-image"
    unit = "images"
    files = "TABLE"
    metric = "recall_1"
    processor = MatchingProcessor
    default_training = Training(
        usual_epochs=10,
        learning_rate=1e-3,
        schedule="cosine",
        usual_warmup=100,
        weight_decay=0.05,
        validate_every=200,
        save_every=200,
    )

    examples: Annotated[Matched, tyro.conf.arg(name="")] = field(default_factory=Matched)
    model: str = "clip-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/match-image")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[CaptionedImage]:
        return captioned_images(paths)

    def fit(self, train: Dataset[CaptionedImage]) -> MatchingProcessor:
        chosen = self.examples
        texts = [caption for example in train for caption in example.captions]
        alike = [train[0]] if train[0].identity else train  # composed images are alike: one tells of all
        tokenizer = TRAINERS[chosen.tokens](texts, chosen.vocabulary, chosen.lowercase)
        return MatchingProcessor(choose_format(alike, chosen.size), tokenizer)

    def objective(self) -> Objective:
        return Contrastive()

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Fit]:
        """How well the image and the caption of each argument fit."""
        for place, text in enumerate(texts):
            if text.count("\t") != 1:
                raise TextError(place, "one tab must stand between the path of an image and a caption")
        paths, captions = zip(*(text.split("\t") for text in texts), strict=True)
        check_captions(predictor, captions)
        images = embed_images(predictor, [read_image(Path(path)) for path in paths])
        cosines = (images * embed_captions(predictor, captions)).sum(1).tolist()
        return [Fit(text, cosine) for text, cosine in zip(texts, cosines, strict=True)]

    def measure(self, predictor: Predictor, examples: Sequence[CaptionedImage], options: NoOptions) -> Measured:
        """How often an image's own caption fits best among 100, or is one of the five that fit best."""
        captions = [one.captions[0] for one in examples]
        images = embed_images(predictor, [one.read() for one in examples])
        ranks = caption_ranks(images, embed_captions(predictor, captions), captions)
        lines = [f"{caption}\t{rank}" for caption, rank in zip(captions, ranks, strict=True)]
        return Measured(lines, recall(ranks))

    def baselines(
        self, predictor: Predictor, examples: Sequence[CaptionedImage], options: Any
    ) -> dict[str, dict[str, float]]:
        among = min(AMONG, len(examples))
        return {"chance": {"recall_1": 100 / among, "recall_5": 500 / among}}


def embed_images(predictor: Predictor, images: Sequence[PIL.Image.Image]) -> Tensor:
    """The vectors of images, (N, E)."""
    model: Any = predictor.model
    found = []
    for begin in range(0, len(images), BATCH):
        pixels = predictor.processor.pixels(images[begin : begin + BATCH]).to(predictor.device)
        with torch.inference_mode():
            found.append(model.embed_images(pixels).float().cpu())
    return torch.cat(found)


def embed_captions(predictor: Predictor, captions: Sequence[str]) -> Tensor:
    """The vectors of captions, (N, E)."""
    model: Any = predictor.model
    inputs = predictor.on_device(predictor.processor.read(predictor.processor.tokenizer.encode(list(captions))))
    with torch.inference_mode():
        return model.embed_captions(**inputs).float().cpu()


def caption_ranks(images: Tensor, captions: Tensor, texts: Sequence[str]) -> list[int]:
    """How many other captions of the same hundred fit each image at least as well as its own, and are not equal to it.

    Hundreds are taken in order; examples that fill no hundred, unless they are the only ones, are compared with the
    first of them.
    """
    if len(texts) < 2:
        raise UserError("one caption alone cannot be chosen from: measure on two images or more")
    ranks = []
    names = np.array(texts)
    for begin in range(0, len(texts), AMONG):
        own = np.arange(begin, min(begin + AMONG, len(texts)))
        among = np.append(own, np.arange(min(len(texts), AMONG) - len(own))) if len(own) < AMONG else own
        cosines = (images[own] @ captions[among].mT).numpy()
        other = names[own][:, None] != names[among][None]
        right = cosines[np.arange(len(own)), np.arange(len(own))]
        ranks += ((cosines >= right[:, None]) & other).sum(1).tolist()
    return ranks


def recall(ranks: Sequence[int]) -> dict[str, float]:
    """The shares of the ranks that are the first, and one of the first five."""
    return {f"recall_{most}": 100 * float(np.mean([rank < most for rank in ranks])) for most in (1, 5)}
