"""Objectives that learn from preferences: of a reward model, and of a model that is to please it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch, Output
from foveate.errors import UserError
from foveate.training.objectives.objective import Loss


@dataclass
class BradleyTerry:
    """The negative log-probability that the first text of each pair of rows is better: `-log sigmoid(r - r')`.

    (Bradley and Terry 1952; Christiano et al. 2017, https://arxiv.org/abs/1706.03741.) The rewards r are the only
    logit of each row. Logs the "accuracy".
    """

    def __call__(self, output: Output, batch: Batch) -> Loss:
        rewards = output.logits.float().view(-1, 2)
        difference = rewards[:, 0] - rewards[:, 1]
        return Loss(-F.logsigmoid(difference).sum(), {"accuracy": (difference.detach() > 0).sum()})


class PolicyGradient:
    """REINFORCE on whole texts: `-advantage * log p(text | prompt)`, summed over the texts of a batch.

    The targets are `labels` (B, T), with IGNORE at the prompt, and `advantage` (B,). Logs the mean "reward", "kl" and
    "length" of the texts, which the batch has among its targets.
    """

    def __call__(self, output: Output, batch: Batch) -> Loss:
        labels = batch.labels
        nats = F.cross_entropy(output.logits.float().mT, labels, ignore_index=IGNORE, reduction="none").sum(1)
        log = {name: batch.targets[name].sum() for name in ("reward", "kl", "length")}
        return Loss((batch.targets["advantage"] * nats).sum(), log)


@dataclass(frozen=True)
class ClippedPolicyGradient:
    """PPO's clipped objective (Schulman et al. 2017, https://arxiv.org/abs/1707.06347), without a learned critic.

    For each token of a text, with the ratio r of its probability to that when the text was written (the target
    `log_prob`), `-min(r A, clip(r, 1 - ratio, 1 + ratio) A)`; the advantage A is that of the text. Targets and logs are
    those of `PolicyGradient`, and the share of "clipped" tokens.
    """

    ratio: float

    def __call__(self, output: Output, batch: Batch) -> Loss:
        labels, advantage = batch.labels, batch.targets["advantage"][:, None]
        nats = F.cross_entropy(output.logits.float().mT, labels, ignore_index=IGNORE, reduction="none")
        ratio = (-nats - batch.targets["log_prob"]).exp()
        near = ratio.clamp(1 - self.ratio, 1 + self.ratio)
        counts = labels != IGNORE
        loss = -torch.minimum(ratio * advantage, near * advantage).masked_fill(~counts, 0.0)
        log = {name: batch.targets[name].sum() for name in ("reward", "kl", "length")}
        log["clipped"] = ((ratio.detach() != near.detach()) & counts).sum(1).div(counts.sum(1).clamp(min=1)).sum()
        return Loss(loss.sum(), log)


@dataclass
class DirectPreference:
    """DPO (Rafailov et al. 2023, https://arxiv.org/abs/2305.18290): `-log sigmoid(beta (m - m'))`.

    The rows are pairs of texts, the better one first. m is the log-probability of a row's labels less that to the first
    model, the target `reference`. Logs the "accuracy", the share of pairs with m > m', and the "margin", beta (m - m').
    """

    beta: float = 0.1
    """What distance from the first model costs."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if not self.beta > 0:
            raise UserError(f"beta is {self.beta}, but must be above 0")

    def __call__(self, output: Output, batch: Batch) -> Loss:
        nats = F.cross_entropy(output.logits.float().mT, batch.labels, ignore_index=IGNORE, reduction="none").sum(1)
        better, worse = (-nats - batch.targets["reference"]).view(-1, 2).unbind(1)
        margin = self.beta * (better - worse)
        found = margin.detach()
        return Loss(-F.logsigmoid(margin).sum(), {"accuracy": (found > 0).sum(), "margin": found.sum()})


def leave_one_out(rewards: torch.Tensor) -> torch.Tensor:
    """The advantage of each of several texts (B, K) for one prompt: its reward less the mean of the others'.

    (RLOO: Kool et al. 2019; Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740.)
    """
    others = (rewards.sum(1, keepdim=True) - rewards) / (rewards.shape[1] - 1)
    return rewards - others
