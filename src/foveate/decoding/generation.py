"""Goes on from prompts, with any model of the `Generator` protocol and any special tokens, a token at a time."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import hooks
from foveate.contracts import Generator, State
from foveate.decoding.drafts import DraftedState, DraftReader, Drafts
from foveate.decoding.greedy import likeliest, penalize
from foveate.decoding.ranking import log_probs, not_a_number
from foveate.decoding.sampling import draw
from foveate.decoding.settings import Decoding
from foveate.errors import UserError


@dataclass
class Generated:
    """One output."""

    tokens: list[int]
    log_probs: list[float]
    """The model's log-probability of each token, before temperature, penalty and truncation, in nats."""
    ended: bool
    """False if the limit was reached, or the caller stopped it."""


OnToken = Callable[[int, int], bool]
"""Receives the row and each token that it writes; True ends the row."""


@torch.no_grad()
def generate(
    model: Generator,
    prompts: Sequence[Sequence[int]],
    settings: Decoding,
    ends: Collection[int],
    generator: torch.Generator | None = None,
    on_token: OnToken = lambda row, token: False,
    positions: float = math.inf,
) -> list[Generated]:
    """Continues each prompt by greedy search or sampling, all in one batch, padded on the left.

    `ends` are the tokens that end an output; they are not part of it. `positions` is the greatest number of tokens of
    prompt and output, without the last. The model should be in evaluation mode. Raises UserError for an empty prompt.
    """
    return write_alone(model, Writing(prompts, settings, ends, generator, on_token, positions))


def write_alone(model: Generator, writing: "Writing") -> list[Generated]:
    """The outputs of a request that is alone with the model."""
    batch = ContinuousBatch(model)
    batch.join(writing)
    while writing.rows:
        batch.step()
    if writing.error is not None:
        raise writing.error
    return writing.outputs


class Writing:
    """The outputs of one request while they are written."""

    error: Exception | None = None
    """Why they cannot be written to their ends."""

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        settings: Decoding,
        ends: Collection[int],
        generator: torch.Generator | None = None,
        on_token: OnToken = lambda row, token: False,
        positions: float = math.inf,
    ) -> None:
        """The arguments are those of `generate`. Raises UserError for settings that search."""
        settings.check()
        if settings.method == "beam":
            raise UserError("outputs are written token by token here: choose the method greedy or sample")
        self.prompts, self.settings = prompts, settings
        self.outputs = [Generated([], [], False) for _ in prompts]
        self.rows = list(range(len(prompts)))
        """The outputs that are not at their ends, in order."""
        self.likeliest = not settings.draws and settings.repetition_penalty == 1
        """Whether each token is the likeliest one."""
        self.drafts = Drafts(prompts[0]) if self.likeliest and len(prompts) == 1 else None
        self._ends, self._generator, self._on_token = ends, generator, on_token
        self._limits = [min(_most(settings, len(prompt)), positions + 1 - len(prompt)) for prompt in prompts]
        self._seen: Bool[Tensor, "R N"] | None = None

    @property
    def left(self) -> int:
        """The greatest number of tokens that the first row may still get."""
        return int(self._limits[self.rows[0]]) - len(self.outputs[self.rows[0]].tokens)

    def choose(self, logits: Float[Tensor, "R N"]) -> Int[Tensor, "R"]:
        """The next token of each row."""
        if self._seen is None and self.settings.repetition_penalty != 1:
            self._seen = _mark_prompts(self.prompts, logits)
        return choose(logits, self._seen, self.settings, self._generator)

    def append(self, tokens: Sequence[int], log_probs: Sequence[float]) -> list[int]:
        """Append the next token of each row; the places of the rows that go on. An error ends all rows."""
        try:
            found = enumerate(zip(self.rows, tokens, log_probs, strict=True))
            stay = [place for place, (row, token, log_prob) in found if self._goes_on(row, token, log_prob)]
        except Exception as error:
            self.error, stay = error, []
        if self._seen is not None and stay:
            written = torch.tensor(tokens, device=self._seen.device)[:, None]
            self._seen = self._seen.scatter_(1, written, True)[stay]
        self.rows = [self.rows[place] for place in stay]
        return stay

    def _goes_on(self, row: int, token: int, log_prob: float) -> bool:
        """Append a token to the output of a row; whether the row goes on."""
        if math.isnan(log_prob):
            raise not_a_number("in decoding")
        output = self.outputs[row]
        if token in self._ends:
            output.ended = True
            return False
        output.tokens.append(token)
        output.log_probs.append(log_prob)
        if self.drafts is not None:
            self.drafts.append(token)
        return not self._on_token(row, token) and len(output.tokens) < self._limits[row]


