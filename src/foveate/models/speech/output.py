"""What a model of speech computes beside the logits of its decoder."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import Output


@dataclass
class SpeechOutput(Output):
    """Logits of the next character, and of the encoder's own reading of each place for joint training with CTC."""

    ctc: Float[Tensor, "B Z N"] | None = None
    """Logits of each place of the encoded sound; the blank is the padding. None without CTC."""
    ctc_lengths: Int[Tensor, "B"] | None = None
    """Places of each encoded sound."""
