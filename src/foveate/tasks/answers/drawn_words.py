"""The words of captions that are drawn: whether a model knows them, and where in a drawing it looks for each."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.data.images.captions import CaptionedImage
from foveate.errors import TextError
from foveate.metrics.attention_in_boxes import area, share_in_box
from foveate.sight import look
from foveate.tasks.former.predictor import Predictor

SITES = ["blocks.*.text.cross"]
"""The attention of the words to the places of an image, in each block."""

LOOKED_AT = 100
"""Images whose attention is compared with the boxes of what they show."""


def check_captions(predictor: Predictor, captions: Sequence[str]) -> None:
    """Raise TextError for a caption that is empty, too long, or has words that the model never saw."""
    tokenizer = predictor.processor.tokenizer
    model: Any = predictor.model
    most = model.config.max_length - 2  # start and end
    for place, tokens in enumerate(tokenizer.encode(list(captions))):
        if not tokens:
            raise TextError(place, "the caption is empty: there is nothing to draw")
        if len(tokens) > most:
            raise TextError(place, f"the caption has {len(tokens)} tokens, but the model reads at most {most}")
        if tokenizer.special.unknown in tokens:
            raise TextError(place, _unknown(tokenizer, captions[place]))


def without_commas(predictor: Predictor, captions: Sequence[str]) -> list[str]:
    """Captions as lists of things, "red apple, key", for a model whose captions had no commas."""
    known = {word.lstrip("▁") for word in predictor.processor.tokenizer.vocabulary()}
    return list(captions) if "," in known else [" ".join(caption.replace(",", " ").split()) for caption in captions]


def _unknown(tokenizer: Any, caption: str) -> str:
    """Which word of a caption the tokenizer does not know, and the nearest ones that it knows."""
    known = sorted(word.lstrip("▁") for word in tokenizer.vocabulary())
    word = next((word for word in caption.split() if tokenizer.special.unknown in tokenizer.encode([word])[0]), caption)
    near = difflib.get_close_matches(word.lower(), [one for one in known if len(one) > 1], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"the model never saw the word '{word}' in a caption{hint}"


def drawn_word_maps(
    predictor: Predictor, images: np.ndarray, captions: Sequence[Sequence[int]]
) -> list[Float[Tensor, "S i j"]]:
    """The weights of each token of a caption over the places of its image (N, T), the mean of all blocks and heads.

    The model sees the whole image.
    """
    inputs = {"image": torch.from_numpy(np.ascontiguousarray(images)), **predictor.processor.read(captions)}
    with look(predictor.model, sites=SITES) as sight:
        predictor.forward(inputs)
    weights = torch.stack([sight[site].weights().mean(1) for site in sight.sites]).mean(0).float().cpu()
    side = round(weights.shape[-1] ** 0.5)
    # The first query is the start token.
    return [own[1 : len(tokens) + 1].unflatten(-1, (side, -1)) for own, tokens in zip(weights, captions, strict=True)]


def named_shares(predictor: Predictor, examples: Sequence[CaptionedImage]) -> list[float]:
    """The share of the attention of names that is inside their boxes, and the boxes' own share of the image.

    Means over the names in some of the examples; an empty list where no box is known.
    """
    chosen = [one for one in examples if one.regions][:LOOKED_AT]
    if not chosen:
        return []
    tokenizer, palette = predictor.processor.tokenizer, predictor.processor.palette
    captions = tokenizer.encode([one.captions[0] for one in chosen])
    pixels = np.stack([palette.format.pixels(one.read()) for one in chosen])
    found = []
    for example, own in zip(chosen, drawn_word_maps(predictor, palette.encode(pixels), captions), strict=True):
        for region in example.regions:
            ends = tokenizer.encode([example.captions[0][: region.start], example.captions[0][: region.end]])
            first = min(len(ends[0]), len(ends[1]) - 1)  # of "d'avion" the whole word is the name
            span = own[first : len(ends[1])]
            found.append((share_in_box(span.mean(0), region.box), area(region.box)))
    return np.mean(found, 0).tolist()
