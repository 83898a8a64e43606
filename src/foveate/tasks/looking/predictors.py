"""The viewer of a trained task that says itself what a look at it is."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from foveate import tasks
from foveate.forms.inputs import EXAMPLES
from foveate.forms.naming import model_name
from foveate.nn import longest_sequence
from foveate.tasks.former.page import no_look
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult

READS_TEXT = ("classify", "tag", "embed", "reward")
"""Tasks whose input is one text without a form of its own."""


class PredictorViewer:
    """A predictor, whose task has the method `look`."""

    def __init__(self, folder: Path, device: str) -> None:
        """Raises UserError for a model that is known not to attend, and for a task without a look."""
        self.predictor = cast(Predictor, tasks.load(folder, device))
        self.takes = self.predictor.task.takes
        self.name = model_name(self.predictor.description, folder)
        reads_text = self.predictor.task.task in READS_TEXT
        longest = longest_sequence(self.predictor.model) if reads_text else math.inf
        self.max_length = int(longest) if longest < math.inf else None
        self.examples = EXAMPLES if reads_text else ()
        if not self.predictor.task.attends(self.predictor):
            raise nothing_to_see(self.predictor, self.name)
        if not self.predictor.task.has_look:
            raise no_look(self.predictor.task.task)

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Look at the model while it reads an input."""
        return self.predictor.task.look(self.predictor, given, max_length, sites)
