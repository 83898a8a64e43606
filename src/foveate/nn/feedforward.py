"""The feed-forward layer of a block."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import one_of
from foveate.nn.dropout import Dropout


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation of GELU (Hendrycks and Gimpel 2016), which GPT and GPT-2 use."""
    return F.gelu(x, approximate="tanh")


def gelu_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid approximation of GELU (Hendrycks and Gimpel 2016), which Image GPT and CLIP use."""
    return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": gelu_tanh,
    "gelu-sigmoid": gelu_sigmoid,
    "silu": F.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them: C -> hidden -> C."""

    def __init__(
        self, width: int, hidden: int, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        one_of("activation", activation, ACTIVATIONS)
        self.inner = nn.Linear(width, hidden, bias)
        self.outer = nn.Linear(hidden, width, bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*places C"]) -> Float[Tensor, "*places C"]:
        return self.outer(self.dropout(self.activation(self.inner(x))))


class GatedFeedForward(FeedForward):
    """A feed-forward layer with a gate: `outer(activation(gate(x)) * inner(x))` (Shazeer 2020,
    https://arxiv.org/abs/2002.05202). With SiLU it is SwiGLU, as in Llama."""

    def __init__(
        self, width: int, hidden: int, activation: str = "silu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__(width, hidden, activation, dropout, bias)
        self.gate = nn.Linear(width, hidden, bias)

    def forward(self, x: Float[Tensor, "*places C"]) -> Float[Tensor, "*places C"]:
        return self.outer(self.dropout(self.activation(self.gate(x)) * self.inner(x)))
