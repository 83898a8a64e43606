"""A look at a model that reads one text: a predictor, or a model of a public folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from foveate import tasks
from foveate.forms.inputs import check_length, make_title, require_text
from foveate.forms.naming import model_name, single_input_names
from foveate.sight import look
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.tasks.protocols import AnyPredictor, ModelInputs
from foveate.viewer.protocol import Input, InputKind, LookResult

LONGEST_ANSWER = 400
"""Characters of an answer that a page shows: an embedding has hundreds of numbers."""


class SingleTextViewer:
    """A model of a public folder, whose `reading` gives the inputs for one text."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.task: Any = tasks.load(folder, device)
        options = self.task.run_options(self.task.description["recipe"], str(folder))
        self.options = getattr(options, "brief", options)
        self.name = model_name(self.task.description, folder)

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Look at the model while it reads a text, as one line."""
        return _look(self.task, self.options, self.name, given, max_length, sites, self.task.model_inputs)


def look_at_text(
    predictor: Predictor,
    given: Input,
    max_length: int,
    sites: Sequence[str] | None,
    reading: Callable[[str], ModelInputs],
) -> LookResult:
    """A look at a predictor while it reads a text, as one line. Raises UserError for a model that does not attend."""
    task = predictor.task
    name = predictor.name
    options = type(task).run_options(task.as_json(), "the settings")
    found = _look(predictor, getattr(options, "brief", options), name, given, max_length, sites, reading)
    if not found.sight.sites:
        raise nothing_to_see(predictor, name)
    return found


def _look(
    task: AnyPredictor,
    options: Any,
    name: str,
    given: Input,
    max_length: int,
    sites: Sequence[str] | None,
    reader: Callable[[str], ModelInputs],
) -> LookResult:
    text = require_text(given, name)
    reading = reader(text)
    check_length(reading.length, max_length, "the text")
    with torch.inference_mode(), look(task.model, sites=sites) as sight:
        task.model(**reading.inputs)
    answer = task.answer([text], options)[0].line
    brief = answer if len(answer) <= LONGEST_ANSWER else f"{answer[:LONGEST_ANSWER]}…"
    notes = [name, f"Answer: {brief}"]
    if task.longer_than_training([text]):
        notes.append("The text is longer than all training texts; the answer may be poor.")
    labels = {len(row): list(row) for row in (reading.asked, reading.pieces)}
    names = single_input_names(sight, labels.get)
    return LookResult(sight, names, make_title(text), [*notes, *sight.notes])
