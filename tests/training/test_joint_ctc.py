"""The loss of CTC beside that of a decoder, against the sum over all paths."""

import itertools
import math

import torch
from torch import Tensor

from foveate.contracts import IGNORE, Output, label_batch
from foveate.models.speech.output import SpeechOutput
from foveate.special_tokens import LEARNED
from foveate.training import CrossEntropy
from foveate.training.objectives.joint_ctc import JointCTC

END = LEARNED.end


def minus_log_probability(logits: Tensor, text: list[int]) -> float:
    """Over all paths of one token for each place, which without repetitions and blanks (0) are the text."""
    shares, total = logits.softmax(-1), 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if [token for token, _ in itertools.groupby(path) if token] == text:
            total += math.prod(float(share[token]) for share, token in zip(shares, path, strict=True))
    return -math.log(total)


def test_as_the_sum_over_all_paths() -> None:
    """The second transcript, with a repeated character, does not fit into its two places and counts for nothing."""
    labels = torch.tensor([[4, 5, END, IGNORE], [4, 4, END, IGNORE], [5, END, IGNORE, IGNORE]])
    batch = label_batch({}, labels, "sounds")
    logits = torch.randn(3, 4, 6, dtype=torch.float64)
    ctc = torch.randn(3, 5, 6, requires_grad=True)
    output = SpeechOutput(logits, ctc=ctc, ctc_lengths=torch.tensor([5, 2, 3]))
    plain = CrossEntropy(0.1)(Output(logits), batch)
    loss = JointCTC(0.1, ctc=0.7)(output, batch)
    expected = minus_log_probability(ctc[0].detach(), [4, 5]) + minus_log_probability(ctc[2, :3].detach(), [5])
    torch.testing.assert_close(float(loss.log["ctc"]), expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(float(loss.total.detach()), float(plain.total) + 0.7 * expected, atol=1e-4, rtol=0)
    loss.total.backward()
    assert not bool(ctc.grad[1].any())
    assert bool(ctc.grad[0].any())


def test_models_without_logits_for_it_have_the_loss_of_the_decoder() -> None:
    labels = torch.tensor([[4, 5, END]])
    logits, batch = torch.randn(1, 3, 6), label_batch({}, labels, "sounds")
    expected = CrossEntropy(0.1)(Output(logits), batch).total
    for output in (Output(logits), SpeechOutput(logits)):
        assert torch.equal(JointCTC(0.1, ctc=0.7)(output, batch).total, expected)
