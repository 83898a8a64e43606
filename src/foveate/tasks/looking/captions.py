"""A look at a model that writes about an image: each token over the places of the image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from foveate.forms.grids import grid_names
from foveate.forms.inputs import check_length, require_file
from foveate.forms.naming import DecoderNames, encoder_decoder_names, token_names
from foveate.sight import look
from foveate.tasks.answers.caption_pictures import word_strip
from foveate.tasks.answers.captioning import describe
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.images import open_image
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult

BEFORE = "[START]"


def look_at_caption(
    predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None, options: Any
) -> LookResult:
    """A look at a captioner while it reads an image and the caption that it writes about it.

    Raises UserError for an input that is no image, and for a model that does not attend.
    """
    name = predictor.name
    file = require_file(given, name, "image")
    image = open_image(file)
    (written,) = describe(predictor, [image], options)
    tokens = written.tokens
    target = torch.tensor([[predictor.processor.tokenizer.special.start, *tokens]])
    inputs = {"pixels": predictor.processor.pixels([image]), "target": target}
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.forward(inputs)
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    check_length(max(sight[site].shape[-1] for site in sight.sites), max_length, "the image", "places")
    shown = np.ascontiguousarray(predictor.processor.format.pixels(image).transpose(1, 2, 0))
    pieces = predictor.processor.tokenizer.pieces(tokens)
    decoder = DecoderNames(token_names([BEFORE, *pieces]), token_names([*pieces, "[END]"]), "decoder", 0)
    names = encoder_decoder_names(sight, grid_names(shown), decoder)
    (text,) = predictor.processor.tokenizer.decode([tokens])
    result = LookResult(sight, names, file.name, [name, f"Caption: {text}", *sight.notes])
    if tokens:
        result.picture = lambda: word_strip(predictor, image, tokens)
    return result
