"""What models that read a source and write a target have in common."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import State


class EncoderDecoder:
    """A `Generator` (`foveate.contracts`) whose `start` reads the source and whose `step` writes the target."""

    start: Callable[..., Any]
    """Reads the source. Returns the state before the first token, with one row for each example."""

    step: Callable[..., Tensor]

    def prefill(self, tokens: Int[Tensor, "B T"], **source: Tensor) -> tuple[Float[Tensor, "B N"], State]:
        """Read a source and the beginning of its target: a start token, and what follows it.

        Returns the logits of each row's next token and the state."""
        state = self.start(**source)
        for column in tokens.unbind(1):
            logits = self.step(column, state)
        return logits, state
