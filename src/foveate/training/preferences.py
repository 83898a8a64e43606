"""Objectives that learn from preferences: of a reward model, and of a model that is to please it."""

import torch
import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch, Output
from foveate.training.objectives import Loss


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


def leave_one_out(rewards: torch.Tensor) -> torch.Tensor:
    """The advantage of each of several texts (B, K) for one prompt: its reward less the mean of the others'.

    (RLOO: Kool et al. 2019; Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740.)
    """
    others = (rewards.sum(1, keepdim=True) - rewards) / (rewards.shape[1] - 1)
    return rewards - others
