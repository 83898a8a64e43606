"""How well an image and a caption fit: the cosine of their vectors.

    CaptionedImages   what is read: an image, and in use a caption
    CaptionFit        what is written: the cosine; it reads the captions of a batch too

B batch    E width of the vectors    S tokens of a caption
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.table import CAPTION, IMAGE, Column
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.forms.caption_words import CaptionWords
from foveate.forms.form import Changes, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.question import ImageText, ImageWithText
from foveate.forms.scored import ScoredForm
from foveate.metrics.retrieval import AMONG, as_shares, ranks_in_hundreds


class PairPixels(NamedTuple):
    """An image as a model reads it, and a caption."""

    pixels: np.ndarray
    """(C, h, w) in 8 bits."""
    caption: str
    asked: bool
    """Whether a user asks for it, who should know of words that the model does not know."""


@dataclass
class CaptionedImages(ImageWithText):
    """An image: inputs `pixels` (B, C, h, w). In use a caption comes with it."""

    columns: ClassVar[tuple[Column, ...]] = (IMAGE, CAPTION)
    worth_optimizing: ClassVar[float] = math.inf
    missing: ClassVar[str] = "one tab must stand between the path of an image and a caption"

    def value(self, example: CaptionedImage) -> Any:
        return self.pair(example.read(), example.captions[0])

    def pair(self, image: PIL.Image.Image, caption: str) -> Any:
        """The value of an image and a caption, which may have words that the model does not know."""
        return ImageText(image, caption, of_dataset=True)

    def place(self, example: CaptionedImage) -> str:
        return f"{example.place}\t{example.captions[0]}"

    def prepare(self, value: Any) -> Any:
        return PairPixels(super().prepare(value.image), value.text, not value.of_dataset)

    def places(self, prepared: Any) -> int:
        return super().places(prepared.pixels)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pixels = [one.pixels if isinstance(one, PairPixels) else one for one in prepared]
        return super().tensors(pixels, generator)

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        """The mean of the places, which attends to them, or the places of the image."""
        places = super().axis(value, prepared, grid)
        return lambda count: ["mean of the places"] if count == 1 else places(count)


@dataclass(kw_only=True)
class FitAnswer(Answer):
    """How well an image and a caption fit."""

    cosine: float = 0.0
    """The cosine of the angle between their vectors, -1 to 1."""
    vectors: Tensor | None = field(default=None, repr=False, compare=False)
    """The vector of the image, and that of the caption (2, E)."""
    caption: str = field(default="", repr=False)
    tokens: list[int] = field(default_factory=list, repr=False)
    """Those of the caption."""

    @property
    def cells(self) -> list[str]:
        return [f"{self.cosine:.3f}"]

    @property
    def title(self) -> str:
        return f"{self.caption}  {self.cosine:.3f}"


@dataclass
class CaptionFit(ScoredForm, CaptionWords, OutputForm):
    """The cosine of an image and a caption: inputs `tokens` (B, S) and `lengths` (B,), and labels (B, 1).

    A label is the number of the first equal caption of the batch. An image with several captions makes a row for each.
    Models have `embed_images(pixels)` and `embed_captions(tokens, lengths)`.
    """

    metric: ClassVar[str] = "recall_1"
    score_name = "logit"
    answer: ClassVar[type[FitAnswer]] = FitAnswer

    def learn(self, train: Dataset[CaptionedImage], reads: Any, architecture: Any) -> "CaptionFit":
        found = copy(self)
        found.learn_words([caption for example in train for caption in example.captions], architecture)
        return found

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer)}

    def prepare(self, example: CaptionedImage) -> list[list[int]]:
        return list(self.tokenizer.encode(list(example.captions)))

    def tensors(
        self, prepared: Sequence[Sequence[int]], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        captions = [tuple(tokens) for tokens in prepared]
        first = {caption: place for place, caption in reversed([*enumerate(captions)])}
        labels = torch.tensor([[first[caption]] for caption in captions])
        return self.read(captions), {"labels": labels}, torch.ones(len(labels), dtype=torch.long)

    def decide(self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any) -> list[Any]:
        """The cosines, and a failure for each caption that a user should write in another way."""
        found: list[Any] = [self._tokens_or_failure(one) for one in prepared]
        rows = [row for row, one in enumerate(found) if not isinstance(one, Failure)]
        if not rows:
            return found
        pixels = inputs["pixels"]
        images = model.embed_images(pixels[rows])
        texts = model.embed_captions(**self.read_on(pixels.device, [found[row] for row in rows]))
        pairs = torch.stack([images, texts], 1).float().cpu()
        for row, vectors, more in zip(rows, pairs, self.further(model, images, texts), strict=True):
            cosine = float((vectors[0] * vectors[1]).sum())
            own: dict[str, Any] = {"caption": prepared[row].caption, "tokens": found[row], **more}
            found[row] = self.answer(cosine=cosine, vectors=vectors, **own)
        return found

    def read_on(self, device: torch.device, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The inputs for the tokens of captions, on a device."""
        return {name: value.to(device) for name, value in self.read(captions).items()}

    def further(self, model: Any, images: Tensor, texts: Tensor) -> Sequence[Mapping[str, Any]]:
        """What an answer says of each pair of vectors beside their cosine."""
        return [{}] * len(images)

    def encode_caption(self, caption: str, asked: bool) -> list[int]:
        """The tokens of a caption. Raises UserError for one that a user should write in another way, who `asked`."""
        return self.checked(caption, "nothing to compare") if asked else list(self.tokenizer.encode([caption])[0])

    def _tokens_or_failure(self, pair: Any) -> Any:
        try:
            return self.encode_caption(pair.caption, pair.asked)
        except UserError as error:
            return Failure(pair.caption, str(error))

    def metrics(self, answers: Sequence[FitAnswer], examples: Sequence[CaptionedImage]) -> dict[str, float]:
        """How often an image's own caption fits best among 100, or is one of the five that fit best."""
        images, captions = torch.stack([one.vectors for one in answers if one.vectors is not None], 1)
        return as_shares(ranks_in_hundreds(images, captions, [one.captions[0] for one in examples]))

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        among = min(AMONG, len(examples))
        return {"chance": {"recall_1": 100 / among, "recall_5": 500 / among}}

    # -- looking

    def teach(self, answer: FitAnswer) -> dict[str, Tensor]:
        return self.read([answer.tokens])

    def scored_labels(self, output: Output, answer: FitAnswer) -> Tensor:
        return torch.zeros(1, 1, dtype=torch.long)

    def scored_answer(self, labels: Tensor, answer: FitAnswer) -> str:
        return answer.caption

    def score(self, output: Output, labels: Tensor, copies: int = 1) -> Tensor:
        """The logits of each image and its own caption."""
        return output.logits.float().diagonal()

    def axis(self, answer: FitAnswer) -> DecoderNames:
        """The tokens of the caption, which attend to each other."""
        names = token_names(self.names(answer.tokens))
        return DecoderNames(names, names, "reader", len(answer.tokens) + 2)

    def rows(self, sight: Any, model: nn.Module, answer: FitAnswer, before: int) -> list[MapRow]:
        return vector_row(answer.title, sight)


def vector_row(name: str, sight: Any) -> list[MapRow]:
    """Where an image is looked at for its vector: by its pooling, its class token, or the query of a SigLIP."""
    sites = [site for site in sight.sites if site == "pool" or site.startswith("images.")]
    if not sites:
        return []
    return [MapRow(name, sight[sites[-1]].weights()[0, :, 0].float().mean(0).cpu())]
