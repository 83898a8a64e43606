"""Joint training of a decoder with attention and its encoder with CTC."""

import torch.nn.functional as F

from foveate.contracts import END, IGNORE, PAD, Batch, Output
from foveate.models.speech.output import SpeechOutput
from foveate.training.objectives import Loss, Objective


class JointCTC:
    """The loss of the decoder plus `weight` times the CTC loss of the encoder (Kim et al. 2017,
    https://arxiv.org/abs/1609.06773; Graves et al. 2006 for CTC itself).

    CTC's targets are the labels without END; its blank is PAD. A transcript that is longer than its encoded sound has
    no CTC loss. Outputs without logits for CTC have none either. Logs the "ctc" loss, in nats.
    """

    def __init__(self, decoder: Objective, weight: float) -> None:
        self.decoder, self.weight = decoder, weight

    def __call__(self, output: Output, batch: Batch) -> Loss:
        loss = self.decoder(output, batch)
        if not self.weight or not isinstance(output, SpeechOutput) or output.ctc is None:
            return loss
        assert output.ctc_lengths is not None
        counts = (batch.labels != IGNORE) & (batch.labels != END)
        ctc = F.ctc_loss(
            output.ctc.float().log_softmax(-1).transpose(0, 1),
            batch.labels.masked_fill(~counts, PAD),
            output.ctc_lengths,
            counts.sum(1),
            blank=PAD,
            reduction="sum",
            zero_infinity=True,
        )
        return Loss(loss.total + self.weight * ctc, {**loss.log, "ctc": ctc.detach()})
