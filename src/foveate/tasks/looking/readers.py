"""A look at a causal language model of a public folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from foveate import tasks
from foveate.data.tokens.chat import ChatML, chat_template
from foveate.decoding import Generation
from foveate.errors import UserError
from foveate.forms.inputs import EXAMPLES, check_length, make_title, require_text
from foveate.forms.naming import model_name, single_input_names
from foveate.sight import look
from foveate.tasks.completion.answers import Completing, Completion
from foveate.tasks.completion.completer import Completer
from foveate.viewer.protocol import Grown, Input, InputKind, LookResult

LONGEST_ANSWER = 400
"""Characters of an answer that a page shows."""


class CompleterViewer:
    """A causal language model of a public folder, which also writes and may chat."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.task = cast(Completer, tasks.load(folder, device))
        options = self.task.run_options(self.task.description["recipe"], str(folder))
        self.options: Any = getattr(options, "brief", options)
        self.name = model_name(self.task.description, folder)
        self.max_length, self.examples = self.task.model.config.max_length, EXAMPLES
        try:
            self._template: ChatML | None = chat_template(self.task.tokenizer)
        except UserError:
            self._template = None
        self.chats = self._template is not None

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Look at the model while it reads a text; the page of a chat has the user's last words as its title."""
        text = require_text(given, self.name)
        reading = self.task.model_inputs(text)
        check_length(reading.length, max_length, "the text")
        with torch.inference_mode(), look(self.task.model, sites=sites) as sight:
            self.task.model(**reading.inputs)
        answer = self.task.answer([text], self.options)[0].line
        brief = answer if len(answer) <= LONGEST_ANSWER else f"{answer[:LONGEST_ANSWER]}…"
        labels = {len(row): list(row) for row in (reading.asked, reading.pieces)}
        title = make_title(text if self._template is None else self._template.last_of_user(text) or text)
        notes = [self.name, f"Answer: {brief}", *sight.notes]
        return LookResult(sight, single_input_names(sight, labels.get), title, notes)

    def write(self, text: str, count: int, chat: bool) -> Grown:
        """The text with at most `count` more of the likeliest tokens."""
        if chat and self._template is not None:
            text = self._template.turn(text)
        options = Completing(generation=Generation(max_new_tokens=count))
        found = cast(Completion, self.task.answer([text], options)[0])
        end = f"{ChatML.end}\n" if chat and found.ended else ""
        return Grown(text + found.text + end, found.ended)
