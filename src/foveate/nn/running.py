"""Layers that read from left to right with a state of fixed size, in the place of self-attention.

Each of them is attention whose weights are the scores themselves (`foveate.attention.Linear`), so that a look shows
where they read; in steps of decoding they go on from a matrix for each head, not from all keys and values.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import (
    Bias,
    Dot,
    Fading,
    Features,
    Linear,
    Mask,
    Score,
    attend,
    attend_full,
    causal,
    corrected,
    fading,
    positive,
)
from foveate.attention.masks import causal_part
from foveate.attention.shapes import precise
from foveate.errors import UserError
from foveate.nn.attention import split_heads
from foveate.nn.rotary import Turn

FORGOTTEN = -35.0
"""The logarithm of a share that is nothing beside 1 in single precision."""

BLOCK = 64
"""Places whose mask is read at once."""

REACH = 4
"""Places that the convolutions before a state see, as in the papers."""


@dataclass
class Running:
    """What a layer knows of the places so far: `state`, and the last `inputs` of its convolution if it has one."""

    length: int
    state: Float[Tensor, "R H P V"]
    inputs: Float[Tensor, "R K C"] | None = None

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        """Keep these rows of the batch, in this order."""
        self.state = self.state[rows]
        self.inputs = None if self.inputs is None else self.inputs[rows]

    def repeated(self, rows: int) -> "Running":
        """Returns a state that repeats the only row of this one."""
        state, inputs = (
            None if part is None else part.expand(rows, *part.shape[1:]) for part in (self.state, self.inputs)
        )
        return Running(self.length, state, inputs)  # type: ignore[arg-type]


class RunningLayer(nn.Module, ABC):
    """A layer with a state. A place that may not look at the one before begins anew: the first of a text that stands
    behind another in its row, or behind padding."""

    attends = True
    select = Linear(normalize=False)
    channels = 0
    """Channels of its convolution; 0 where it has none."""

    def __init__(self, heads: int, key_width: int, value_width: int) -> None:
        super().__init__()
        self.heads, self.key_width, self.value_width = heads, key_width, value_width

    def memory(self, source: Float[Tensor, "B S C"], expected: int = 0) -> Running:
        """The state before the first place."""
        rows = len(source)
        state = source.new_zeros(rows, self.heads, self.key_width, self.value_width + self.select.normalize)
        inputs = source.new_zeros(rows, REACH - 1, self.channels) if self.channels else None
        return Running(0, precise(state), inputs)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        past: Running | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`mask` hides later places and those of other texts. `past` is the state, which goes on in place."""
        if source is not None or bias is not None or positions is not None:
            raise UserError(f"{type(self).__name__} reads its own input alone, without biases and added positions")
        begins = None if past is not None and past.length else _begins(mask, x)
        output = self.mix(x, begins, past, rotation)
        if past is not None:
            past.length += x.shape[1]
        return output

    @abstractmethod
    def mix(
        self,
        x: Float[Tensor, "B T C"],
        begins: Bool[Tensor, "B T"] | None,
        past: Running | None,
        rotation: Turn | None,
    ) -> Float[Tensor, "B T C"]:
        """The layer itself. `begins` are the places that begin anew."""

    def attend(
        self,
        q: Float[Tensor, "B H T P"],
        k: Float[Tensor, "B H T P"],
        v: Float[Tensor, "B H T V"],
        log_decay: Float[Tensor, "B H T"] | None,
        past: Running | None,
        score: Score,
    ) -> Float[Tensor, "B T HV"]:
        """Attention to this and all earlier places, those of the state included, which goes on."""
        if log_decay is not None:
            (q, k), score = fading(score.queries(q), score.keys(k), log_decay), Fading()
        mask = causal() if q.shape[2] > 1 else None
        if past is None:
            output = attend(q, k, v, score=score, mask=mask, select=self.select)
        else:
            found = attend_full(q, k, v, score=score, mask=mask, select=self.select, state=past.state)
            output, past.state = found.output, found.state
        return output.transpose(1, 2).flatten(2).to(v.dtype)


