"""Score functions: how well a key matches a query.

A score has two steps, so that keys are projected once and not for every query: `queries(q)` and `keys(k)` prepare each
side, `block(queries, keys)` computes the scores of prepared vectors.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import scratch
from foveate.attention.autocast import without_autocast
from foveate.attention.shapes import broadcast, joined_heads


class Score:
    """Scores of every key for every query. Learned scores are modules; others are plain values."""

    def queries(self, q: Float[Tensor, "... T D"]) -> Float[Tensor, "... T P"]:
        """Prepared queries, computed once."""
        return q

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        """Prepared keys, computed once and kept by `Memory`."""
        return k

    def fits(self, query_width: int, key_width: int) -> bool:
        """Returns whether prepared queries and keys of these two widths, which differ, can be compared."""
        return False

    def scale(self, width: int) -> float | None:
        """The factor of a scaled dot product of prepared vectors of this width; None for other scores."""
        return None

    def footprint(self, width: int) -> int:
        """The numbers that `block` holds for each pair of a query and a key."""
        return 1

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        """The scores of prepared queries and keys. Must be deterministic: a backward pass may compute them again."""
        scale = self.scale(queries.shape[-1])
        if scale is None:
            raise NotImplementedError(f"{type(self).__name__} is not a dot product and must define `block`")
        return queries * scale @ keys.mT

    def tensors(self) -> tuple[Tensor, ...]:
        """The learned tensors that `block` reads."""
        return ()


@dataclass(frozen=True)
class Dot(Score):
    """The dot product `q·k`. Its variance grows with the width D, which saturates the softmax: see `ScaledDot`."""

    def scale(self, width: int) -> float:
        return 1.0


@dataclass(frozen=True)
class ScaledDot(Score):
    """The scaled dot product `q·k / sqrt(D)` (Vaswani et al. 2017), or `q·k * factor`."""

    factor: float | None = None

    def scale(self, width: int) -> float:
        return 1 / math.sqrt(width) if self.factor is None else self.factor


class Cosine(nn.Module, Score):
    """The cosine of the angle between q and k, times a learned factor of each head, at most 100 (Swin V2, Liu et al.
    2022, https://arxiv.org/abs/2111.09883, equation 2)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.log_factor = nn.Parameter(torch.full((heads, 1, 1), math.log(10)))

    def queries(self, q: Float[Tensor, "... H T D"]) -> Float[Tensor, "... H T D"]:
        factors = self.log_factor.clamp(max=math.log(100)).exp()
        return (joined_heads(F.normalize(q, dim=-1), len(factors)) * factors).view(q.shape)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S D"]:
        return F.normalize(k, dim=-1)

    def scale(self, width: int) -> float:
        return 1.0


@dataclass(frozen=True)
class SquaredDistance(Score):
    """Minus the squared distance, `-|q - k|^2 / sqrt(D)` or times a `factor`: the nearest key has the largest score
    (Kim et al. 2021, https://arxiv.org/abs/2006.04710). Twice a dot product of vectors that know their lengths."""

    factor: float | None = None

    def queries(self, q: Float[Tensor, "... T D"]) -> Float[Tensor, "... T D+2"]:
        half = q.square().sum(-1, keepdim=True) / 2
        return torch.cat([q, -half, torch.ones_like(half)], -1)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S D+2"]:
        half = k.square().sum(-1, keepdim=True) / 2
        return torch.cat([k, torch.ones_like(half), -half], -1)

    def scale(self, width: int) -> float:
        return 2 * (1 / math.sqrt(width - 2) if self.factor is None else self.factor)


class SoftCapped(nn.Module, Score):
    """A score limited to -cap to cap: `cap * tanh(score / cap)` (Gemma 2, 2024)."""

    def __init__(self, score: Score, cap: float) -> None:
        super().__init__()
        self.score = score
        self.cap = cap

    def queries(self, q: Float[Tensor, "... T D"]) -> Float[Tensor, "... T P"]:
        return self.score.queries(q)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        return self.score.keys(k)

    def footprint(self, width: int) -> int:
        return self.score.footprint(width)

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        return self.cap * torch.tanh(self.score.block(queries, keys) / self.cap)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.score.tensors()


class HardCapped(SoftCapped):
    """A score limited to -cap to cap by cutting off what is beyond, which has no gradient."""

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        return self.score.block(queries, keys).clamp(-self.cap, self.cap)


class Biaffine(nn.Module, Score):
    """`k^T W q` with a learned W, called "general" by Luong et al. (2015); with W applied to the keys it is `Dot`."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(key_width, query_width))
        nn.init.xavier_uniform_(self.weight)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        return k @ self.weight

    def scale(self, width: int) -> float:
        return 1.0


class Additive(nn.Module, Score):
    """`u·g(W1 k + W2 q + b)`, the multi-layer perceptron of Bahdanau et al. (2015); g is tanh or any other function.

    A learned g must be a module. g must not be random, as dropout is. With tanh, both sides `W1 k` and `W2 q + b` are
    exact up to an absolute value of 43.
    """

    def __init__(
        self, query_width: int, key_width: int | None, width: int, activation: Callable[[Tensor], Tensor] = torch.tanh
    ) -> None:
        """A `key_width` of None is for keys that are projected already, `W1 k` of any kind, such as a convolution's."""
        super().__init__()
        self.query = nn.Linear(query_width, width)
        self.key = nn.Identity() if key_width is None else nn.Linear(key_width, width, bias=False)
        self.direction = nn.Parameter(torch.empty(width))
        self.activation = activation
        nn.init.uniform_(self.direction, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def queries(self, q: Float[Tensor, "... T D"]) -> Float[Tensor, "... T P"]:
        return self.query(q)

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        return self.key(k)

    def footprint(self, width: int) -> int:
        return width

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        if self.activation is torch.tanh:
            return _AdditiveTanh.apply(queries, keys, self.direction)  # type: ignore[no-untyped-call]
        return self.activation(queries.unsqueeze(-2) + keys.unsqueeze(-3)) @ self.direction

    def tensors(self) -> tuple[Tensor, ...]:
        learned = self.activation.parameters() if isinstance(self.activation, nn.Module) else ()
        return (self.direction, *learned)


class _AdditiveTanh(torch.autograd.Function):
    """`tanh(q + k)·u` without a tanh for each pair: `tanh(q + k) = 1 - 2r` with `r = 1 / (1 + e^2q e^2k)`.

    Exponentials are computed once per side, so a pair costs a product and a reciprocal, an eighth of a tanh. The
    backward pass overwrites r; a second backward pass computes r again.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, direction: Tensor) -> Float[Tensor, "... T S"]:
        ctx.save_for_backward(queries, keys, direction)
        ctx.r = r = _reciprocals(queries, keys)
        direction = direction.to(r.dtype)
        with without_autocast(r.device):  # the two terms nearly cancel
            return (direction.sum() - 2 * (r @ direction)).to(queries.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Float[Tensor, "... T S"]) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, direction = ctx.saved_tensors
        r = _reciprocals(queries, keys) if ctx.r is None else ctx.r
        ctx.r = None
        gradient, factor = gradient.to(r.dtype), 4 * direction.to(r.dtype)
        to_direction = gradient.sum() - 2 * (gradient.reshape(-1) @ r.reshape(-1, r.shape[-1]))
        slopes = r.addcmul_(r, r, value=-1).mul_(gradient.unsqueeze(-1))
        to_queries, to_keys = slopes.sum(-2) * factor, slopes.sum(-3) * factor
        return (
            to_queries.sum_to_size(queries.shape).to(queries.dtype),
            to_keys.sum_to_size(keys.shape).to(keys.dtype),
            to_direction.to(direction.dtype),
        )


def _reciprocals(queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S P"]:
    """`1 / (1 + e^2q e^2k)` for each pair, in single precision at least.

    Exponents are clamped (in single precision to 87), so that no product is 0 times infinity. A product may overflow or
    vanish: tanh is 1 or -1 there. The result is wrong only if both sides exceed the bound with opposite signs.
    """
    exact = torch.promote_types(queries.dtype, torch.float32)
    bound = -math.log(torch.finfo(exact).tiny) / 2
    of_queries, of_keys = ((side.to(exact).clamp(-bound, bound) * 2).exp_() for side in (queries, keys))
    of_queries, of_keys = of_queries.unsqueeze(-2), of_keys.unsqueeze(-3)
    r = scratch.empty(broadcast(of_queries.shape, of_keys.shape), like=of_keys)
    return torch.addcmul(r.new_ones(()), of_queries, of_keys, out=r).reciprocal_()
