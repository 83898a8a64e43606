"""A look at a model that reads the word in an image: each character over the places of the image."""

from collections.abc import Sequence

import numpy as np
import torch

from foveate.data.images.word_images import check_line_of_text
from foveate.forms.inputs import check_length, require_file
from foveate.sight import look
from foveate.tasks.answers.word_reading import Search, read_words
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.images import open_image
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import Image, SidePair


def look_at_reading(
    predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None, row: int, column: int
) -> LookResult:
    """A look at a reader of words while it writes what it reads; a place of its grid has `row` x `column` pixels.

    Raises UserError for an input that is no image, and for a model that does not attend.
    """
    name = f"{predictor.task.model} from {predictor.task.out}"
    file = require_file(given, name, "image")
    image = open_image(file)
    check_line_of_text(image.size, file.name)
    ((text, probability),) = read_words(predictor, [image], Search())
    processor = predictor.processor
    inputs = processor.inputs([image])
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.forward({**inputs, "target": torch.tensor([[processor.special.start, *processor.encode(text)]])})
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    height, width = inputs["pixels"].shape[2:]
    check_length((height // row) * (width // column), max_length, "the image", "places")
    shown = np.full((height, width), 255, np.uint8)
    inside = int(inputs["widths"][0])
    shown[:, :inside] = np.asarray(processor.grey(image).resize((inside, height)))
    sides: SidePair = ([*text, "[END]"], Image.of(shown, height // row, width // column))
    notes = [name, f"Text: {text} (probability {probability:.3f})", *sight.notes]
    return LookResult(sight, dict.fromkeys(sight.sites, sides), file.name, notes)
