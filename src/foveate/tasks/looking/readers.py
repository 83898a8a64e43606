"""The viewer of foveate's models that read one text: classifiers, taggers, auto-encoders, language models."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import tasks
from foveate.sight import look
from foveate.tasks.looking.inputs import check_length, make_title, require_text
from foveate.tasks.looking.naming import model_name, single_input_names, token_names
from foveate.viewer.protocol import Input, InputKind, LookResult

LONGEST_ANSWER = 400
"""Characters of an answer that a page shows: an embedding has hundreds of numbers."""


class SingleTextViewer:
    """A trained task whose `reading` gives the model's inputs for one text."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.task = tasks.load(folder, device)
        options = self.task.run_options(self.task.description["recipe"], str(folder))
        self.options = getattr(options, "brief", options)
        self.name = model_name(self.task.description, folder)

    def smallest_input(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and its smallest input."""
        return self.task.model, self.task.reading(".").inputs

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Look at the model while it reads a text, as one line."""
        text = require_text(given, self.name)
        reading = self.task.reading(text)
        check_length(reading.length, max_length, "the text")
        with torch.inference_mode(), look(self.task.model, sites=sites) as sight:
            self.task.model(**reading.inputs)
        answer = self.task.answer([text], self.options)[0].line
        shown = answer if len(answer) <= LONGEST_ANSWER else f"{answer[:LONGEST_ANSWER]}…"
        notes = [self.name, f"Answer: {shown}"]
        if self.task.too_long([text]):
            notes.append("The text is longer than all training texts; the answer may be poor.")
        return LookResult(
            sight, single_input_names(sight, token_names(reading.pieces)), make_title(text), [*notes, *sight.notes]
        )
