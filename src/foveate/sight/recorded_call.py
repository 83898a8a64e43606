"""One recorded attention call: which rows of its site's map it computed, and what is kept of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.call import Call
from foveate.sight.key_store import Span
from foveate.sight.mutation_guard import MutationGuard


@dataclass(eq=False, slots=True)
class RecordedCall:
    """One attention call: some rows of a map."""

    call: Call
    """The call with its queries and without its keys, which are in the `KeyStore` of the site."""
    span: Span
    """Which of the site's keys it attended to."""
    start: int
    """Number of rows that the map had before this call."""
    run: int
    """Number of the model's run that made the call, from 1."""
    position: int | None = None
    """The position of its first query among its keys, if the call tells it (see `first_query_position`)."""
    choice: Int[Tensor, "... T"] | None = None
    """The positions that a hard selection chose."""
    guards: Sequence[MutationGuard] = ()
    """Guards of the tensors that belong to the model and were not copied."""
    norms: Float[Tensor, "B H S"] | None = None
    """How large the projected value of each key is, if values are looked at."""
    projected: bool = False
    """Whether these are the values after the output projection of the layer."""
    output: Float[Tensor, "... T V"] | None = None
    """What it gave, with its graph, if gradients are looked at."""
    values: Float[Tensor, "... S V"] | None = None
    """Its values, if gradients are looked at."""
    measured: dict[str, Any] = field(default_factory=dict)
    """Results of measures, by name."""

    @property
    def count(self) -> int:
        """Number of queries."""
        return self.call.queries.shape[-2]

    @property
    def end(self) -> int:
        """Position after its last key."""
        return self.span.first + self.span.length
