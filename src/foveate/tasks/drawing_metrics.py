"""How well drawings fit their captions, by a matcher that was trained on images people made."""

from collections.abc import Sequence
from typing import Any

import PIL.Image

from foveate import tasks
from foveate.data.captions import CaptionedImage
from foveate.errors import UserError
from foveate.tasks.match_image import AMONG, caption_ranks, embed_captions, embed_images, recall
from foveate.tasks.predictor import Predictor

DRAWN = 500
"""Captions that are drawn to be judged, at most."""


def drawing_recall(predictor: Predictor, examples: Sequence[CaptionedImage], options: Any) -> dict[str, float]:
    """How often the matcher finds the caption of a drawing among 100.

    Beside it stand the same for the real images, and for drawings of other captions (`recall_1_shuffled`).
    """
    from foveate.tasks.draw import draw

    judge = tasks.load(options.matcher)
    if not isinstance(judge, Predictor) or judge.task.task != "match-image":
        raise UserError(f"{options.matcher} matches no images and captions; --matcher takes a run of match-image")
    chosen = examples[:DRAWN]
    captions = [one.captions[0] for one in chosen]
    tokens = draw(predictor, captions, options)
    pictures = [PIL.Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
                for pixels in predictor.processor.palette.decode(tokens)]  # fmt: skip
    texts = embed_captions(judge, captions)
    drawn, real = embed_images(judge, pictures), embed_images(judge, [one.read() for one in chosen])
    shuffled = _next_in_hundred(len(captions))
    ranks = {
        "": caption_ranks(drawn, texts, captions),
        "_shuffled": caption_ranks(drawn[shuffled], texts, captions),
        "_real_images": caption_ranks(real, texts, captions),
    }
    return {f"recall_1{name}": recall(found)["recall_1"] for name, found in ranks.items()}


def _next_in_hundred(count: int) -> list[int]:
    """For each drawing the number of the next one in its hundred."""
    found: list[int] = []
    for begin in range(0, count, AMONG):
        own = [*range(begin, min(begin + AMONG, count))]
        found += own[1:] + own[:1]
    return found