@dataclass(frozen=True)
class Pending:
    """Answers to one request, which are still to be written."""

    model: Generator
    writing: Writing
    finish: Callable[[], list[Any]]
    """Makes the answers, once all is written."""


@runtime_checkable
class JoiningModel(Generator, Protocol):
    """A model whose states may be joined, by their method of that name."""

    @property
    def can_join(self) -> bool:
        """Whether they may."""


def can_share(model: Generator, settings: Decoding) -> bool:
    """Whether what is written by these settings may be written beside other texts. What is drawn must not depend on
    them, even where the model rounds by what it reads together."""
    return isinstance(model, JoiningModel) and model.can_join and not (settings.draws and _depends_on_batch(model))


def _depends_on_batch(model: Generator) -> bool:
    """Whether a text's numbers depend on the texts that are read with it."""
    parts: Iterable[object] = model.modules() if isinstance(model, nn.Module) else ()
    return any(getattr(part, "depends_on_batch", False) for part in parts)


class ContinuousBatch:
    """Writes the outputs of several requests together: each joins before any step, and leaves when it ends. A second
    one needs a model that `can_share`.

    A request gets the tokens that it gets alone, but for the rounding of what is computed together: it draws by its own
    generator.
    """

    def __init__(self, model: Generator) -> None:
        self.writings: list[Writing] = []
        """The requests, in the order of their rows."""
        self._model, self._state, self._tokens = model, None, torch.tensor([])
        self._drafts = isinstance(model, DraftReader) and not _depends_on_batch(model)

    _state: Any
    """What the model has read, and of each row the token that it reads next."""

    @property
    def rows(self) -> int:
        """Outputs that are being written."""
        return sum(len(writing.rows) for writing in self.writings)

    @torch.no_grad()
    def join(self, writing: Writing) -> None:
        """Read the prompts of a request and write the first tokens. Raises UserError for an empty prompt."""
        logits, state = _prefill(self._model, writing.prompts)
        tokens = self._write([writing], logits, state)
        if not writing.rows:
            return
        if self._state is None:
            self._state, self._tokens = state, tokens
        else:
            self._state.join(state)
            self._tokens = torch.cat([self._tokens, tokens])
        self.writings.append(writing)

    @torch.no_grad()
    def step(self) -> list[Writing]:
        """Write the next token of each output; the requests that have come to their ends by it."""
        first = self.writings[0]
        if self.rows == 1 and first.drafts is not None and self._drafts and _takes_drafts(self._state):
            self._write_drafted(first, first.drafts)
        else:
            logits = self._model.step(self._tokens, self._state)
            self._tokens = self._write(self.writings, logits, self._state)
        return self._part_with([writing for writing in self.writings if not writing.rows])

    def leave(self, writing: Writing) -> None:
        """Stop the outputs of a request."""
        rows = [one for one in self.writings for _ in one.rows]
        writing.rows = []
        self._tokens = _keep([place for place, one in enumerate(rows) if one is not writing], self._tokens, self._state)
        self._part_with([writing])

    def _part_with(self, ended: list[Writing]) -> list[Writing]:
        self.writings = [one for one in self.writings if one not in ended]
        if not self.writings:
            self._state = None
        return ended

    def _write(self, writings: Sequence[Writing], logits: Float[Tensor, "R N"], state: State) -> Int[Tensor, "Q"]:
        """Append the next token of each row; those of the rows that go on, which alone stay in the state."""
        tokens = _choose_all(writings, logits)
        chosen, nats = _read(tokens, logits)
        stay, end = list[int](), 0
        for writing in writings:
            begin, end = end, end + len(writing.rows)
            stay += [begin + place for place in writing.append(chosen[begin:end], nats[begin:end])]
        return _keep(stay, tokens, state)

    def _write_drafted(self, writing: Writing, drafts: Drafts) -> None:
        """Write the only row by greedy search: the next token, and those of a guess that the model would have
        written."""
        guess = drafts.guess(writing.left - 1)
        read = torch.tensor([[int(self._tokens), *guess]], device=self._tokens.device)
        logits = self._model.steps(read, self._state)[0]  # type: ignore[attr-defined]
        # The token after the one before, and after each token of the guess.
        tokens = likeliest(logits.float())
        chosen, nats = _read(tokens, logits)
        right = next((place for place, token in enumerate(guess) if token != chosen[place]), len(guess))
        for token, log_prob in zip(chosen[: right + 1], nats, strict=False):
            if not writing.append([token], [log_prob]):
                return
        drafts.learn(len(guess), right)
        self._state.crop(len(guess) - right)
        self._tokens = tokens[right : right + 1]


