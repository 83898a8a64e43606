"""The feed-forward layer of a block."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import one_of
from foveate.nn.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them: C -> hidden -> C."""

    def __init__(self, width: int, hidden: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        one_of("activation", activation, ACTIVATIONS)
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T C"]:
        return self.outer(self.dropout(self.activation(self.inner(x))))
