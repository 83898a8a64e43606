"""Looking at foveate's own models that are given one text: classifiers, taggers, auto-encoders, language models."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import recipes
from foveate.recipes.looking.inputs import check_length, shortened, text_of
from foveate.recipes.looking.naming import model_name, one_side, tokens
from foveate.sight import look
from foveate.viewer.protocol import Input, InputKind, LookResult


class ReaderViewer:
    """A trained task that tells by `reading` what its model is given for one text."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.task = recipes.load(folder, device)
        self.options = self.task.run_options(self.task.description["recipe"], str(folder))
        self.name = model_name(self.task.description, folder)

    def least(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and the least that it can be given."""
        return self.task.model, self.task.reading(".").inputs

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        """See where the model looks while it reads a text, which is taken as one line."""
        text = text_of(given, self.name)
        reading = self.task.reading(text)
        check_length(reading.length, most, "the text")
        with torch.inference_mode(), look(self.task.model, sites=sites) as sight:
            self.task.model(**reading.inputs)
        notes = [self.name, f"It said: {self.task.answer([text], self.options)[0].line}"]
        if self.task.too_long([text]):
            notes.append("The text is longer than any that the model learned from; the answer may be poor.")
        return LookResult(sight, one_side(sight, tokens(reading.pieces)), shortened(text), [*notes, *sight.notes])
