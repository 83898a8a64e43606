"""CTC: the likelihood of a text over all ways to lay it over the places of a sound."""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from foveate.contracts import IGNORE, Batch, Output
from foveate.models.speech.output import SpeechOutput
from foveate.training.objectives.objective import Loss


def connectionist_loss(output: Output, batch: Batch) -> Loss:
    """The CTC loss in nats (Graves et al. 2006) of a model without a decoder, such as wav2vec 2.0.

    The batch says which class is the blank. A transcript that is longer than its encoded sound has no loss.
    """
    assert isinstance(output, SpeechOutput)
    targets: Mapping[str, Tensor] = batch.targets
    counts, blank = batch.labels != IGNORE, int(targets["blank"][0])
    total = ctc_sum(output, batch.labels.masked_fill(~counts, blank), counts.sum(1), blank)
    return Loss(total, {"ctc": total.detach()})


def ctc_sum(output: SpeechOutput, labels: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """The loss of all rows, each with this many labels."""
    assert output.ctc is not None
    assert output.ctc_lengths is not None
    return F.ctc_loss(
        output.ctc.float().log_softmax(-1).transpose(0, 1),
        labels,
        output.ctc_lengths,
        lengths,
        blank=blank,
        reduction="sum",
        zero_infinity=True,
    )
