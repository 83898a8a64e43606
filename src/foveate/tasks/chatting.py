"""Chats with a run that learned to reply through the chat template of the weights that it began from."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from foveate.data.tokens.chat import Message
from foveate.decoding import Pending
from foveate.errors import UserError
from foveate.forms.completion import CompleteOptions, Show, likeliest


class Chatting:
    """The part of a `Skill` that writes prose: its options may ask for a chat."""

    if TYPE_CHECKING:
        options_with: Any

    replier: Callable[[Any], Any] | None = None
    """Makes of this skill one that has chats; who loads a run gives it."""

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """What the model writes after each text, or replies to it in a chat."""
        options = options or self.options_with()
        if not getattr(options, "chat", False):
            return super().answer(given, options)  # type: ignore[misc]
        options.check()
        found: Sequence[Any] = self.completer.answer(given, _chat_options(options))
        return found

    def begin(self, given: Sequence[Any], options: Any) -> Pending | None:
        """Replies in a chat, for a batch that several requests share; None for what is no chat. Raises UserError for
        options that cannot be."""
        if not getattr(options, "chat", False):
            return None
        options.check()
        found: Pending | None = self.completer.begin(given, _chat_options(options))
        return found

    def chat(self, text: str, options: Any, show: Show, before: Sequence[Message] = ()) -> Any:
        """The reply to a message after those before it, shown while it is written."""
        (found,) = self.completer.stream([text], _chat_options(options), show, before)
        return found

    @cached_property
    def completer(self) -> Any:
        """The same model with the chats of a public one. Raises UserError for one without a template."""
        if self.replier is None:
            raise UserError("a model that was just trained does not chat: load its folder")
        return self.replier(self)


def _chat_options(options: Any) -> CompleteOptions:
    """The options of a public model's chat: the likeliest tokens, unless it is said how to draw."""
    if isinstance(options, CompleteOptions):
        return options
    usual, asked = likeliest(), options.decoding
    usual.max_new_tokens = asked.max_new_tokens or usual.max_new_tokens
    usual.repetition_penalty = asked.repetition_penalty
    if asked.method == "sample" and (asked.temperature != 1 or asked.top_k or asked.top_p or asked.min_p):
        usual.temperature, usual.top_k = asked.temperature, asked.top_k
        usual.top_p, usual.min_p = asked.top_p, asked.min_p
    precision: Any = options.precision
    return CompleteOptions(usual, chat=True, system=options.system, seed=options.seed, precision=precision)
