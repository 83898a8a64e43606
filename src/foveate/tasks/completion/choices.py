"""Scores the possible answers to a prompt by a language model's probabilities."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.forms.prompts import Prompt, Prompting
from foveate.forms.truncation import CutText, FittedText, fit
from foveate.models.text.causal_language_model import CausalLanguageModel

SAYS_NOTHING = ("N/A", "", "[MASK]")
"""Inputs that calibrate choices (Zhao et al. 2021, https://arxiv.org/abs/2102.09690)."""

BATCH = 2048
"""Tokens that are read at once."""


@dataclass(kw_only=True)
class Choice(Answer):
    """The best choice for one input."""

    prompt: str
    text: str
    scores: dict[str, float]
    """Of each choice, in nats; higher is better."""

    @property
    def cells(self) -> list[str]:
        return [self.text]

    def json_values(self) -> dict[str, Any]:
        """The choice, and the scores of all."""
        return {"choice": self.text, "scores": self.scores}


@dataclass(frozen=True)
class AnswerRow:
    """A text whose last tokens are an answer."""

    tokens: list[int]
    answer: int
    """How many tokens the answer has."""
    cut: bool = False
    """Whether there are more tokens in front, beyond the model's positions."""


class ChoiceScorer(CutText):
    """Ranks the choices of a prompt for any input. With `truncate`, inputs that are too long are cut.

    Prompt and answer are encoded together, then cut apart, because a token may depend on what follows it. What all
    texts begin with is read once, and its keys and values are kept.
    """

    def __init__(
        self, model: CausalLanguageModel, tokenizer: PublicTokenizer, prompting: Prompting, truncate: bool = False
    ) -> None:
        self.model, self.tokenizer, self.prompting, self.truncate = model.eval(), tokenizer, prompting, truncate
        self.set_prompt(prompting.prompt())

    def set_prompt(self, prompt: Prompt) -> None:
        """Use other examples."""
        self.prompt = prompt
        self._begin = tuple(self.tokenizer.encode([prompt.begin])[0])
        self._prefix: list[int] = []

    def scores(self, inputs: Sequence[str]) -> list[list[float]]:
        """The score of each choice for each input. Raises UserError for a prompt that is longer than the positions."""
        found = self.plain_scores(inputs)
        match self.prompting.calibrate:
            case "neutral":
                found = found - self.neutral_shares()
            case "batch":
                found = found - mean_shares(found)
        return found.tolist()

    def plain_scores(self, inputs: Sequence[str]) -> Float[Tensor, "B K"]:
        """The scores of choices before calibration."""
        rows = [self._row(given, choice) for given in inputs for choice in self.prompting.choices]
        shape = len(inputs), len(self.prompting.choices)
        return torch.tensor(self.log_probs(rows)).view(shape) / torch.tensor(self._lengths(rows)).view(shape)

    def neutral_shares(self) -> Float[Tensor, "K"]:
        """The logarithm of each choice's mean share where the input says nothing."""
        return mean_shares(self.plain_scores(SAYS_NOTHING))

    def answer(self, inputs: Sequence[str]) -> list[Choice | Failure]:
        """The best choice for each input; a failure for one that is too long and not cut."""
        fitted = [self._fitted(given) for given in inputs]
        own = [one.value for one in fitted if isinstance(one, FittedText)]
        scored = iter(self.scores(own) if own else [])
        pairs = zip(inputs, fitted, strict=True)
        return [one if isinstance(one, Failure) else self._best(given, next(scored), one.cut) for given, one in pairs]

    def _best(self, given: str, scores: Sequence[float], cut: bool) -> Choice:
        choices = self.prompting.choices
        best = max(range(len(choices)), key=scores.__getitem__)
        own = dict(zip(choices, scores, strict=True))
        return Choice(given=given, prompt=given, text=choices[best], scores=own, cut=cut)

    def prepare(self, value: str) -> int:
        """The tokens of an input with its prompt and its longest choice."""
        rows = [self.prompt.ask(value) + self.prompt.space + choice for choice in self.prompting.choices]
        return max(map(len, self.tokenizer.encode(rows)))

    def positions(self, prepared: int) -> int:
        """The positions that a prepared input takes."""
        return prepared

    def _fitted(self, given: str) -> FittedText | Failure:
        most = self.model.config.max_length
        try:
            found = fit(self, given, most, self.truncate)
        except UserError as error:
            return Failure(given, str(error))
        if found.prepared <= most:
            return found
        return Failure(
            given, f"prompt and choice have {found.prepared:,} tokens, but the model learned {most:,} positions"
        )

    def _row(self, given: str, choice: str) -> AnswerRow:
        before = self.prompt.ask(given)
        tokens, places = self.tokenizer.spans(before + self.prompt.space + choice)
        answer = sum(start >= len(before) for start, _ in places)
        if places[-answer - 1][1] > len(before):
            raise UserError(f"the choice '{choice}' merges with the end of the prompt: put a space before {{output}}")
        if len(tokens) > (most := self.model.config.max_length):
            raise UserError(f"prompt and choice have {len(tokens):,} tokens, but the model learned {most:,} positions")
        return AnswerRow(tokens, answer)

    def _lengths(self, rows: Sequence[AnswerRow]) -> list[int]:
        """What the log-probability of each row's answer is divided by."""
        if self.prompting.score == "mean":
            return [row.answer for row in rows]
        if self.prompting.score == "bytes":
            lengths = [len((self.prompt.space + choice).encode()) for choice in self.prompting.choices]
            return lengths * (len(rows) // len(lengths))
        return [1] * len(rows)

    @torch.inference_mode()
    def log_probs(self, rows: Sequence[AnswerRow]) -> list[float]:
        """The log-probability of the answer of each row."""
        contexts: dict[tuple[int, ...], list[int]] = {}
        for place, row in enumerate(rows):  # answers of one token share what is before them
            contexts.setdefault(tuple(row.tokens[:-1]), []).append(place)
        read = sorted(contexts, key=len)
        shared = min(_common([*read, self._begin]), *(len(row.tokens) - row.answer - 1 for row in rows))
        device = next(self.model.parameters()).device
        found = [0.0] * len(rows)
        for group in _groups(read, shared):
            tails = torch.zeros(len(group), len(group[-1]) - shared, dtype=torch.long)
            for number, context in enumerate(group):
                tails[number, : len(context) - shared] = torch.tensor(context[shared:])
            hidden = self._hidden(list(group[0][:shared]), tails.to(device))
            for number, context in enumerate(group):
                for place in contexts[context]:
                    row = rows[place]
                    begin = len(row.tokens) - row.answer - shared - 1
                    logits = self.model.logits(hidden[number, begin : begin + row.answer]).float()
                    answer = torch.tensor(row.tokens[-row.answer :], device=device)
                    found[place] = float(logits.log_softmax(1).gather(1, answer[:, None]).sum())
        return found

    def _hidden(self, prefix: list[int], tails: Tensor) -> Float[Tensor, "R T C"]:
        """The hidden states of texts after a prefix that all have. Its keys and values are kept for the next call."""
        if not prefix:
            return self.model.hidden(tails)
        if self._prefix != prefix:
            start = torch.tensor([prefix], device=tails.device)
            _, self._state = self.model.prefill(start, torch.tensor([len(prefix)], device=tails.device))
            self._prefix = prefix
        return self.model.read(tails, self._state.repeated(len(tails)))


def mean_shares(scores: Float[Tensor, "B K"]) -> Float[Tensor, "K"]:
    """The logarithm of each choice's mean share among the choices."""
    return scores.softmax(1).mean(0).log()


def _common(contexts: Sequence[tuple[int, ...]]) -> int:
    """How many tokens all texts begin with."""
    first, last = min(contexts), max(contexts)  # in alphabetical order, all others are between
    return next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _groups(contexts: Sequence[tuple[int, ...]], shared: int) -> Iterator[list[tuple[int, ...]]]:
    """Contexts of about one length, so many as are read at once."""
    group: list[tuple[int, ...]] = []
    for context in contexts:
        if group and (len(group) + 1) * (len(context) - shared) > BATCH:
            yield group
            group = []
        group.append(context)
    yield group
