"""A look at a model that answers a question about an image: the question over the places of the image."""

from collections.abc import Sequence

import numpy as np

from foveate.errors import UserError
from foveate.forms.grids import grid_names
from foveate.forms.inputs import check_length, require_file
from foveate.forms.label import choose_label
from foveate.sight import look
from foveate.tasks.answers.image_answers import answer_probabilities, model_inputs
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.images import open_image
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import SidePair


def look_at_answer(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """A look at a model while it reads an image and a question about it.

    Raises UserError for an input that is no image, for one without a question, and for a model that does not attend.
    """
    name = f"{predictor.task.model} from {predictor.task.out}"
    file = require_file(given, name, "question")
    question = file.question.strip()
    if not question:
        raise UserError("no question is asked about the image")
    image = open_image(file)
    with look(predictor.model, sites=sites) as sight:
        predictor.forward(model_inputs(predictor, [image], [question]))
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    check_length(max(sight[site].shape[-1] for site in sight.sites), max_length, "the image", "places")
    places = grid_names(np.ascontiguousarray(predictor.processor.format.pixels(image).transpose(1, 2, 0)))
    names: dict[str, SidePair] = {site: ([question], places(sight[site].shape[3])) for site in sight.sites}
    (shares,) = answer_probabilities(predictor, [image], [question])
    text, probability, _ = choose_label(predictor.processor.answers, shares)
    notes = [name, f"Answer: {text} ({probability:.2f})", *sight.notes]
    return LookResult(sight, names, f"{file.name}: {question}", notes)
