"""Pictures of a caption: the image once for each word, bright where the model looked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image

from foveate.data.images.labelled import ImageFormat
from foveate.errors import UserError
from foveate.tasks.answers.word_maps import head_maps, word_maps
from foveate.tasks.former.predictor import Predictor
from foveate.viewer.figures import WordRow, plot_word_strip

SHOWN = 256
"""Height and width of the images in a picture, in pixels."""


def word_strip(predictor: Predictor, image: PIL.Image.Image, tokens: Sequence[int]) -> Any:
    """The image once for each token of its caption, sharp and bright where the model looked; None if it does not
    attend."""
    pixels = predictor.processor.pixels([image]).to(predictor.device)
    maps = word_maps(predictor.model, pixels, [tokens], predictor.processor.tokenizer.special)
    if maps is None:
        return None
    return plot_word_strip(shown_image(predictor, image), predictor.processor.tokenizer.pieces(tokens), maps[0])


def word_rows(predictor: Predictor, image: PIL.Image.Image, tokens: Sequence[int], heads: bool) -> list[WordRow]:
    """The words of a caption with their maps, for a picture of several: one row, or one for each head.

    Raises UserError for a model that does not attend.
    """
    pixels = predictor.processor.pixels([image]).to(predictor.device)
    maps = head_maps(predictor.model, pixels, [tokens], predictor.processor.tokenizer.special)
    if maps is None:
        raise UserError(f"{predictor.name} does not attend: it has no row in the picture")
    words, (own,) = predictor.processor.tokenizer.pieces(tokens), maps
    if heads and len(own) > 1:
        return [WordRow(f"head {number + 1}", words, each) for number, each in enumerate(own)]
    return [WordRow((predictor.folder or predictor.task.out).name, words, own.mean(0))]


def shown_image(predictor: Predictor, image: PIL.Image.Image) -> np.ndarray:
    """The pixels (h, w, C) of an image in a picture, in 8 bits."""
    return ImageFormat(SHOWN, predictor.processor.format.channels).pixels(image).transpose(1, 2, 0)
