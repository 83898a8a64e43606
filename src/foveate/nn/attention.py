"""Multi-head attention: self, cross, masked, with any widths, on the whole input or on a slice of it for each head."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, ScaledDot, Score, attend
from foveate.errors import UserError
from foveate.nn.beam_sources import BeamSources


class MultiHeadAttention(nn.Module):
    """H heads side by side (Vaswani et al. 2017): each projects queries, keys and values and attends; the heads,
    concatenated, are projected once more.

    All widths are free: of the queries' input, of the source that gives keys and values, of a head's keys and values,
    and of the output. With `split`, a head sees only its own slice of the inputs, which must divide by `heads`.
    """

    kept: torch.dtype | None = None
    """The type of the keys and values in a `memory`, and of attention to it, if not that of the weights."""

    def __init__(
        self,
        width: int,
        heads: int,
        source_width: int | None = None,
        head_width: int | None = None,
        value_width: int | None = None,
        output_width: int | None = None,
        score: Score | None = None,
        dropout: float = 0.0,
        split: bool = False,
    ) -> None:
        super().__init__()
        source_width = width if source_width is None else source_width
        if head_width is None and width % heads:
            raise UserError(f"width {width} does not divide into {heads} heads: make it a multiple of them")
        self.head_width = width // heads if head_width is None else head_width
        self.value_width = self.head_width if value_width is None else value_width
        project = _SlicedLinear if split else _linear
        self.query = project(width, heads, self.head_width)
        self.key = project(source_width, heads, self.head_width)
        self.value = project(source_width, heads, self.value_width)
        self.output = nn.Linear(heads * self.value_width, width if output_width is None else output_width)
        self.score = ScaledDot() if score is None else score
        self.dropout = dropout

    def memory(self, source: Float[Tensor, "B S E"], expected: int = 0) -> Memory:
        """The heads' keys and values of a source, to attend to more than once or to extend, to `expected` of them."""
        # Dense, each head for itself, since they are read again and again.
        keys, values = (part.contiguous().to(self.kept or part.dtype) for part in self._keys_values(source))
        if keys.device.type == "cpu" and keys.dtype == torch.float32:
            keys = keys.mT.contiguous().mT  # as products with few queries read them
        return Memory(keys, values, self.score, expected)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Float[Tensor, "B S E"] | Memory | None = None,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        past: Memory | None = None,
        beams: BeamSources | None = None,
    ) -> Float[Tensor, "B T O"]:
        """Attend from x to a source or a memory of it; to x itself if there is none (self-attention).

        With `beams`, who say which row of the source each row of x reads, the source may have fewer rows.
        Self-attention in steps has a `past`: the keys and values of x are added to it, and x attends to all of them.
        """
        if source is not None:
            memory = source if isinstance(source, Memory) else Memory(*self._keys_values(source), self.score)
            queries = self.query(x) if beams is None else beams.gather(self.query(x))
            return self._attended(heads_of(queries, self.head_width), memory, mask, bias, beams)
        queries, keys, values = self._all_of(x)
        if past is None:
            past = Memory(keys, values, self.score)
        else:
            past.append(keys, values)
        return self._attended(queries, past, mask, bias)

    def _attended(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
        beams: BeamSources | None = None,
    ) -> Tensor:
        given = queries.dtype
        if self.kept is not None:
            queries = queries.to(memory.values.dtype)
        dropout = self.dropout if self.training else 0.0
        output = attend(queries, memory, mask=mask, bias=bias, dropout=dropout).transpose(1, 2).flatten(2)
        output = output if self.kept is None else output.to(given)
        return self.output(output if beams is None else beams.scatter(output))

    def _all_of(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one input."""
        return heads_of(self.query(x), self.head_width), *self._keys_values(x)

    def _keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return heads_of(self.key(source), self.head_width), heads_of(self.value(source), self.value_width)


class UnequalHeads(nn.Module):
    """Heads of different widths, concatenated and projected by one matrix of (sum of widths) x C."""

    def __init__(self, width: int, head_widths: Sequence[int], source_width: int | None = None) -> None:
        super().__init__()
        heads = [
            MultiHeadAttention(width, 1, source_width, head_width=head_width, output_width=width)
            for head_width in head_widths
        ]
        # The sum of each head's own projection is the projection of their concatenation; one bias is enough.
        for head in heads[1:]:
            head.output.register_parameter("bias", None)
        self.heads = nn.ModuleList(heads)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Float[Tensor, "B S E"] | None = None,
        mask: Mask | Tensor | None = None,
    ) -> Float[Tensor, "B T C"]:
        return torch.stack([head(x, source, mask) for head in self.heads]).sum(0)


def _linear(width: int, heads: int, head_width: int) -> nn.Linear:
    return nn.Linear(width, heads * head_width)


class _SlicedLinear(nn.Module):
    """Each head's own projection of its own slice of the input: a block-diagonal linear map."""

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()
        if width % heads:
            raise UserError(f"an input of width {width} does not divide into slices for {heads} heads")
        bound = math.sqrt(heads / width)
        self.weight = nn.Parameter(torch.empty(heads, width // heads, head_width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(heads * head_width))

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T P"]:
        slices = x.unflatten(-1, (self.weight.shape[0], -1))
        return torch.einsum("bthc,hcd->bthd", slices, self.weight).flatten(2) + self.bias


def heads_of(x: Float[Tensor, "B T P"], head_width: int) -> Float[Tensor, "B H T D"]:
    """The heads' vectors of what was projected for all heads together."""
    return x.unflatten(-1, (-1, head_width)).transpose(1, 2)
