"""Label-smoothed cross-entropy over a large vocabulary, with little memory."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from foveate.training.parallel.placement import mesh_of

ROWS = 128
"""Tokens in one block: few enough for their probabilities to stay in the processor's cache."""


def smoothed_cross_entropy(
    logits: Float[Tensor, "B T N"],
    labels: Int[Tensor, "B T"],
    counts: Bool[Tensor, "B T"],
    smoothing: float,
    weights: Float[Tensor, "B T"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """The loss summed over the labels that count, the log-probability of each label, and whether it is the likeliest.

    The target is 1 - `smoothing` on the label plus `smoothing` distributed evenly over the N entries, as in
    `torch.nn.functional.cross_entropy`. Only the loss has a gradient. Computed in float32 for all types of
    logits, which may be split among processes. The loss of each label is multiplied by its weight, if there are any.
    """
    scale = counts.float() if weights is None else counts * weights
    if mesh_of(logits) is not None:
        from foveate.training.parallel.vocabulary import split_cross_entropy  # takes time, which few need

        return split_cross_entropy(logits, labels, scale, smoothing)
    return _SmoothedCrossEntropy.apply(logits, labels, scale, smoothing)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient is the only tensor of the logits' size; the backward pass computes probabilities again.

    Forward and backward pass of 3,200 tokens and 5,000 words take 43 ms on one CPU core for bfloat16 logits, instead of
    170 ms with whole float32 tensors (75 ms for float32 logits either way).
    """

    @staticmethod
    def forward(
        context: Any,
        logits: Float[Tensor, "B T N"],
        labels: Int[Tensor, "B T"],
        scale: Float[Tensor, "B T"],
        smoothing: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
        exact = torch.promote_types(logits.dtype, torch.float32)
        found, means, hits = [], [], []
        for rows, wanted in zip(logits.flatten(0, 1).split(ROWS), labels.flatten().split(ROWS), strict=True):
            log_probs = torch.log_softmax(rows, -1, dtype=exact)
            own = log_probs.gather(-1, wanted[:, None])[:, 0]
            found.append(own)
            hits.append(own >= log_probs.amax(-1))
            if smoothing:
                means.append(log_probs.mean(-1))
        log_prob, likeliest = torch.cat(found).view_as(labels), torch.cat(hits).view_as(labels)
        losses = -(1 - smoothing) * log_prob
        if smoothing:
            losses -= smoothing * torch.cat(means).view_as(labels)
        context.save_for_backward(logits, labels, scale)
        context.smoothing = smoothing
        context.mark_non_differentiable(log_prob, likeliest)
        return (losses * scale).masked_fill(scale == 0, 0.0).sum(), log_prob, likeliest

    @staticmethod
    @once_differentiable
    def backward(context: Any, to_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, scale = context.saved_tensors
        exact, evenly = torch.promote_types(logits.dtype, torch.float32), context.smoothing / logits.shape[-1]
        weights = (scale.to(to_loss.dtype) * to_loss).flatten()[:, None]
        to_logits = torch.empty_like(logits, memory_format=torch.contiguous_format)  # so that `flatten` is a view
        parts = (part.split(ROWS) for part in (logits.flatten(0, 1), labels.flatten()[:, None], weights))
        for rows, wanted, weight, out in zip(*parts, to_logits.flatten(0, 1).split(ROWS), strict=True):
            gradient = torch.softmax(rows, -1, dtype=exact).sub_(evenly)
            gradient.scatter_add_(-1, wanted, torch.full_like(wanted, context.smoothing - 1, dtype=exact))
            torch.mul(gradient, weight, out=out) if out.dtype == exact else out.copy_(gradient.mul_(weight))
        return to_logits, None, None, None
