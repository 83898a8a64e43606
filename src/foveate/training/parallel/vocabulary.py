"""Cross-entropy over a vocabulary of which each process has a part of the logits (Shoeybi et al. 2019, section 3).

Processes exchange a few numbers for each token instead of its logits.
"""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


def split_cross_entropy(
    logits: Any, labels: Int[Tensor, "B T"], scale: Float[Tensor, "B T"], smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Computes `smoothed_cross_entropy` for logits (B, T, N) that are a DTensor, split along N. The loss of each label
    is multiplied by its `scale`."""
    mesh, size = logits.device_mesh, logits.shape[-1]
    first = -(-size // mesh.size()) * mesh.get_local_rank()
    return _SplitCrossEntropy.apply(logits.to_local(), labels, scale, smoothing, size, first, mesh.get_group())


class _SplitCrossEntropy(torch.autograd.Function):
    """n is the part of the vocabulary that this process has, from the entry `first` on."""

    @staticmethod
    def forward(
        context: Any,
        logits: Float[Tensor, "B T n"],
        labels: Int[Tensor, "B T"],
        scale: Float[Tensor, "B T"],
        smoothing: float,
        size: int,
        first: int,
        group: dist.ProcessGroup,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
        logits = logits.float()
        own = labels - first
        mine = (own >= 0) & (own < logits.shape[-1])
        own = own.masked_fill(~mine, 0)
        greatest = logits.amax(-1)
        dist.all_reduce(greatest, dist.ReduceOp.MAX, group)
        exponents = (logits - greatest[..., None]).exp()
        label = logits.gather(-1, own[..., None])[..., 0].masked_fill(~mine, 0.0)
        total, label, mean = sums = torch.stack([exponents.sum(-1), label, logits.sum(-1) / size])
        dist.all_reduce(sums, dist.ReduceOp.SUM, group)
        log_total = total.log() + greatest
        losses = log_total - (1 - smoothing) * label - smoothing * mean
        context.save_for_backward(exponents, total, own, mine, scale)
        context.smoothing, context.size = smoothing, size
        log_prob, likeliest = label - log_total, label >= greatest
        context.mark_non_differentiable(log_prob, likeliest)
        return (losses * scale).masked_fill(scale == 0, 0.0).sum(), log_prob, likeliest

    @staticmethod
    @once_differentiable
    def backward(context: Any, to_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        exponents, total, own, mine, scale = context.saved_tensors
        gradient = exponents / total[..., None] - context.smoothing / context.size
        gradient.scatter_add_(-1, own[..., None], ((context.smoothing - 1) * mine)[..., None])
        return gradient * (scale.to(to_loss.dtype) * to_loss)[..., None], *[None] * 6
