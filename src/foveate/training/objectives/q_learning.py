"""Q-learning: an objective, and the values that it learns."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.contracts import IGNORE, Batch, Output
from foveate.training.objectives.objective import Loss


@dataclass
class QLearning:
    """Huber's loss between the value of each action that was taken and its target.

    The logits of the model are the values of all actions. The targets are `labels` (B, T), the actions, with IGNORE
    where nothing was done, and `values` (B, T). Logs the mean "value" of the actions.
    """

    def __call__(self, output: Output, batch: Batch) -> Loss:
        counts = batch.labels != IGNORE
        chosen = output.logits.float().gather(-1, batch.labels.masked_fill(~counts, 0)[..., None])[..., 0]
        losses = F.smooth_l1_loss(chosen, batch.targets["values"], reduction="none")
        return Loss((losses * counts).sum(), {"value": (chosen.detach() * counts).sum()})


def double_q_targets(
    online: Float[Tensor, "B N A"],
    target: Float[Tensor, "B N A"],
    rewards: Float[Tensor, "B T"],
    ended: Bool[Tensor, "B T"],
    discount: float,
) -> Float[Tensor, "B T"]:
    """Computes the value of each action: its reward, and the discounted value of the state after it, unless the episode
    ended.

    `online` and `target` are the values of the N = T + 1 states from two networks: the first chooses the next action,
    the second says what it is worth (van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461).
    """
    following = target[:, 1:].gather(-1, online[:, 1:].argmax(-1, keepdim=True))[..., 0]
    return rewards + discount * torch.where(ended, 0.0, following)
