"""What tells whether an image and a caption belong together, and where in the image it sees the caption."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.forms.form import MapRow
from foveate.forms.grids import GridFinder, find_grid
from foveate.forms.image import draw_over
from foveate.sight import Sight, look
from foveate.sight.from_weights import GivenSite
from foveate.tasks.effects import InputPlaces, input_places
from foveate.tasks.looking import ReadInput
from foveate.tasks.skill import Skill
from foveate.viewer.protocol import Input, LookResult, Opening

SIMILARITY, RELEVANCE = "caption-image.similarity", "caption-image.relevance"
"""The maps of the caption and its words over the image, among the sites of the attention."""

ABOUT = (
    f"{SIMILARITY}: of the logits that each patch would have by itself, the softmax over patches. "
    f"{RELEVANCE}: the attention that made the logit larger, weights times their gradients (Chefer et al. 2021)."
)

IMAGES = "images.*"
"""The layers that read images, of a model that has some that attend."""


class ImageMatcher(Skill):
    """A model that compares images and captions by their vectors."""

    def look(
        self, given: Input | Path, max_length: int = 4096, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """As of any skill; with weights, the caption and each of its words over the image too."""
        if sites is not None or measure != "weights":
            return super().look(given, max_length, sites, measure)
        read = self.read(given, max_length)
        found = self.look_of(read, self.watch(read.inputs, sites), max_length)
        words = read.answer.caption.split()
        rows = [read.answer.caption, *(words if len(words) > 1 else [])]
        own = self.over_image(read, rows)
        grid = find_grid(self.model, read.inputs)
        places = self.processor.reads.axis(read.value, read.prepared, grid)(own[SIMILARITY].shape[3])
        weights = own[SIMILARITY].weights()[0, 0].float().cpu()

        def draw() -> Any:
            picture = self.processor.reads.picture(read.value.image)
            shown = [MapRow(name, row, site=SIMILARITY) for name, row in zip(rows, weights, strict=True)]
            return draw_over(picture, shown, read.answer.title, without_tokens(grid))

        return replace(
            found,
            sight=Sight({**own, **{site.name: site for site in found.sight}}, found.sight.notes),
            tokens={**dict.fromkeys(own, (rows, places)), **found.tokens},
            notes=[*found.notes, ABOUT],
            picture=draw,
            opening=Opening(SIMILARITY, 0),
        )

    def input_places(self, read: ReadInput, looked: LookResult, sight: Sight) -> list[InputPlaces]:
        """Those of the image, and the tokens of the caption."""
        caption = self.processor.writes.axis(read.answer).read
        return [*super().input_places(read, looked, sight), *input_places(looked, caption, others=False)]

    def over_image(self, read: ReadInput, texts: Sequence[str]) -> dict[str, GivenSite]:
        """The maps of some texts over an image, a row for each text."""
        writes, model = self.processor.writes, self.model
        tokens = [writes.encode_caption(text, asked=False) for text in texts]
        pixels = self.on_device({"pixels": read.inputs["pixels"]})["pixels"]
        read_texts = writes.read_on(pixels.device, tokens)
        with torch.inference_mode():
            captions = model.embed_captions(**read_texts)  # type: ignore[operator]
            logits = model.logits(model.embed_places(pixels)[0], captions)  # type: ignore[operator]
        maps = {SIMILARITY: logits.T.softmax(-1), RELEVANCE: self._relevance(pixels, captions.clone(), logits.shape[0])}
        return {name: GivenSite(name, weights[None, None]) for name, weights in maps.items()}

    def _relevance(self, pixels: Tensor, captions: Tensor, count: int) -> Tensor:
        """How much the attention to each of the last `count` places made the logits of captions larger, (N, S): shares
        that sum to 1, or 0 where nothing did."""
        model: Any = self.model
        with torch.enable_grad(), look(model, gradients=True) as sight:
            logits = model.logits(model.embed_images(pixels), captions)[0]
        rows = [relevance_of(sight, logit)[-count:] for logit in logits]
        found = torch.stack(rows).float().clamp(min=0)
        total = found.sum(-1, keepdim=True)
        return found / total.masked_fill(total == 0, 1.0)


def relevance_of(sight: Sight, logit: Tensor) -> Tensor:
    """How much each position that a pooling query sees made a logit larger. Raises UserError where none attends."""
    pools = [site.name for site in sight if site.shape[2] == 1]
    stack = [site.name for site in sight if site.shape[2] == site.shape[3] > 1]
    if not pools and not stack:
        raise UserError("nothing of the model attends to images")
    if not pools:
        return sight.relevance(logit, sites=IMAGES, queries=[0])[0, 0]
    first = sight.gradients(logit, signed=False)[pools[-1]].weights()[0].mean(0)
    return (first @ sight.relevance(logit, sites=stack_of(stack))[0].to(first))[0] if stack else first[0]


def stack_of(names: Sequence[str]) -> str:
    """The pattern of the sites of one stack of layers."""
    first = names[0].split(".")
    return ".".join(first[: next(at for at, part in enumerate(first) if part.isdigit())]) + ".*"


def without_tokens(grid: GridFinder) -> GridFinder:
    """The grid of places alone, for a model that has tokens before them."""
    return lambda places: (*grid(places)[:2], 0)
