"""A look at a model that draws: words over the places of the drawing, and places over the words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from foveate.forms.grids import grid_names
from foveate.forms.inputs import check_length, make_title, require_text
from foveate.forms.naming import token_names
from foveate.sight import look
from foveate.tasks.former.predictor import Predictor
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import SidePair

BEFORE = "[START]"


def look_at_drawing(
    predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None, options: Any
) -> LookResult:
    """A look at a model while it reads a caption and the finished drawing that it made of it.

    Raises UserError for a caption that is empty or has words that the model never saw.
    """
    from foveate.tasks.answers.drawings import draw
    from foveate.tasks.answers.drawn_words import check_captions

    name = f"{predictor.task.model} from {predictor.task.out}"
    caption = require_text(given, name).strip()
    check_captions(predictor, [caption])
    processor = predictor.processor
    tokens = processor.tokenizer.encode([caption])
    check_length(processor.palette.side**2, max_length, "the drawing", "places")
    drawn = draw(predictor, [caption], options)
    with look(predictor.model, sites=sites) as sight:
        predictor.forward({"image": torch.from_numpy(drawn), **processor.read(tokens)})
    words = token_names([BEFORE, *processor.tokenizer.pieces(tokens[0])])
    shown = np.ascontiguousarray(processor.palette.decode(drawn)[0])
    picture = grid_names(shown.repeat(8, 0).repeat(8, 1))
    names: dict[str, SidePair] = {}
    for site in sight.sites:
        own, other = (picture, words) if ".image." in site else (words, picture)
        queries, keys = sight[site].shape[2:]
        names[site] = own(queries), (other if site.endswith("cross") else own)(keys)
    return LookResult(sight, names, make_title(caption), [name, "The drawing was made first.", *sight.notes])
