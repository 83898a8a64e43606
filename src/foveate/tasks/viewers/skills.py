"""The viewer of a run: what `foveate look` and `foveate explore` ask of a skill."""

import math
from collections.abc import Sequence
from typing import Any

from torch import nn

from foveate.data.sources.cache import without_fetching
from foveate.data.tokens.chat import ChatForm, chat_template
from foveate.errors import UserError
from foveate.forms.inputs import EXAMPLES, make_title
from foveate.nn import longest_sequence
from foveate.tasks.completion.completer import Completer
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.skill import Skill
from foveate.tasks.task import nothing_to_see, open_examples
from foveate.viewer.protocol import ContinuedText, Input, LookResult

SUGGESTED, LONGEST, CONSIDERED = 3, 120, 200
"""Inputs of the held-out part that a page suggests, their most characters, and how many of the part are considered."""


def held_out_inputs(skill: Skill) -> tuple[str, ...]:
    """Texts that a run did not learn from, where its data are still there: short ones, which fit a line."""
    if skill.takes != "text" or not (skill.recipe.examples.data or skill.recipe.examples.source):
        return ()
    try:
        with without_fetching():
            held_out = open_examples(skill.task, skill.recipe)[1]
        texts = [skill.processor.reads.place(one) for one in held_out.some(CONSIDERED)]
    except (UserError, OSError):
        return ()
    fitting = [text for text in dict.fromkeys(texts) if 0 < len(text.strip()) <= LONGEST]
    return tuple(sorted(fitting, key=len)[len(fitting) // 2 :][:SUGGESTED])


class SkillViewer:
    """A skill that can be looked at."""

    def __init__(self, skill: Skill) -> None:
        """Raises UserError for a model that is known not to attend."""
        self.skill: Any = skill
        self.takes, self.name = self.skill.takes, self.skill.name
        reads_text = self.skill.processor.reads.name == "text"
        longest = longest_sequence(self.skill.model) if reads_text else math.inf
        self.max_length = int(longest) if longest < math.inf else None
        self.examples = held_out_inputs(self.skill) or (EXAMPLES if reads_text else ())
        if not self.skill.attends():
            raise nothing_to_see(self.skill.task, self.skill.recipe.model, self.name)

    @property
    def model(self) -> nn.Module:
        """The model that is looked at."""
        found: nn.Module = self.skill.model
        return found

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """Look at the model while it reads an input."""
        found: LookResult = self.skill.look(given, max_length, sites, measure)
        return found


class LanguageViewer(SkillViewer):
    """A language model that foveate trained, which also goes on with a text."""

    chats = False

    def write(self, text: str, count: int, chat: bool) -> ContinuedText:
        """The text with at most `count` more of the likeliest tokens."""
        found = self.skill.run(text, method="greedy", length_factor=0.0, length_extra=count)
        return ContinuedText(found.text, found.ended)


class CompleterViewer(SkillViewer):
    """A causal language model of a public folder, which also writes and may chat."""

    def __init__(self, skill: Skill) -> None:
        super().__init__(skill)
        self.max_length, self.examples = self.skill.model.config.max_length, EXAMPLES
        try:
            self._template: ChatForm | None = chat_template(self.skill.tokenizer)
        except UserError:
            self._template = None
        self.chats = self._template is not None

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """The page of a chat has the user's last words as its title."""
        found = super().look(given, max_length, sites, measure)
        if self._template is not None and isinstance(given, str):
            found.title = make_title(self._template.last_of_user(given)) or found.title
        return found

    def write(self, text: str, count: int, chat: bool) -> ContinuedText:
        """The text with at most `count` more of the likeliest tokens."""
        if chat and self._template is not None:
            text = self._template.turn(text)
        found = self.skill.run(text, max_new_tokens=count)
        end = self._template.end if chat and found.ended and self._template is not None else ""
        return ContinuedText(text + found.text + end, found.ended)


def viewer_of(skill: Skill) -> SkillViewer:
    """The viewer of a model in use; that of one that goes on with a text has a way to ask for more of it."""
    if isinstance(skill, Completer):
        return CompleterViewer(skill)
    return LanguageViewer(skill) if isinstance(skill, LanguageModel) else SkillViewer(skill)
