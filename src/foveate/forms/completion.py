"""Prompts that a language model of a public folder completes: what is asked, what is written, and the text of tokens as
they come.

B batch    T tokens
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from foveate.data.tokens.chat import Message, chat_template
from foveate.data.tokens.public_tokenizer import REPLACEMENT, PublicTokenizer
from foveate.decoding import Decoding, Pending, Writing, write_alone
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.forms.checks import check_position_count
from foveate.forms.form import Changes, InputForm, Learned, MapRow, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_text
from foveate.forms.language import site_rows
from foveate.forms.naming import Naming, token_names
from foveate.forms.processor import Processor
from foveate.forms.prompts import Prompting
from foveate.forms.scored import NextToken
from foveate.forms.truncation import CutText, FittedText, fit
from foveate.inference.linear_layers import Precision
from foveate.sight import Sight
from foveate.training.settings import check_seed
from foveate.viewer import Alignment, plot_alignments
from foveate.viewer.protocol import Input

Show = Callable[[str], object]
"""Receives the parts of a text as they are written."""

BATCH = 4096
"""Tokens of prompts that are read at once."""

CONTEXT = 8
"""Tokens before an output that its first token's text can depend on."""


def likeliest() -> Decoding:
    """The likeliest tokens, unless a temperature is given; at most 128."""
    return Decoding(method="sample", temperature=0.0, max_new_tokens=128)


