"""Captions that describe an image."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from foveate.baselines.nearest_images import nearest_images
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.decoding import Decoding
from foveate.forms.form import MapRow
from foveate.forms.grids import GridFinder
from foveate.forms.written import WriteOptions, WrittenAnswer, WrittenWords
from foveate.metrics.attention_in_boxes import shares_of_names
from foveate.metrics.captions import caption_metrics, measured_captions
from foveate.metrics.resampling import Measured
from foveate.sight import Sight
from foveate.viewer.figures import WordRow

LOOKED_AT = 200
"""Images whose attention is compared with the boxes of what they show, when a model is measured."""

NOTEWORTHY = 0.02
"""Share of unknown tokens in the captions of a test from which it is mentioned."""

NEIGHBOURS = 5_000
"""Training images that the nearest one is searched in, for the baseline."""


def usual_decoding() -> Decoding:
    """How captions are searched: `length_extra` is the greatest number of tokens."""
    return Decoding(length_extra=40, width=3)


@dataclass
class CaptionOptions(WriteOptions):
    """How captions are written, and what a picture shows."""

    decoding: Decoding = field(default_factory=usual_decoding)
    heads: bool = False
    """In a picture, a row for each head of the block that looks most decidedly."""
    beside: tuple[Path, ...] = ()
    """In a picture, rows below for other captioners, by their folders."""


@dataclass(kw_only=True)
class CaptionAnswer(WrittenAnswer):
    """What a model wrote about an image."""

    called: ClassVar[str] = "Caption"

    options: CaptionOptions = field(default_factory=CaptionOptions, repr=False)
    """How it was written, and what a picture of it shows."""

    @property
    def title(self) -> str:
        return ""

    def json_values(self) -> dict[str, Any]:
        """Place and caption, and the next best ones where more were asked for."""
        others = {"others": self.others} if self.others else {}
        return {"place": self.given, "text": self.text, **others}


@dataclass
class CaptionText(WrittenWords):
    """A caption of an image; an image with several makes a row for each."""

    options: ClassVar[type[Any]] = CaptionOptions
    eval_options: ClassVar[type[Any]] = CaptionOptions
    metric: ClassVar[str] = "bleu"
    start_sign: ClassVar[str] = "[START]"
    end_sign: ClassVar[str] = "[END]"

    decoding: Decoding = field(default_factory=usual_decoding)

    def texts(self, example: CaptionedImage) -> Sequence[str]:
        return example.captions

    def nothing(self) -> CaptionAnswer:
        return CaptionAnswer()

    def decide_all(
        self,
        model: Any,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: CaptionOptions,
        at_once: int = 1,
    ) -> Iterator[list[WrittenAnswer]]:
        for answers in super().decide_all(model, batches, options, at_once):
            yield [CaptionAnswer(**vars(one), options=options) for one in answers]

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[CaptionedImage]) -> dict[str, float]:
        """BLEU and CIDEr-D; where the data tells what stands where, also by the number of things."""
        return self.measurable(answers, examples).all()

    def measurable(self, answers: Sequence[WrittenAnswer], examples: Sequence[CaptionedImage]) -> Measured:
        return measured_captions([one.text for one in answers], examples)

    def look_metrics(
        self, answers: Sequence[Any], examples: Sequence[Any], maps: Callable[[Any, Any], Sequence[Tensor]]
    ) -> dict[str, float]:
        """The share of the attention of a thing's name that is inside its box, when the model reads the right caption,
        beside that of uniform attention."""
        known = [one for one in examples if one.regions][:LOOKED_AT]
        return shares_of_names(self.tokenizer, known, lambda example: maps(example, self.reference(example)))

    def reference(self, example: CaptionedImage) -> CaptionAnswer:
        """The right caption, as if a model had written it."""
        text = example.captions[0]
        return CaptionAnswer(text=text, tokens=list(self.tokenizer.encode([text])[0]))

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent caption of the training images, and that of the training image whose pixels are nearest."""
        known = [*reads.usable(Dataset("training images", train().some(NEIGHBOURS), "images"))]
        frequent = Counter(caption for one in known for caption in one.captions).most_common(1)[0][0]
        places = nearest_images(examples, known, reads.sizes()["channels"])
        nearest = [known[place].captions[0] for place in places]
        return {
            "the most frequent caption": caption_metrics([frequent] * len(examples), examples),
            "the nearest image's caption": caption_metrics(nearest, examples),
        }

    def notes(self, examples: Sequence[CaptionedImage]) -> list[str]:
        """How many tokens of the references the model cannot write, where these are more than a few."""
        texts = [text for one in examples for text in one.captions]
        tokens = [token for own in self.tokenizer.encode(texts) for token in own]
        share = tokens.count(self.tokenizer.special.unknown) / max(1, len(tokens))
        if share < NOTEWORTHY:
            return []
        return [f"the model has no word for {100 * share:.0f} % of the tokens of these captions, which it cannot write"]

    # -- looking

    def rows(self, sight: Sight, model: nn.Module, answer: WrittenAnswer, before: int) -> list[MapRow]:
        """Where the model looked for each word."""
        return super().rows(sight, model, answer, before)[:-1]

    def word_rows(self, sight: Sight, answer: CaptionAnswer, name: str, heads: bool, grid: GridFinder) -> list[WordRow]:
        """The words with their maps, for a picture of several rows: one, or one for each head; none for a model that
        does not attend."""
        found = self.decided_heads(sight, answer)
        if found is None:
            return []
        words, weights = self.tokenizer.pieces(answer.tokens), found[1][:, :-1]
        down, across, before = grid(weights.shape[-1])
        maps = weights[..., before:].unflatten(-1, (down, across))
        if heads and len(maps) > 1:
            return [WordRow(f"head {number}", words, own) for number, own in enumerate(maps, 1)]
        return [WordRow(name, words, maps.mean(0))]