class LinearAttention(RunningLayer):
    """Weights in proportion to products of positive features of queries and keys (Katharopoulos et al. 2020,
    https://arxiv.org/abs/2006.16236)."""

    select = Linear()

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads, width // heads, width // heads)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.score = Features(positive)

    def mix(
        self, x: Tensor, begins: Tensor | None, past: Running | None, rotation: Turn | None
    ) -> Float[Tensor, "B T C"]:
        if rotation is not None:
            raise UserError("linear attention has no rotary positions: its features must stay positive")
        q, k, v = (split_heads(layer(x), self.key_width) for layer in (self.query, self.key, self.value))
        decay = None if begins is None else _decays(x.new_zeros(len(x), self.heads, x.shape[1]), begins)
        output: Tensor = self.output(self.attend(q, k, v, decay, past, self.score))
        return output


class Retention(RunningLayer):
    """What was read fades by a fixed share at each place, another one for each head (Sun et al. 2023,
    https://arxiv.org/abs/2307.08621). Rotations of queries and keys are those of the stack's positions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads, width // heads, width // heads)
        self.query, self.key, self.value, self.gate, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(5)
        )

    def mix(
        self, x: Tensor, begins: Tensor | None, past: Running | None, rotation: Turn | None
    ) -> Float[Tensor, "B T C"]:
        q, k, v = (split_heads(layer(x), self.key_width) for layer in (self.query, self.key, self.value))
        if rotation is not None:
            q, k = rotation.turn(q, k)
        shares = 1 - 2.0 ** (-5 - torch.arange(self.heads, device=x.device))
        decay = _decays(shares.log()[:, None].expand(len(x), -1, x.shape[1]), begins)
        found = self.attend(q, k / math.sqrt(self.key_width), v, decay, past, Dot())
        normal = F.rms_norm(found.unflatten(-1, (self.heads, -1)), (self.value_width,), eps=1e-5).flatten(2)
        output: Tensor = self.output(F.silu(self.gate(x)) * normal)
        return output


class GatedDelta(RunningLayer):
    """What a key holds is replaced by its new value, as far as a gate says, and all fades by another gate (Yang et al.
    2024, https://arxiv.org/abs/2412.06464, with the parts of Qwen3-Next)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads, width // heads, width // heads)
        self.channels = 3 * width
        self.query, self.key, self.value, self.gate, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(5)
        )
        self.strength, self.decay = (nn.Linear(width, heads, bias=False) for _ in range(2))
        self.convolution = CausalConvolution(self.channels, bias=False)
        self.log_rate = nn.Parameter(torch.empty(heads).uniform_(0.01, 16).log())
        self.decay_bias = nn.Parameter(_small_steps(heads))
        self.norm = nn.RMSNorm(self.value_width, eps=1e-6)

    def mix(
        self, x: Tensor, begins: Tensor | None, past: Running | None, rotation: Turn | None
    ) -> Float[Tensor, "B T C"]:
        joined = torch.cat([self.query(x), self.key(x), self.value(x)], -1)
        parts = F.silu(self.convolution(joined, begins, past)).chunk(3, -1)
        q, k, v = (split_heads(part, self.key_width) for part in parts)
        q, k = (precise(part) * (precise(part).square().sum(-1, keepdim=True) + 1e-6).rsqrt() for part in (q, k))
        if rotation is not None:
            q, k = rotation.turn(q, k)
        strength = precise(self.strength(x)).sigmoid().mT
        rates = -self.log_rate.exp() * F.softplus(precise(self.decay(x)) + self.decay_bias)
        decay = _decays(rates.mT, begins)
        written = corrected(k, precise(v), strength, decay, None if past is None else past.state)
        found = self.attend(q / math.sqrt(self.key_width), k, written, decay, past, Dot())
        normal = self.norm(found.to(x.dtype).unflatten(-1, (self.heads, -1))).flatten(2)
        output: Tensor = self.output(normal * F.silu(self.gate(x)))
        return output


