"""Joint training of a decoder with attention and its encoder with CTC."""

import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch, Output
from foveate.models.speech.output import SpeechOutput
from foveate.special_tokens import SpecialTokens
from foveate.training.objectives.objective import Loss, Objective


class JointCTC:
    """The loss of the decoder plus `weight` times the CTC loss of the encoder (Kim et al. 2017,
    https://arxiv.org/abs/1609.06773; Graves et al. 2006 for CTC itself).

    CTC's targets are the labels without the end token; its blank is the padding. A transcript that is longer than its
    encoded sound has no CTC loss. Outputs without logits for CTC have none either. Logs the "ctc" loss, in nats.
    """

    def __init__(self, decoder: Objective, weight: float, special: SpecialTokens) -> None:
        self.decoder, self.weight, self.special = decoder, weight, special

    def __call__(self, output: Output, batch: Batch) -> Loss:
        loss = self.decoder(output, batch)
        if not self.weight or not isinstance(output, SpeechOutput) or output.ctc is None:
            return loss
        assert output.ctc_lengths is not None
        counts = (batch.labels != IGNORE) & (batch.labels != self.special.end)
        ctc = F.ctc_loss(
            output.ctc.float().log_softmax(-1).transpose(0, 1),
            batch.labels.masked_fill(~counts, self.special.pad),
            output.ctc_lengths,
            counts.sum(1),
            blank=self.special.pad,
            reduction="sum",
            zero_infinity=True,
        )
        return Loss(loss.total + self.weight * ctc, {**loss.log, "ctc": ctc.detach()})
