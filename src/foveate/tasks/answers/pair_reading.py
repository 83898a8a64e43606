"""Whether two texts belong together, by a model that reads each of them separately."""

from collections.abc import Sequence

from torch import Tensor

from foveate.data.text.match_pairs import RIGHT
from foveate.tasks.examples.pair_text import split_pair
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.protocols import END_SIGN

TOKENS_TOGETHER = 4096
"""Tokens on the longer side of the pairs that are judged together."""

QUERY = "query"
"""Stands for the learned query in pictures."""


def probabilities(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """How probable it is that each pair's texts belong together; a pair with an empty text does not."""
    places = [place for place, pair in enumerate(pairs) if all(map(str.strip, pair))]
    found = [0.0] * len(pairs)
    for rows, inputs in predictor.processor.inputs([pairs[place] for place in places], TOKENS_TOGETHER):
        shares = predictor.forward(inputs).logits.float().softmax(-1)[:, 0, RIGHT].tolist()
        for row, share in zip(rows, shares, strict=True):
            found[places[row]] = share
    return found


def pair_inputs(predictor: Predictor, text: str) -> tuple[dict[str, Tensor], list[list[str]]]:
    """What the model is given for one `source<TAB>target`, and names of the places of the source and of the target.

    Raises UserError for a text that is no pair.
    """
    processor, pair = predictor.processor, split_pair(text)
    ((_, inputs),) = processor.inputs([pair], TOKENS_TOGETHER)
    sides = zip((processor.source, processor.target), processor.encode([pair]), strict=True)
    return predictor.on_device(inputs), [[*tokenizer.pieces(tokens), END_SIGN] for tokenizer, (tokens,) in sides]
