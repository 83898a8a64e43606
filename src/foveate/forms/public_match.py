"""Images and texts as the CLIPs and SigLIPs of Hugging Face folders compare them.

PublicImageText   what is read: an image, with a text or alone
PublicFit         what is written: how well the text fits, or the best of several labels
"""

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.kept import Unread
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError
from foveate.forms.caption_match import CaptionFit, FitAnswer, vector_row
from foveate.forms.form import Changes, Learned, MapRow
from foveate.forms.image import Fitted
from foveate.forms.label import LabelAnswer, choose_label
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.public_image import PublicImage
from foveate.forms.question import ImageText, TextAboutImage


class FittedWithText(NamedTuple):
    """An image as a model reads it, and a text, which is empty where labels are asked for."""

    image: Fitted | Unread
    caption: str
    asked: bool = True
    """Whether a user asks for it."""


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
        return FittedWithText(super().prepare(value.image), value.text, not value.of_dataset)

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.ascontiguousarray(super().prepare(value).pixels.transpose(1, 2, 0))

    def places(self, prepared: Any) -> int:
        return super().places(prepared.image)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        fit = super().prepare
        images = [one.image if isinstance(one, FittedWithText) else fit(one.read()) for one in prepared]
        return super().tensors(images, generator)


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
    decides each by itself. The vocabulary is a folder's, or is learned."""

    options: ClassVar[type[Any]] = MatchOptions
    answer: ClassVar[type[FitAnswer]] = ScoreAnswer

    apart: Learned[bool] = False
    """Each pair is decided by itself (SigLIP), and texts are padded to the longest one."""
    plain: Learned[bool] = False
    """Texts are read in lower case and without punctuation."""

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_text_tokenizer(path)

    def learn(self, train: Dataset[CaptionedImage], reads: Any, architecture: Any) -> "PublicFit":
        found: Any = super().learn(train, reads, architecture)
        found.apart = architecture.kind == "siglip"
        return found

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens before a text and behind it."""
        own = self.tokenizer
        return (own.begin, own.end) if isinstance(own, TextTokenizer) else ((own.special.start,), (own.special.end,))

    def prepare(self, example: CaptionedImage) -> list[list[int]]:
        """The tokens of each caption; of one that is too long, the first that the model reads."""
        return [self.encode_caption(caption, asked=False) for caption in example.captions]

    def prepare_all(self, dataset: Dataset[Any], numbers: Sequence[int]) -> Prepared:
        found = super().prepare_all(dataset, numbers)
        captions = [caption for number in numbers for caption in dataset[number].captions]
        cut = sum(len(tokens) > self._most for tokens in self._inside(captions))
        note = f"cut after {self._most} tokens, which the model reads: {cut:,} of {len(captions):,} captions"
        return replace(found, report=note if cut else "")

    def read(self, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        width = self.longest if self.apart else max(map(len, captions))
        pad = self.tokenizer.special.pad
        tokens = torch.tensor([[*caption, *[pad] * (width - len(caption))] for caption in captions])
        return {"tokens": tokens, "lengths": torch.tensor([len(caption) for caption in captions])}

    def decide(self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any) -> list[Any]:
        """Scores or labels, and a failure for each text that the model cannot read."""
        names = getattr(options, "names", [])
        if not names:
            return super().decide(model, inputs, prepared, options)
        if any(one.caption for one in prepared):
            raise UserError("--labels are compared with images alone, but a text was given too")
        images = model.embed_images(inputs["pixels"])
        tokens = [self.encode_caption(options.template.replace("{}", name), asked=True) for name in names]
        logits = model.logits(images, model.embed_captions(**self.read_on(images.device, tokens))).float()
        found = []
        for row in (logits.sigmoid() if self.apart else logits.softmax(-1)).tolist():
            label, probability, by_label = choose_label(names, row)
            best = ChosenLabel(label=label, probability=probability, probabilities=by_label, top=len(names))
            best.tokens = tokens[names.index(label)]
            found.append(best)
        return found

    def further(self, model: Any, images: Tensor, texts: Tensor) -> Sequence[Mapping[str, Any]]:
        return [{"score": float(score)} for score in model.logits(images, texts).diagonal()]

    def encode_caption(self, caption: str, asked: bool) -> list[int]:
        """The tokens of a text and around it. Raises UserError for one that a user asked for and that is too long."""
        if asked and not caption:
            raise UserError(PublicImageText.missing)
        if asked and not isinstance(self.tokenizer, TextTokenizer):
            self.known(caption, "nothing to compare")
        before, behind = self.around
        (inside,) = self._inside([caption])
        found = [*before, *(inside if asked else inside[: self._most]), *behind]
        if len(found) > self.longest:
            raise UserError(f"the text has {len(found)} tokens, but the model reads at most {self.longest}")
        return found

    @property
    def _most(self) -> int:
        """The tokens that a text may have, without those around it."""
        return self.longest - sum(map(len, self.around))

    def _inside(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without those around it."""
        found: list[list[int]] = self.tokenizer.encode([plain_text(one) for one in texts] if self.plain else texts)
        return found

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


def plain_text(text: str) -> str:
    """A text as a SigLIP reads it: in lower case, without punctuation, with single spaces."""
    return re.sub(r"\s+", " ", text.translate(str.maketrans("", "", string.punctuation)).lower()).strip()