def _keep(stay: Sequence[int], tokens: Int[Tensor, "R"], state: State) -> Int[Tensor, "Q"]:
    """Keep these rows of a state, if any; their tokens."""
    if not stay or len(stay) == len(tokens):
        return tokens
    places = torch.tensor(stay, device=tokens.device)
    state.reorder(places)
    return tokens[places]


def _choose_all(writings: Sequence[Writing], logits: Float[Tensor, "R N"]) -> Int[Tensor, "R"]:
    """The next token of each row of all requests; those that are the likeliest ones are found at once."""
    logits = logits.float()
    if all(writing.likeliest for writing in writings):
        return likeliest(logits)
    parts = logits.split([len(writing.rows) for writing in writings])
    return torch.cat([writing.choose(part) for writing, part in zip(writings, parts, strict=True)])


def _read(tokens: Int[Tensor, "R"], logits: Float[Tensor, "R N"]) -> tuple[list[int], list[float]]:
    """Tokens and their log-probabilities, on the CPU."""
    # Both are read together: numbers below 2**24 are exact in single precision.
    chosen, nats = torch.stack([tokens.float(), log_probs(logits, tokens[:, None])[:, 0]]).tolist()
    return [*map(int, chosen)], nats


def _takes_drafts(state: State) -> bool:
    """Whether the next tokens may be guessed: where they can be taken back, and unless somebody looks at the single
    steps."""
    return isinstance(state, DraftedState) and state.can_crop and hooks.interceptor is None


def _most(settings: Decoding, length: int) -> int:
    """The greatest number of tokens after a prompt of this length."""
    if settings.max_new_tokens is not None:
        return settings.max_new_tokens
    return int(settings.length_factor * length) + settings.length_extra


def _prefill(model: Generator, prompts: Sequence[Sequence[int]]) -> tuple[Float[Tensor, "R N"], State]:
    """Reads the prompts, padded on the left."""
    device = next(model.parameters()).device  # type: ignore[attr-defined]
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    if not lengths.min():
        raise UserError("an empty prompt has no next token: begin it with a start token")
    padded = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.long, device=device)
    for row, prompt in enumerate(prompts):
        padded[row, padded.shape[1] - len(prompt) :] = torch.tensor(prompt, device=device)
    return model.prefill(tokens=padded, lengths=lengths, padding_side="left")  # type: ignore[arg-type]


def _mark_prompts(prompts: Sequence[Sequence[int]], logits: Float[Tensor, "R N"]) -> Bool[Tensor, "R N"]:
    """Marks the tokens of each prompt."""
    seen = torch.zeros_like(logits, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        seen[row, list(prompt)] = True
    return seen


def choose(
    logits: Float[Tensor, "R N"],
    seen: Bool[Tensor, "R N"] | None,
    settings: Decoding,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "R"]:
    """The next token of each row. `seen` marks the tokens that a row's text has."""
    if seen is not None:
        logits = penalize(logits, seen, settings.repetition_penalty)
    if settings.draws:
        found: Int[Tensor, "R"] = draw(
            logits, settings.temperature, settings.top_k, settings.top_p, settings.min_p, generator
        )
        return found
    return likeliest(logits)
