"""Drafts of what comes next, taken from the text itself, and read by the model at once.

A text that repeats itself, or its prompt, goes on as it went on before: a summary, an edited program, an answer that
quotes (prompt lookup, Saxena 2023). A model reads five tokens in little more time than one, since most of the time is
that of reading its weights. What it would not have written itself is dropped (Leviathan et al. 2023,
https://arxiv.org/abs/2211.17192), so that the text is that of greedy search, but for the rounding of what is read
together.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import State

RUN = 3
"""Tokens that must have stood before: after two of them texts go on in too many ways."""

FIRST, MOST = 4, 16
"""Tokens of the first draft, and of any: as long as they are right, each draft is twice as long as that before."""

LONGEST_PAUSE = 32
"""Tokens without a draft, at most, after drafts of which nothing was right."""


@runtime_checkable
class DraftedState(State, Protocol):
    """The state of a model that can take back what it has read."""

    @property
    def can_crop(self) -> bool:
        """Whether it can: not where a recurrent state stands for all that was read."""

    def crop(self, count: int) -> None:
        """Forget the last `count` tokens."""


@runtime_checkable
class DraftReader(Protocol):
    """A model that reads several tokens of a text at once, after what its state has."""

    def steps(self, tokens: Int[Tensor, "R T"], state: State) -> Float[Tensor, "R T N"]:
        """The logits of the token after each. Changes the state in place."""


class Drafts:
    """Guesses how a text goes on: as it did where its last tokens stood before. It says nothing for a while after
    guesses that were wrong."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        """Where the token is that last followed a run."""
        self._size, self._pause, self._rest = FIRST, 1, 0
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Go on with a token."""
        if len(self._tokens) >= RUN:
            self._after[tuple(self._tokens[-RUN:])] = len(self._tokens)
        self._tokens.append(token)
        self._rest -= 1

    def guess(self, most: int) -> list[int]:
        """The next tokens, `most` at most; none where nothing is known, or after wrong guesses."""
        place = self._after.get(tuple(self._tokens[-RUN:]))
        if place is None or self._rest > 0:
            return []
        known = len(self._tokens) - place  # where the text repeats itself at once, the guess does so too
        return [self._tokens[place + number % known] for number in range(max(0, min(self._size, most)))]

    def learn(self, drafted: int, right: int) -> None:
        """Take note of how many tokens of a guess were right."""
        if right:
            self._pause = 1
            self._size = min(2 * self._size, MOST) if right == drafted else max(FIRST, right)
        elif drafted:
            self._size, self._rest, self._pause = FIRST, self._pause, min(2 * self._pause, LONGEST_PAUSE)
