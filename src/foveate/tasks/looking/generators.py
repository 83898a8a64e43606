"""A look at a model that generates an image of a class: its places over each other."""

from collections.abc import Sequence
from typing import Any

import torch

from foveate.errors import unknown
from foveate.forms.grids import grid_names
from foveate.forms.inputs import check_length, make_title, require_text
from foveate.forms.naming import single_input_names
from foveate.sight import look
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult


def look_at_generator(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """A look at a generator while it makes an image of a label.

    Raises UserError for a label that the model never saw, and for a model that does not attend.
    """
    from foveate.tasks.answers.generated_images import draw_noise, generate

    name = f"{predictor.task.model} from {predictor.task.out}"
    label = require_text(given, name).strip()
    labels = [*predictor.processor.labels]
    if label not in labels:
        raise unknown("label", label, labels)
    model: Any = predictor.model
    noise = draw_noise(predictor, 1, 1)
    shown = generate(predictor, noise, [label])[0]
    with torch.inference_mode(), look(model.generator, sites=sites) as sight:
        model.generator(noise.to(predictor.device), torch.tensor([labels.index(label)], device=predictor.device))
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    check_length(max(sight[site].shape[-1] for site in sight.sites), max_length, "the image", "places")
    picture = shown.repeat(8, 0).repeat(8, 1)
    return LookResult(sight, single_input_names(sight, grid_names(picture)), make_title(label), [name, *sight.notes])
