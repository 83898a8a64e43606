"""What training makes small: sums over the target tokens that count, which the loop divides by their number.

B  batch    T  target length    N  vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from foveate.contracts import IGNORE, Batch, Choices, Output
from foveate.training.cross_entropy import smoothed_cross_entropy


@dataclass
class Loss:
    """An objective's value for one batch, as sums over the labels that count."""

    total: Float[Tensor, ""]
    """What to differentiate."""
    log: dict[str, Tensor] = field(default_factory=dict)
    """Detached sums to report, per label, beside it."""


Objective = Callable[[Output, Batch], Loss]
"""Compares what a model computed with the labels."""


class CrossEntropy:
    """Label-smoothed cross-entropy in nats, and REINFORCE where hard attention chose places.

    With smoothing e the target is 1 - e on the label and e spread evenly over the whole vocabulary (Szegedy et al.
    2016), as in `torch.nn.functional.cross_entropy`, of which this is a faster and leaner form. Logs the
    "cross_entropy" without smoothing and the "accuracy".

    Where there are choices, what `reinforce` gives is added, with its `choice_weight` and `entropy_bonus`. Its gradient
    is right on average but noisy, and Adam takes noise for as good a direction as any: a small weight learns faster.
    """

    def __init__(self, label_smoothing: float = 0.0, choice_weight: float = 0.1, entropy_bonus: float = 0.001) -> None:
        self.label_smoothing = label_smoothing
        self.choice_weight, self.entropy_bonus = choice_weight, entropy_bonus

    def __call__(self, output: Output, batch: Batch) -> Loss:
        counts = batch.labels != IGNORE
        labels = batch.labels.masked_fill(~counts, 0)
        total, log_prob, right = smoothed_cross_entropy(output.logits, labels, counts, self.label_smoothing)
        log = {"cross_entropy": -(log_prob * counts).sum(), "accuracy": (right & counts).sum()}
        if output.choices is None:
            return Loss(total, log)
        of_choices = reinforce(output.choices, log_prob, counts, self.choice_weight, self.entropy_bonus)
        return Loss(total + of_choices.total, log | of_choices.log)


def reinforce(
    choices: Choices,
    label_log_prob: Float[Tensor, "B T"],
    counts: Bool[Tensor, "B T"],
    weight: float,
    entropy_bonus: float,
) -> Loss:
    """What teaches hard attention where to look: the score function's gradient (Williams 1992; Xu et al. 2015, section
    4.1) with a learned baseline, and a bonus for the entropy, in nats, so that it does not decide too early.

    The reward of a choice is the log-probability of its own label and, if choices are lasting, of all after it. The
    baseline learns to expect it (by Huber's loss, whose gradient does not grow with the error), and what it did not
    expect, the advantage, says how much likelier the choice should become. Of the value only the gradient means
    something.

    Logs the "choice_entropy" and the squares of what multiplies the gradients of the choices, "reward_square" without
    the baseline and "advantage_square" with it: the variance of the gradient grows and falls with them.
    """
    reward = (label_log_prob * counts).detach()
    if choices.lasting:
        reward = reward.flip(-1).cumsum(-1).flip(-1)
    baseline = choices.baseline.to(reward.dtype)
    advantage = reward - baseline.detach()
    losses = -weight * advantage * choices.log_prob - entropy_bonus * choices.entropy
    losses = losses + smooth_l1_loss(baseline, reward, reduction="none")
    signals = {"choice_entropy": choices.entropy.detach(), "reward_square": reward**2, "advantage_square": advantage**2}
    log = {name: signal.masked_fill(~counts, 0.0).sum() for name, signal in signals.items()}
    return Loss(losses.masked_fill(~counts, 0.0).sum(), log)
