"""Where a model that describes an image looks for each token, and how much of this is where it should be."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.metrics.attention_in_boxes import area, share_in_box
from foveate.sight import look
from foveate.special_tokens import SpecialTokens

SITES = ["decoder", "*cross"]
"""The attention of a decoder to an image: of a recurrent one, and of each block of a Transformer."""


def word_maps(
    model: nn.Module,
    pixels: Float[Tensor, "B c h w"],
    tokens: Sequence[Sequence[int]],
    special: SpecialTokens,
    **inputs: Tensor,
) -> list[Float[Tensor, "T i j"]] | None:
    """The weights over the places of each image when each of its tokens is written; None if the model does not attend.

    Images are square. Of several blocks, that one counts which looks most decidedly, as the mean of its heads.
    """
    found = head_maps(model, pixels, tokens, special, **inputs)
    return None if found is None else [maps.mean(0) for maps in found]


def head_maps(
    model: nn.Module,
    pixels: Float[Tensor, "B c h w"],
    tokens: Sequence[Sequence[int]],
    special: SpecialTokens,
    **inputs: Tensor,
) -> list[Float[Tensor, "H T i j"]] | None:
    """The same for each head of that block."""
    longest = max(map(len, tokens))
    target = torch.full((len(tokens), longest), special.pad)
    for row, own in enumerate(tokens):
        target[row, : len(own)] = torch.tensor([special.start, *own[:-1]], dtype=torch.long)[: len(own)]
    with torch.inference_mode(), look(model, sites=SITES) as sight:
        model(pixels=pixels, target=target.to(pixels.device), **inputs)
    sites = [sight[site].weights() for site in sight.sites]
    if not sites:
        return None
    chosen = max(sites, key=lambda weights: float(weights.mean(1).amax(-1).mean())).float().cpu()
    side = round(chosen.shape[-1] ** 0.5)
    return [weights[:, : len(own)].unflatten(-1, (side, -1)) for weights, own in zip(chosen, tokens, strict=True)]


def named_shares(predictor: Any, examples: Sequence[Any]) -> list[tuple[float, float]]:
    """For each region that a caption names: the share of its name's attention in its box, and the box's own share.

    The model reads the right caption. An empty list where it does not attend.
    """
    found = []
    for begin in range(0, len(examples), BATCH):
        group = examples[begin : begin + BATCH]
        tokenizer = predictor.processor.tokenizer
        tokens = tokenizer.encode([example.captions[0] for example in group])
        pixels = predictor.processor.pixels([example.read() for example in group]).to(predictor.device)
        maps = word_maps(predictor.model, pixels, tokens, tokenizer.special)
        if maps is None:
            return []
        for example, own in zip(group, maps, strict=True):
            for region in example.regions:
                ends = tokenizer.encode([example.captions[0][: region.start], example.captions[0][: region.end]])
                first = min(len(ends[0]), len(ends[1]) - 1)  # of "d'avion" the whole word is the name
                span = own[first : len(ends[1])]
                found.append((share_in_box(span.mean(0), region.box), area(region.box)))
    return found


BATCH = 64
"""Images that are looked at together."""
