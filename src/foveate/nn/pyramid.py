"""The pyramidal recurrent encoder: each layer reads two steps of the layer below as one (Chan et al. 2016)."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.nn.dropout import Dropout
from foveate.nn.recurrent import Recurrent


def halve_time(x: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"]) -> tuple[Float[Tensor, "B Z D"], Int[Tensor, "B"]]:
    """Concatenate each pair of steps: Z is S / 2 rounded up, D is 2 C. Returns the new lengths too.

    The last step of an odd sequence is paired with zeros. Padding of x must be zeros.
    """
    even = F.pad(x, (0, 0, 0, x.shape[1] % 2))
    return even.unflatten(1, (-1, 2)).flatten(2), (lengths + 1) // 2


class PyramidalEncoder(nn.Module):
    """A bidirectional LSTM, then `pyramids` more, each over pairs of steps of the one below.

    The output is shorter than the input by a factor of 2 ** pyramids.
    """

    def __init__(self, input_width: int, width: int, pyramids: int, dropout: float = 0.0) -> None:
        """`width` is that of each layer's output, half of it for each direction."""
        super().__init__()
        self.width = width
        self.base = Recurrent("lstm", input_width, width, bidirectional=True)
        self.pyramids = nn.ModuleList(Recurrent("lstm", 2 * width, width, bidirectional=True) for _ in range(pyramids))
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sequence and its lengths."""
        x = self.base.outputs(x, lengths)
        for layer in self.pyramids:
            x, lengths = halve_time(self.dropout(x), lengths)
            assert isinstance(layer, Recurrent)
            x = layer.outputs(x, lengths)
        return self.dropout(x), lengths