class Mamba2(RunningLayer):
    """A state-space layer whose states are read by one query, and written by one key, for all heads (Dao and Gu 2024,
    https://arxiv.org/abs/2405.21060): attention with weights that fade as the input says."""

    def __init__(self, width: int, heads: int, state_width: int = 64, expand: int = 2) -> None:
        inner = expand * width
        super().__init__(heads, state_width, inner // heads)
        self.channels = inner + 2 * state_width
        self.input = nn.Linear(width, self.channels, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.step = nn.Linear(width, heads, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.convolution = CausalConvolution(self.channels, bias=True)
        self.step_bias = nn.Parameter(_small_steps(heads))
        self.log_rate = nn.Parameter(torch.arange(1.0, heads + 1).log())
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = nn.RMSNorm(inner, eps=1e-5)

    def mix(
        self, x: Tensor, begins: Tensor | None, past: Running | None, rotation: Turn | None
    ) -> Float[Tensor, "B T C"]:
        if rotation is not None:
            raise UserError("Mamba-2 has no rotary positions: its state knows the order")
        mixed = F.silu(self.convolution(self.input(x), begins, past))
        inner, keys, queries = mixed.split([self.channels - 2 * self.key_width, self.key_width, self.key_width], -1)
        heads = split_heads(inner, self.value_width)
        steps = F.softplus(precise(self.step(x)) + self.step_bias).mT
        decay = _decays(-self.log_rate.exp()[:, None] * steps, begins)
        q, k = (part[:, None].expand(-1, self.heads, -1, -1) for part in (queries, keys))
        found = self.attend(q, k, heads * steps[..., None], decay, past, Dot())
        found = found + (heads * self.skip[:, None, None]).transpose(1, 2).flatten(2)
        output: Tensor = self.output(self.norm((found * F.silu(self.gate(x))).to(x.dtype)))
        return output


class CausalConvolution(nn.Module):
    """Each channel by itself, over the last places."""

    def __init__(self, channels: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(REACH, channels).uniform_(-(REACH**-0.5), REACH**-0.5))
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def forward(
        self, x: Float[Tensor, "B T C"], begins: Bool[Tensor, "B T"] | None, past: Running | None
    ) -> Float[Tensor, "B T C"]:
        """No place sees what stands before the last one that `begins`. The `past` keeps the last inputs."""
        if past is not None and past.inputs is not None:
            known = torch.cat([past.inputs.to(x.dtype), x], 1)
            past.inputs = known[:, -(REACH - 1) :]
        else:
            known = F.pad(x, (0, 0, REACH - 1, 0))
        texts = None if begins is None else F.pad(begins.cumsum(1), (REACH - 1, 0), value=-1)
        total = x * self.weight[-1]
        for back in range(1, REACH):
            span = slice(REACH - 1 - back, known.shape[1] - back)
            earlier = known[:, span]
            if texts is not None:
                earlier = earlier * (texts[:, span] == texts[:, REACH - 1 :])[..., None]
            total = total + earlier * self.weight[-1 - back]
        return total if self.bias is None else total + self.bias


def running_layer(name: str, width: int, heads: int, **of_attention: Any) -> RunningLayer:
    """The layer that configs call by this name. It has no parts `of_attention`, as a stack gives them."""
    if width % heads:
        raise UserError(f"width {width} is not a multiple of {heads} heads")
    return LAYERS[name](width, heads)


LAYERS: dict[str, Callable[[int, int], RunningLayer]] = {
    "linear": LinearAttention,
    "retention": Retention,
    "gated-delta": GatedDelta,
    "mamba-2": Mamba2,
}
"""By the names that configs have for them: from the width and the number of heads."""


def _small_steps(heads: int) -> Tensor:
    """Biases whose softplus is from 0.001 to 0.1, evenly in logarithms."""
    steps = torch.exp(torch.rand(heads) * math.log(100) + math.log(0.001))
    return steps + torch.log(-torch.expm1(-steps))


def _decays(log_decay: Float[Tensor, "B H T"], begins: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B H T"]:
    return log_decay if begins is None else log_decay.masked_fill(begins[:, None], FORGOTTEN)


def _begins(mask: Mask | Tensor | None, x: Float[Tensor, "B T C"]) -> Bool[Tensor, "B T"] | None:
    """The places that may not look at the one before, but at themselves, as padding may not; None if there are none."""
    length = x.shape[1]
    if length == 1:
        return None
    steps, others = causal_part(mask if isinstance(mask, Mask) else None)
    if steps is None:
        raise UserError("a layer with a state reads from left to right: it needs a causal mask")
    if others is None:
        return None
    found = []
    for start in range(1, length, BLOCK):
        rows = range(start, min(start + BLOCK, length))
        seen = others.block(rows, range(rows.start - 1, rows.stop), 2, x.device)
        seen = seen.expand(*seen.shape[:-2], len(rows), len(rows) + 1)
        before, own = (seen.diagonal(offset, -2, -1) for offset in range(2))
        anew = own & ~before
        found.append(anew[:, 0] if anew.ndim == 3 else anew)
    return F.pad(torch.cat(found, -1).expand(len(x), -1), (1, 0), value=False)
