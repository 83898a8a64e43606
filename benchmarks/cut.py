"""Model parallelism to measure: every layer of a Transformer is cut between the processes of the default group.

As in Megatron-LM (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053) a process has some heads of each attention
layer and some hidden units of each feed-forward layer. It computes its part from the whole input; what the parts put
out is summed forward, what they give back to their input is summed backward. Embeddings, norms and the output layer are
computed whole by each.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from foveate.nn import FeedForward, MultiHeadAttention


def cut(model: nn.Module) -> dict[str, int]:
    """Leave of `model` what belongs to this process; of each parameter that was cut, the dimension it was cut along."""
    along = {}
    for name, layer in model.named_modules():
        if isinstance(layer, MultiHeadAttention):
            inner, outer = ("query", "key", "value"), "output"
        elif isinstance(layer, FeedForward):
            inner, outer = ("inner",), "outer"
        else:
            continue
        along |= {f"{name}.{part}.{kind}": 0 for part in inner for kind in ("weight", "bias")}
        along[f"{name}.{outer}.weight"] = 1
        if dist.get_rank():  # one of them adds the bias to the sum
            getattr(layer, outer).bias = None
        layer.register_forward_pre_hook(_to_all)
        getattr(layer, outer).register_forward_hook(lambda _layer, _given, part: _Summed.apply(part))
    parameters = dict(model.named_parameters())
    for name, dimension in along.items():
        whole = parameters[name]
        whole.data = whole.data.chunk(dist.get_world_size(), dimension)[dist.get_rank()].clone()
    return along


def joined(part: Tensor, dimension: int) -> Tensor:
    """The whole of what was cut along a dimension; all processes must ask for it."""
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part.contiguous())
    return torch.cat(parts, dimension)


def _to_all(_layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_ForAll.apply(part) if isinstance(part, Tensor) else part for part in given)


class _ForAll(torch.autograd.Function):
    """The input of all parts: its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor) -> Tensor:
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _sum(gradient)


class _Summed(torch.autograd.Function):
    """The sum of all parts' outputs, whose gradient is that of each."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        return _sum(part)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def _sum(part: Tensor) -> Tensor:
    total = part.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total
