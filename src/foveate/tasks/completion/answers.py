"""What a language model of a public folder is asked, and what it answers: the flags of `foveate run`, the answers, and
the text of tokens as they come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import tyro

from foveate.data.tokens.public_tokenizer import REPLACEMENT, PublicTokenizer
from foveate.decoding import Generation
from foveate.errors import UserError, at_least
from foveate.inference.linear_layers import Precision
from foveate.tasks.completion.prompts import Prompting
from foveate.training.settings import check_seed

Show = Callable[[str], object]
"""Receives the parts of a text as they are written."""

CONTEXT = 8
"""Tokens before an output that its first token's text can depend on."""


@dataclass
class Completing:
    """How `foveate run` has a public language model answer."""

    generation: Annotated[Generation, tyro.conf.arg(name="")] = field(default_factory=Generation)
    prompting: Annotated[Prompting, tyro.conf.arg(name="")] = field(default_factory=Prompting)
    chat: bool = False
    """Give the text to a model that was trained to chat, as a user's message; print its reply."""
    system: str | None = None
    """With --chat: what the system tells the model before the message."""
    n_best: int = 1
    """Outputs that are drawn for each text. The one with the highest log-probability comes first, tabs part them."""
    seed: int = 1
    """Seed of random draws."""
    precision: Precision = "float32"
    """Precision of the linear layers. In half precision a CPU writes faster: int8 or float16 for one text, int8 or
    bfloat16 for several."""

    @property
    def brief(self) -> "Completing":
        """The same for a line below a picture: a few tokens, no line break."""
        return replace(self, generation=replace(self.generation, max_new_tokens=16, stop=("\n",)))

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        self.generation.check()
        self.prompting.check()
        check_seed(self.seed)
        at_least(1, "n_best", self.n_best)
        if self.n_best > 1 and (not self.generation.temperature or self.prompting.choices):
            raise UserError("--n-best counts draws: give a --temperature above 0, such as 0.7, and no --choices")
        if self.system is not None and not self.chat:
            raise UserError("--system is a part of a chat: give --chat too")
        if self.chat and (self.prompting.shots or self.prompting.choices):
            raise UserError("--shots and --choices make a prompt of their own: leave --chat out")


@dataclass
class Completion:
    """A prompt and what the model wrote after it."""

    prompt: str
    text: str
    """What was written."""
    tokens: list[str]
    log_probs: list[float]
    """Of each token, in nats."""
    ended: bool
    """False if the greatest number of tokens was reached."""
    alone: bool = False
    """Print only what was written, as in a chat."""
    others: list["Completion"] = field(default_factory=list)
    """What was written in further draws, the likeliest first."""

    @classmethod
    def best(cls, drawn: Sequence["Completion"]) -> "Completion":
        """The likeliest of several for one prompt, with the others."""
        first, *others = sorted(drawn, key=lambda one: -one.log_prob)
        return replace(first, others=others)

    @property
    def log_prob(self) -> float:
        """The log-probability of all that was written, in nats."""
        return sum(self.log_probs)

    @property
    def line(self) -> str:
        return "\t".join((one.text if one.alone else one.prompt + one.text) for one in (self, *self.others))

    def json_values(self) -> dict[str, Any]:
        """Prompt, text, and the log-probability of each token; the same of further draws."""
        others = {"others": [one._text_values() for one in self.others]} if self.others else {}
        return {"prompt": self.prompt, **self._text_values(), **others}

    def _text_values(self) -> dict[str, Any]:
        pairs = zip(self.tokens, self.log_probs, strict=True)
        tokens = [{"token": token, "log_prob": value} for token, value in pairs]
        return {"text": self.text, "ended": self.ended, "log_prob": self.log_prob, "tokens": tokens}


class TextStream:
    """The text of one output while its tokens come, up to a stop text.

    Parts are shown when they can no longer be the beginning of a stop text or of an incomplete character.
    """

    def __init__(
        self,
        tokenizer: PublicTokenizer,
        prompt: Sequence[int],
        stop: Sequence[str],
        show: Show | None,
        strip: bool = False,
    ) -> None:
        """With `strip`, the text has no white space at its beginning."""
        self._tokenizer, self._stop, self._show, self._strip = tokenizer, stop, show, strip
        self._before = list(prompt[-CONTEXT:])
        (before,) = tokenizer.decode([self._before])
        self._skipped = len(before)
        self._tokens: list[int] = []
        self._shown = 0
        self.text = ""
        self.stopped = False

    def add(self, token: int) -> bool:
        """Add a token; whether a stop text is complete."""
        self._tokens.append(token)
        (whole,) = self._tokenizer.decode([[*self._before, *self._tokens]])
        self.text = whole[self._skipped :].lstrip() if self._strip else whole[self._skipped :]
        places = [place for text in self._stop if (place := self.text.find(text)) >= 0]
        if places:
            self.text, self.stopped = self.text[: min(places)], True
        self._show_until(len(self.text) if self.stopped else len(self.text) - self._undecided())
        return self.stopped

    def end(self) -> None:
        """Show what was held back."""
        self._show_until(len(self.text))

    def _show_until(self, end: int) -> None:
        if self._show is not None and end > self._shown:
            self._show(self.text[self._shown : end])
            self._shown = end

    def _undecided(self) -> int:
        """The length of the end of the text that may change or be the beginning of a stop text."""
        if self.text.endswith(REPLACEMENT):
            return len(self.text) - len(self.text.rstrip(REPLACEMENT))
        lengths = (length for text in self._stop for length in range(1, len(text)) if self.text.endswith(text[:length]))
        return max(lengths, default=0)