@dataclass
class CompleteOptions:
    """How `foveate run` has a public language model answer."""

    decoding: Annotated[Decoding, tyro.conf.arg(name="")] = field(default_factory=likeliest)
    stop: tuple[str, ...] = ()
    """Texts that end the output; they are not part of it."""
    prompting: Annotated[Prompting, tyro.conf.arg(name="")] = field(default_factory=Prompting)
    chat: bool = False
    """Give the text to a model that was trained to chat, as a user's message; print its reply."""
    system: str | None = None
    """With --chat: what the system tells the model before the message."""
    seed: int = 1
    """Seed of random draws."""
    precision: Precision = "float32"
    """Precision of the linear layers. In half precision a CPU writes faster: int8 or float16 for one text, int8 or
    bfloat16 for several."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.decoding.method == "beam":
            raise UserError("a public language model writes the likeliest tokens or draws: leave --method beam out")
        self.decoding.check()
        self.prompting.check()
        check_seed(self.seed)
        if self.decoding.n_best > 1 and self.prompting.choices:
            raise UserError("--n-best counts draws: give a --temperature above 0, such as 0.7, and no --choices")
        if "" in self.stop:
            raise UserError("a stop text is empty: it would end every output before its first token")
        if self.system is not None and not self.chat:
            raise UserError("--system is a part of a chat: give --chat too")
        if self.chat and (self.prompting.shots or self.prompting.choices):
            raise UserError("--shots and --choices make a prompt of their own: leave --chat out")


@dataclass(kw_only=True)
class Completion(Answer):
    """A prompt and what the model wrote after it."""

    prompt: str = ""
    text: str = ""
    """What was written."""
    tokens: list[str] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    """Of each token, in nats."""
    ended: bool = True
    """False if the greatest number of tokens was reached."""
    alone: bool = False
    """Print only what was written, as in a chat."""
    others: list["Completion"] = field(default_factory=list)
    """What was written in further draws, the likeliest first."""
    names: list[str] = field(default_factory=list)
    """What to call the tokens of the prompt."""

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

    @property
    def title(self) -> str:
        return self.text

    def json_values(self) -> dict[str, Any]:
        """Prompt, text, and the log-probability of each token; the same of further draws."""
        others = {"others": [one._text_values() for one in self.others]} if self.others else {}
        return {"prompt": self.prompt, **self._text_values(), **others}

    def _text_values(self) -> dict[str, Any]:
        pairs = zip(self.tokens, self.log_probs, strict=True)
        tokens = [{"token": token, "log_prob": value} for token, value in pairs]
        return {"text": self.text, "ended": self.ended, "log_prob": self.log_prob, "tokens": tokens}


@dataclass
class ReadPrompt(CutText, InputForm):
    """A prompt: input `tokens` (1, T). A prepared one is a list of tokens."""

    place_name: ClassVar[str] = "tokens"
    goes_on: ClassVar[bool] = True

    tokenizer: Learned[Any] = None
    start: Learned[int | None] = None
    """The token that a text from nothing begins with."""
    most: Learned[int] = 0
    """The positions that the model has learned."""

    def receive(self, given: Input, name: str) -> str:
        return require_text(given, name)

    def open(self, given: str) -> str:
        """An empty prompt is gone on with from the start."""
        return given

    def prepare(self, value: str) -> list[int]:
        return self.begun(self.tokenizer.encode([value])[0])

    def begun(self, tokens: Sequence[int]) -> list[int]:
        """The tokens, or the start token where there are none. Raises UserError where the model has none."""
        if not tokens and self.start is None:
            raise UserError("an empty text has no next token, and this model has no start token")
        return list(tokens) or [int(self.start or 0)]

    def limit(self, model: nn.Module) -> float:
        return self.most

    def asked(
        self, texts: Sequence[str], options: CompleteOptions, before: Sequence[Message] = (), truncate: bool = False
    ) -> list[FittedText | Failure]:
        """The tokens of each prompt, `before` which a chat may stand; a failure for one that is empty, or longer than
        the positions and not cut."""
        form, found = AskedPrompt(self.tokenizer, self.start, self.most, options, before), list[FittedText | Failure]()
        for text in texts:
            try:
                one = fit(form, text, self.most, truncate)
                check_position_count(text, len(one.prepared), self.most)
                found.append(one)
            except UserError as error:
                found.append(Failure(text, str(error)))
        return found

    def cost(self, prepared: Sequence[int]) -> int:
        return len(prepared)

    def positions(self, prepared: Sequence[int]) -> int:
        return len(prepared)

    def tensors(
        self, prepared: Sequence[Sequence[int]], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return {"tokens": torch.tensor([list(one) for one in prepared])}, Changes()

    def axis(self, value: str, prepared: Sequence[int], grid: GridFinder) -> Naming:
        return token_names(self.tokenizer.pieces(prepared))

    def draw(self, value: str, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Any:
        """A map of the tokens over those before them."""
        names = [row.name for row in rows]
        weights = torch.stack([torch.as_tensor(row.weights) for row in rows])
        return plot_alignments([Alignment(weights, names, names, rows[0].site)])


@dataclass
class AskedPrompt(ReadPrompt):
    """A text in the prompt that options make of it, or as a message of a chat."""

    options: CompleteOptions = field(default_factory=CompleteOptions)
    chat: Sequence[Message] = ()
    """The chat so far."""

    def prepare(self, value: str) -> list[int]:
        return self.begun(self._encode(value))

    def __post_init__(self) -> None:
        """Raises UserError for a chat without a template, and for examples that cannot be read."""
        used = self.options.prompting.used and not self.options.chat
        self._prompt = self.options.prompting.prompt() if used else None
        self._template = chat_template(self.tokenizer) if self.options.chat else None

    def _encode(self, text: str) -> Sequence[int]:
        if self._template is None:
            asked = text if self._prompt is None else self._prompt.ask(text)
            tokens: Sequence[int] = self.tokenizer.encode([asked])[0]
            return tokens
        system = [] if self.options.system is None else [Message("system", self.options.system)]
        return self._template.encode(self.tokenizer, [*system, *self.chat, Message("user", text)])


@dataclass
class Completed(NextToken, OutputForm):
    """What is written after a prompt."""

    options: ClassVar[type[Any]] = CompleteOptions

    tokenizer: Learned[Any] = None
    ends: Learned[tuple[int, ...]] = ()
    """The tokens that end a text."""
    most: Learned[int] = 0
    """The positions that the model has learned."""

    def look_options(self) -> CompleteOptions:
        """A line below a picture has room for a few tokens, and for no line break."""
        options: CompleteOptions = self.run_options()
        return replace(options, decoding=replace(options.decoding, max_new_tokens=16), stop=("\n",))

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Sequence[int]], options: CompleteOptions
    ) -> list[Completion]:
        return self.complete(model, prepared, options)

    def complete(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        options: CompleteOptions,
        generator: torch.Generator | None = None,
        show: Show | None = None,
    ) -> list[Completion]:
        """What the model writes after each prompt; `show` receives the parts of the only one as they are written."""
        pending = self.begin(model, prompts, options, generator, show)
        write_alone(model, pending.writing)
        return pending.finish()

    def begin(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        options: CompleteOptions,
        generator: torch.Generator | None = None,
        show: Show | None = None,
    ) -> Pending:
        """What `complete` has the model write."""
        used = options.prompting.used
        stop = options.stop or (("\n",) if used else ())
        streams = [TextStream(self.tokenizer, prompt, stop, show, used) for prompt in prompts]
        writing = Writing(
            prompts,
            options.decoding,
            set(self.ends),
            generator,
            lambda row, token: streams[row].add(token),
            self.most,
        )

        def finish() -> list[Completion]:
            found = []
            for prompt, stream, output in zip(prompts, streams, writing.outputs, strict=True):
                stream.end()
                completion = Completion(
                    text=stream.text,
                    tokens=self.tokenizer.pieces(output.tokens),
                    log_probs=output.log_probs,
                    ended=output.ended or stream.stopped,
                    alone=options.chat or used,
                    names=self.tokenizer.pieces(prompt),
                )
                found.append(completion)
            return found

        return Pending(model, writing, finish)

    def complete_all(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        options: CompleteOptions,
        generator: torch.Generator,
        show: Show | None = None,
    ) -> list[Completion]:
        """The same of any number of prompts, in batches of prompts of about one length."""
        found: dict[int, Completion] = {}
        for places in read_at_once(prompts):
            chosen = [prompts[place] for place in places]
            found |= zip(places, self.complete(model, chosen, options, generator, show), strict=True)
        return [found[place] for place in range(len(prompts))]

    def rows(self, sight: Sight, model: nn.Module, answer: Completion, before: int) -> list[MapRow]:
        """Where each token of the prompt looked, in the last layer, as the mean of its heads."""
        return site_rows(sight, answer.names)


def prompt_forms(tokenizer: PublicTokenizer, start: Any, ends: Sequence[int | None], most: int) -> Processor:
    """The forms of a model with this many positions, whose folder names a start token and tokens that end a text.

    What the tokenizer itself names counts too.
    """
    start = start if isinstance(start, int) else tokenizer.special.ids.get("start")
    named = (*ends, tokenizer.special.ids.get("end"))
    found = tuple(end for end in named if end is not None)
    return Processor(ReadPrompt(tokenizer, start, most), Completed(tokenizer, found, most))


def read_at_once(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The places of prompts of about one length, as many as are read at once."""
    groups: list[list[int]] = []
    for place in sorted(range(len(prompts)), key=lambda place: len(prompts[place])):
        if not groups or (len(groups[-1]) + 1) * len(prompts[place]) > BATCH:
            groups.append([])
        groups[-1].append(place)
    return groups


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
        known = self.text.rstrip(REPLACEMENT)  # what is behind it are pieces of a character
        lengths = (length for text in self._stop for length in range(1, len(text)) if known.endswith(text[:length]))
        return len(self.text) - len(known) + max(lengths, default=0)
