"""Joint training of a decoder with attention and its encoder with CTC."""

from dataclasses import dataclass
from typing import ClassVar

from foveate.contracts import IGNORE, Batch, Output
from foveate.errors import at_least
from foveate.models.speech.output import SpeechOutput
from foveate.special_tokens import LEARNED, SpecialTokens
from foveate.training.objectives.ctc import connectionist_loss, ctc_sum
from foveate.training.objectives.objective import CrossEntropy, Loss


@dataclass
class JointCTC(CrossEntropy):
    """The cross-entropy of the decoder plus `ctc` times the CTC loss of the encoder (Kim et al. 2017,
    https://arxiv.org/abs/1609.06773; Graves et al. 2006 for CTC itself).

    CTC's targets are the labels without the end token; its blank is the padding. A transcript that is longer than its
    encoded sound has no CTC loss. Outputs without logits for CTC have none either. Logs the "ctc" loss, in nats. A
    model without a decoder, whose batches name the blank, has the CTC loss alone.
    """

    ctc: float = 0.3
    """Weight of the CTC loss of the encoder, for models that have an output layer for it."""

    special: ClassVar[SpecialTokens] = LEARNED

    def check(self) -> None:
        super().check()
        at_least(0, "ctc", self.ctc)

    def __call__(self, output: Output, batch: Batch) -> Loss:
        if "blank" in batch.targets:
            return connectionist_loss(output, batch)
        loss = super().__call__(output, batch)
        if not self.ctc or not isinstance(output, SpeechOutput) or output.ctc is None:
            return loss
        counts = (batch.labels != IGNORE) & (batch.labels != self.special.end)
        labels = batch.labels.masked_fill(~counts, self.special.pad)
        ctc = ctc_sum(output, labels, counts.sum(1), self.special.pad)
        return Loss(loss.total + self.ctc * ctc, {**loss.log, "ctc": ctc.detach()})
