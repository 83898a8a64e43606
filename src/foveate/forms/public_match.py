"""Images and texts as the CLIPs and SigLIPs of Hugging Face folders compare them.

PublicImageText   what is read: an image, with a text or alone
PublicFit         what is written: how well the text fits, or the best of several labels
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.data.images.captions import CaptionedImage
from foveate.errors import UserError
from foveate.forms.answers import Failure
from foveate.forms.caption_match import CaptionFit, FitAnswer, vector_row
from foveate.forms.form import Changes, Learned, MapRow
from foveate.forms.image import Fitted
from foveate.forms.label import LabelAnswer, choose_label
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.public_image import PublicImage
from foveate.forms.question import ImageText, TextAboutImage


class FittedWithText(NamedTuple):
    """An image as a model reads it, and a text, which is empty where labels are asked for."""

    image: Fitted
    text: str


@dataclass
class PublicImageText(TextAboutImage, PublicImage):
    """An image: inputs `pixels` (B, C, h, w). A text comes with it, unless labels are asked for."""

    needs_text: ClassVar[bool] = False
    missing: ClassVar[str] = 'no text: give an image and a text, such as photo.jpg "a cat", or --labels "a cat" "a dog"'

    def value(self, example: CaptionedImage) -> Any:
        return ImageText(example.read(), example.captions[0], of_dataset=True)

    def place(self, example: CaptionedImage) -> str:
        return f"{example.place}\t{example.captions[0]}"

    def prepare(self, value: Any) -> Any:
        return FittedWithText(super().prepare(value.image), value.text)

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.ascontiguousarray(super().prepare(value).pixels.transpose(1, 2, 0))

    def places(self, prepared: Any) -> int:
        return super().places(prepared.image)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return super().tensors([one.image for one in prepared], generator)


@dataclass
class MatchOptions:
    """What is asked of a model that compares images and texts."""

    labels: tuple[str, ...] = ()
    """Which of these labels fits each image best, given apart or with commas between them; images have no texts
    then."""
    template: str = "This is a photo of {}."
    """The text about an image that a label stands for in place of {}."""

    def check(self) -> None:
        """Raise UserError for labels of which there is nothing to choose, and for a template without a place."""
        if "{}" not in self.template:
            raise UserError(f"template is '{self.template}', but must have {{}} where a label stands")
        if self.labels and len({*self.names}) < 2:
            raise UserError("--labels needs at least two different labels to choose from")

    @property
    def names(self) -> list[str]:
        """Each label."""
        parts = [part.strip() for label in self.labels for part in label.split(",")]
        return [*dict.fromkeys(part for part in parts if part)]


@dataclass(kw_only=True)
class ScoreAnswer(FitAnswer):
    """How well an image and a text fit: the score is the logit of the pair."""

    score: float = 0.0

    @property
    def cells(self) -> list[str]:
        return [f"{self.score:.3f}"]

    @property
    def title(self) -> str:
        return f"{self.caption}  {self.score:.3f}"


@dataclass(kw_only=True)
class ChosenLabel(LabelAnswer):
    """The label that fits an image best."""

    tokens: list[int] = field(default_factory=list, repr=False)
    """Those of its text."""


@dataclass
class PublicFit(CaptionFit):
    """The score of an image and a text, or the probabilities of labels: those of a CLIP add up to 1, and a SigLIP
    decides each by itself."""

    options: ClassVar[type[Any]] = MatchOptions

    apart: Learned[bool] = False
    """Each pair is decided by itself (SigLIP), and texts are padded to the longest one."""
    plain: Learned[bool] = False
    """Texts are read in lower case and without punctuation."""

    def prepare(self, example: CaptionedImage) -> list[list[int]]:
        return [self._encode(caption) for caption in example.captions]

    def read(self, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        width = self.longest if self.apart else max(map(len, captions))
        pad = self.tokenizer.special.pad
        tokens = torch.tensor([[*caption, *[pad] * (width - len(caption))] for caption in captions])
        return {"tokens": tokens, "lengths": torch.tensor([len(caption) for caption in captions])}

    def decide(self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any) -> list[Any]:
        """Scores or labels, and a failure for each text that the model cannot read."""
        images = model.embed_images(inputs["pixels"])
        if names := getattr(options, "names", []):
            return self._choose(model, images, names, prepared, options.template)
        found: list[Any] = []
        for vector, (_, text) in zip(images, prepared, strict=True):
            try:
                if not text:
                    raise UserError(PublicImageText.missing)
                tokens = self._encode(text)
            except UserError as error:
                found.append(Failure(text, str(error)))
                continue
            other = model.embed_captions(**self._on(images, [tokens]))[0]
            score, cosine = float(model.logits(vector[None], other[None])), float(vector @ other)
            vectors = torch.stack([vector, other]).float().cpu()
            found.append(ScoreAnswer(cosine=cosine, score=score, vectors=vectors, caption=text, tokens=tokens))
        return found

    def _choose(
        self, model: Any, images: Tensor, names: Sequence[str], prepared: Sequence[Any], template: str
    ) -> list[Any]:
        if any(one.text for one in prepared):
            raise UserError("--labels are compared with images alone, but a text was given too")
        tokens = [self._encode(template.replace("{}", name)) for name in names]
        logits = model.logits(images, model.embed_captions(**self._on(images, tokens))).float()
        found = []
        for row in (logits.sigmoid() if self.apart else logits.softmax(-1)).tolist():
            label, probability, by_label = choose_label(names, row)
            best = ChosenLabel(label=label, probability=probability, probabilities=by_label, top=len(names))
            best.tokens = tokens[names.index(label)]
            found.append(best)
        return found

    def _on(self, like: Tensor, tokens: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        return {name: value.to(like.device) for name, value in self.read(tokens).items()}

    def _encode(self, text: str) -> list[int]:
        """The tokens of a text. Raises UserError for one that is too long."""
        if self.plain:
            text = re.sub(r"\s+", " ", text.translate(str.maketrans("", "", string.punctuation)).lower()).strip()
        (tokens,) = self.tokenizer.encode([text])
        if len(tokens) > self.longest:
            raise UserError(f"the text has {len(tokens)} tokens, but the model reads at most {self.longest}")
        return list(tokens)

    # -- looking

    def teach(self, answer: Any) -> dict[str, Tensor]:
        return self.read([answer.tokens])

    def axis(self, answer: Any) -> DecoderNames:
        pieces = self.tokenizer.pieces(answer.tokens)
        count = self.longest if self.apart else len(pieces)
        names = token_names([*pieces, *["[PAD]"] * (count - len(pieces))])
        return DecoderNames(names, names, "reader", count)

    def rows(self, sight: Any, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        return vector_row(answer.title, sight)
