"""Objectives: losses as sums over the target tokens that count. The loop divides them by the number of tokens.

B  batch    T  target length    N  vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss

from foveate.contracts import IGNORE, Batch, Choices, Output
from foveate.errors import UserError, at_least
from foveate.training.objectives.cross_entropy import smoothed_cross_entropy


@dataclass
class Loss:
    """The value of an objective for one batch, as sums over the labels that count."""

    total: Float[Tensor, ""]
    """The differentiable loss."""
    log: dict[str, Tensor] = field(default_factory=dict)
    """Detached sums to log, per label."""


Objective = Callable[[Output, Batch], Loss]
"""Compares the output of a model with the labels."""


@dataclass
class SmoothedCrossEntropy:
    """Cross-entropy, for models that choose nothing."""

    label_smoothing: float = 0.0
    """Share of the target probability that is distributed evenly over the vocabulary."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"label_smoothing is {self.label_smoothing}, but must be at least 0 and below 1")

    def __call__(self, output: Output, batch: Batch) -> Loss:
        return CrossEntropy(self.label_smoothing)(output, batch)


@dataclass
class CrossEntropy:
    """Label-smoothed cross-entropy in nats, plus REINFORCE for hard attention.

    With smoothing e, the target is 1 - e on the label plus e distributed evenly over the vocabulary (Szegedy et al.
    2016), as in `torch.nn.functional.cross_entropy`, but faster and with less memory. Logs the "cross_entropy" without
    smoothing and the "accuracy".

    A batch with the target `holds`, whose examples may have several labels, has the loss of `several_labels_loss`.

    The divergence of a variational model's output is added, and logged.

    If the output has choices, `reinforce` is added with `choice_weight` and `entropy_bonus`. Its gradient is unbiased
    but noisy, so a small weight learns faster with Adam. With several choices of each step the loss is their mean.
    """

    label_smoothing: float = 0.0
    """Share of the target probability that is distributed evenly over the vocabulary."""
    choice_weight: float = 0.1
    """Hard attention: weight of the REINFORCE loss. A larger weight learns faster, but its gradient is noisier."""
    entropy_bonus: float = 0.001
    """Hard attention: weight of the entropy of choices, against early decisions."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("choice_weight", "entropy_bonus"):
            at_least(0, name, getattr(self, name))
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"label_smoothing is {self.label_smoothing}, but must be at least 0 and below 1")

    def __call__(self, output: Output, batch: Batch) -> Loss:
        if "holds" in batch.targets:
            return several_labels_loss(output, batch, self.label_smoothing)
        samples = 1 if output.choices is None else output.choices.samples
        labels = batch.labels.repeat(1, samples)
        counts = labels != IGNORE
        labels, weights = labels.masked_fill(~counts, 0), batch.targets.get("label_weights")
        weights = weights if weights is None else weights.repeat(1, samples)
        logits = _by_place(output.logits)
        total, log_prob, right = smoothed_cross_entropy(logits, labels, counts, self.label_smoothing, weights)
        for auxiliary in output.auxiliary:
            extra, *_ = smoothed_cross_entropy(_by_place(auxiliary), labels, counts, self.label_smoothing, weights)
            total = total + AUXILIARY * extra
        log = {"cross_entropy": -(log_prob * counts).sum(), "accuracy": (right & counts).sum()}
        if output.divergence is not None:
            total = total + output.divergence.sum()
            log["divergence"] = output.divergence.detach().sum()
        if output.choices is None:
            return Loss(total, log)
        choice_loss = reinforce(output.choices, log_prob, counts, self.choice_weight, self.entropy_bonus)
        log = {name: value / samples for name, value in (log | choice_loss.log).items()}
        return Loss((total + choice_loss.total) / samples, log)


def several_labels_loss(output: Output, batch: Batch, smoothing: float) -> Loss:
    """The binary cross-entropy of examples that may have several of N labels, in nats, summed over all labels.

    The target `holds` (B, N) is 1 for each label that an example has; `label_weights` (B, N) weigh the labels. With
    smoothing e, the target is 1 - e/2 or e/2. Logs the "cross_entropy" without smoothing or weights, and the
    "accuracy" of all decisions.
    """
    holds, weights = batch.targets["holds"], batch.targets.get("label_weights")

    def loss(logits: Tensor, wanted: Tensor, weight: Tensor | None = None) -> Tensor:
        flat = logits.reshape(wanted.shape).float()
        return binary_cross_entropy_with_logits(flat, wanted, weight, reduction="sum")

    smooth = holds * (1 - smoothing) + smoothing / 2
    total = loss(output.logits, smooth, weights)
    for auxiliary in output.auxiliary:
        total = total + AUXILIARY * loss(auxiliary, smooth, weights)
    logits = output.logits.detach()
    right = (logits.reshape(holds.shape) >= 0) == (holds >= 0.5)
    return Loss(total, {"cross_entropy": loss(logits, holds), "accuracy": right.sum()})


AUXILIARY = 0.3
"""Weight of the loss of each auxiliary classifier (Szegedy et al. 2015, https://arxiv.org/abs/1409.4842)."""


def _by_place(logits: Float[Tensor, "... N"]) -> Float[Tensor, "B T N"]:
    """Logits with a place for each label: a decision about a whole example is one place."""
    return logits[:, None] if logits.ndim == 2 else logits


def reinforce(
    choices: Choices,
    label_log_prob: Float[Tensor, "B T"],
    counts: Bool[Tensor, "B T"],
    weight: float,
    entropy_bonus: float,
) -> Loss:
    """The REINFORCE loss of hard attention (Williams 1992; Xu et al. 2015, section 4.1) with a learned baseline and an
    entropy bonus, in nats, against early decisions.

    The reward of a choice is the log-probability of its own label and, if choices affect later steps, of all later
    labels. The baseline predicts the reward and is trained by Huber's loss, whose gradient is bounded. With several
    choices of each step, the baseline of each is the mean reward of the others (Kool et al. 2019). The advantage,
    reward minus baseline, weights the gradient of the choice. Only the gradient of the loss has a meaning, not its
    value.

    Logs the "choice_entropy", the "reward_square" and the "advantage_square". The variance of the gradient without and
    with the baseline is proportional to the squares.
    """
    reward = (label_log_prob * counts).detach()
    if choices.affects_later_steps:
        reward = reward.flip(-1).cumsum(-1).flip(-1)
    several = choices.samples > 1
    baseline = _others_reward(reward, choices.samples) if several else choices.baseline.to(reward.dtype)
    advantage = reward - baseline.detach()
    losses = -weight * advantage * choices.log_prob - entropy_bonus * choices.entropy
    if not several:
        losses = losses + smooth_l1_loss(baseline, reward, reduction="none")
    signals = {"choice_entropy": choices.entropy.detach(), "reward_square": reward**2, "advantage_square": advantage**2}
    log = {name: signal.masked_fill(~counts, 0.0).sum() for name, signal in signals.items()}
    return Loss(losses.masked_fill(~counts, 0.0).sum(), log)


def _others_reward(reward: Float[Tensor, "B T"], samples: int) -> Float[Tensor, "B T"]:
    """The mean reward of the other choices of the same step."""
    by_sample = reward.unflatten(1, (samples, -1))
    return ((by_sample.sum(1, keepdim=True) - by_sample) / (samples - 1)).flatten(1)
