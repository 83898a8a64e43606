"""A look at one of foveate's models that reads an image and has no other input."""

from collections.abc import Callable, Sequence

import numpy as np
import PIL.Image

from foveate.forms.grids import grid_names, look_at_maps
from foveate.forms.inputs import check_length, open_image, require_file
from foveate.forms.naming import single_input_names
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult


def look_at_image(
    predictor: Predictor,
    given: Input,
    max_length: int,
    sites: Sequence[str] | None,
    answer: Callable[[PIL.Image.Image], str],
) -> LookResult:
    """A look at a model whose processor has `pixels` and a `format`, while it reads an image.

    Raises UserError for an input that is no image, and for a model that does not attend.
    """
    name = predictor.name
    file = require_file(given, name, "image")
    image = open_image(file)
    inputs = {"pixels": predictor.processor.pixels([image])}
    sight = look_at_maps(predictor.model, lambda: predictor.forward(inputs), sites)
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    check_length(max(sight[site].shape[-1] for site in sight.sites), max_length, "the image", "places")
    shown = predictor.processor.format.pixels(image).transpose(1, 2, 0)
    names = single_input_names(sight, grid_names(np.ascontiguousarray(shown)))
    return LookResult(sight, names, file.name, [name, f"Answer: {answer(image)}", *sight.notes])
