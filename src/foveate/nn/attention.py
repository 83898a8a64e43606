"""Multi-head attention: self-attention and cross-attention with any widths."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, ScaledDot, Score, Selection, Soft, attend
from foveate.attention.biases import as_bias
from foveate.attention.masks import as_mask
from foveate.errors import UserError
from foveate.nn.norms import Norm
from foveate.nn.rotary import Turn
from foveate.nn.unequal_heads import UnequalOutput, UnequalProjection, widest


class MultiHeadAttention(nn.Module):
    """H heads in parallel (Vaswani et al. 2017). Each projects queries, keys and values and attends; their outputs are
    concatenated and projected.

    `width` is the width of the queries' input, `source_width` that of the input of keys and values; `head_width` and
    `value_width` are the widths of a head's keys and values. With `split`, each head gets its own slice of the inputs,
    whose width must be a multiple of `heads`. With `head_widths`, each head has its own width. With fewer
    `key_value_heads`, groups of consecutive heads share keys and values (grouped-query attention, Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245). Without `key_bias`, only the keys have no bias; `output_bias` is that of the
    output, by default `bias`. `norm` normalizes projected queries and keys, each head by itself or, with `norm_across`,
    all heads together. `select` makes the output of scores and values, by default by the softmax. A `head_gate` lets
    the input say how much of each head's output counts (Qiu et al. 2025, https://arxiv.org/abs/2505.06708).
    """

    attends = True

    group = 1
    """Heads of queries for each head of keys and values."""

    memory_dtype: torch.dtype | None = None
    """The type of the keys and values in a `memory` and of attention to it; None for that of the weights."""

    memory_kind = Memory
    """The class of what `memory` returns."""

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
        key_value_heads: int | None = None,
        bias: bool = True,
        head_widths: Sequence[int] | None = None,
        key_bias: bool = True,
        output_bias: bool | None = None,
        norm: Norm | None = None,
        norm_across: bool = False,
        select: Selection | None = None,
        head_gate: bool = False,
    ) -> None:
        super().__init__()
        source_width = width if source_width is None else source_width
        key_value_heads = heads if key_value_heads is None else key_value_heads
        if heads % key_value_heads:
            raise UserError(f"{heads} heads are not a multiple of {key_value_heads} key_value_heads")
        if head_widths is not None:
            if score is not None or split or key_value_heads != heads or head_width is not None:
                raise UserError("head_widths work with a scaled dot product, without split, shared or equal heads")
            head_width = value_width = widest(head_widths, heads)
        if head_width is None and width % heads:
            raise UserError(f"width {width} is not a multiple of {heads} heads")
        self.head_width = width // heads if head_width is None else head_width
        self.value_width = self.head_width if value_width is None else value_width
        self.group = heads // key_value_heads
        project = head_projection(split)
        self.query: nn.Module = project(width, heads, self.head_width, bias)
        self.key: nn.Module = project(source_width, key_value_heads, self.head_width, bias and key_bias)
        self.value: nn.Module = project(source_width, key_value_heads, self.value_width, bias)
        output_width = width if output_width is None else output_width
        self.output: nn.Module = nn.Linear(
            heads * self.value_width, output_width, bias if output_bias is None else output_bias
        )
        self.query_norm, self.key_norm = (
            None if norm is None else norm(self.head_width * (count if norm_across else 1))
            for count in (heads, key_value_heads)
        )
        self.norm_across = norm_across
        self.gate = nn.Linear(width, heads, bias) if head_gate else None
        if head_widths is not None:
            self.query = UnequalProjection(width, head_widths, bias, rescale=True)
            self.key, self.value = (UnequalProjection(source_width, head_widths, bias) for _ in range(2))
            self.output = UnequalOutput(head_widths, output_width, bias)
        self.score = ScaledDot() if score is None else score
        self.select = Soft() if select is None else select
        self.dropout = dropout

    def memory(self, source: Float[Tensor, "B S E"], expected: int = 0) -> Memory:
        """The keys and values of a source, for several calls. A memory that grows has `expected` keys in the end."""
        # Dense for each head, because they are read many times.
        parts = map(self._shared, self._keys_values(source))
        keys, values = (part.contiguous().to(self.memory_dtype or part.dtype) for part in parts)
        if keys.device.type == "cpu" and keys.dtype == torch.float32:
            keys = keys.mT.contiguous().mT  # the fastest layout for products with few queries
        return self._projected(self.memory_kind(keys, values, self.score, expected))

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Float[Tensor, "B S E"] | Memory | None = None,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        past: Memory | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
        source_positions: Float[Tensor, "... S E"] | None = None,
    ) -> Float[Tensor, "B T O"]:
        """Attend from x to a source or a memory of it; without a source, to x itself (self-attention).

        `past` is for self-attention step by step: the keys and values of x are appended to it, and x attends to all of
        them. The `rotation` of x's positions turns queries
        and keys of self-attention. `positions` are added to x and `source_positions` to the source where they become
        queries and keys, and not where they become values (Carion et al. 2020).
        """
        if source is not None:
            if not isinstance(source, Memory):
                source = self._memory(*self._keys_values(source, source_positions))
            queries = source.gather(self.query(_sum(x, positions)))
            return self._finish(x, self._attend(self._heads(queries, self.query_norm), source, mask, bias))
        queries, keys, values = self._project(x, positions)
        if rotation is not None:
            queries, keys = rotation.turn(queries, keys)
        if past is None:
            past = self._memory(keys, values)
        else:
            past.append(self._shared(keys), self._shared(values))
        return self._finish(x, self._attend(queries, past, mask, bias))

    def _attend(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
    ) -> Float[Tensor, "B T HV"]:
        """The outputs of all heads side by side."""
        dtype = queries.dtype
        if self.memory_dtype is not None:
            queries = queries.to(memory.values.dtype)
        dropout = self.dropout if self.training else 0.0
        queries, mask, bias = self._grouped(queries, mask, bias)
        output = attend(queries, memory, mask=mask, bias=bias, select=self.select, dropout=dropout)
        output = (output if self.group == 1 else output.flatten(1, 2)).transpose(1, 2).flatten(2)
        output = output if self.memory_dtype is None else output.to(dtype)
        return memory.scatter(output)

    def _grouped(
        self, queries: Float[Tensor, "B H T D"], mask: Mask | Tensor | None, bias: Bias | Tensor | None
    ) -> tuple[Float[Tensor, "B ... T D"], Mask | Tensor | None, Bias | Tensor | None]:
        """Queries, their mask and their bias, in groups where heads share keys."""
        if self.group == 1:
            return queries, mask, bias
        return in_groups(queries.unflatten(1, (-1, self.group)), mask, bias)

    def _finish(self, x: Float[Tensor, "B T C"], heads: Float[Tensor, "B T HV"]) -> Float[Tensor, "B T O"]:
        """The output of the layer."""
        if self.gate is not None:
            heads = (heads.unflatten(-1, (-1, self.value_width)) * self.gate(x).sigmoid()[..., None]).flatten(2)
        output: Tensor = self.output(heads)
        return output

    def _memory(self, keys: Tensor, values: Tensor) -> Memory:
        return self._projected(Memory(self._shared(keys), self._shared(values), self.score))

    def _projected(self, memory: Memory) -> Memory:
        memory.projected = True
        return memory

    def _shared(self, x: Float[Tensor, "B G S D"]) -> Float[Tensor, "B G *one S D"]:
        """Keys or values with a dimension of 1 for the heads of a group."""
        return x if self.group == 1 else x.unsqueeze(2)

    def _project(self, x: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        return self._heads(self.query(_sum(x, positions)), self.query_norm), *self._keys_values(x, positions)

    def _keys_values(self, source: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        keys, values = self.key(_sum(source, positions)), self.value(source)
        return self._heads(keys, self.key_norm), split_heads(values, self.value_width)

    def _heads(self, projected: Float[Tensor, "B T P"], norm: nn.Module | None) -> Float[Tensor, "B H T D"]:
        """The heads' queries or keys, normalized where they have a norm."""
        if norm is None:
            return split_heads(projected, self.head_width)
        if self.norm_across:
            return split_heads(norm(projected), self.head_width)
        return norm(split_heads(projected, self.head_width))


def in_groups(
    queries: Float[Tensor, "B G ... T D"], mask: Mask | Tensor | None, bias: Bias | Tensor | None
) -> tuple[Float[Tensor, "B G ... T D"], Mask | None, Bias | None]:
    """Queries of heads that are in groups, with their mask and bias made for them."""
    sizes = queries.shape[1:-2]
    return (
        queries,
        None if mask is None else as_mask(mask).in_groups(*sizes),
        None if bias is None else as_bias(bias).in_groups(*sizes),
    )


def _sum(x: Tensor, positions: Tensor | None) -> Tensor:
    return x if positions is None else x + positions


def head_projection(split: bool) -> Callable[[int, int, int, bool], nn.Module]:
    """Returns the function that makes a projection from (width, heads, head width, bias): of each head's own slice, or
    of the whole."""
    return _SlicedLinear if split else _linear


def _linear(width: int, heads: int, head_width: int, bias: bool) -> nn.Linear:
    return nn.Linear(width, heads * head_width, bias)


class _SlicedLinear(nn.Module):
    """A projection of a slice of the input for each head: a block-diagonal linear map."""

    def __init__(self, width: int, heads: int, head_width: int, bias: bool) -> None:
        super().__init__()
        if width % heads:
            raise UserError(
                f"an input of width {width} cannot be split into slices for {heads} heads: make it a multiple"
            )
        bound = math.sqrt(heads / width)
        self.weight = nn.Parameter(torch.empty(heads, width // heads, head_width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(heads * head_width)) if bias else None

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T P"]:
        slices = x.unflatten(-1, (self.weight.shape[0], -1))
        projected = torch.einsum("bthc,hcd->bthd", slices, self.weight).flatten(2)
        return projected if self.bias is None else projected + self.bias


def split_heads(x: Float[Tensor, "B T P"], head_width: int) -> Float[Tensor, "B H T D"]:
    """Split a projection for all heads into heads."""
    return x.unflatten(-1, (-1, head_width)).transpose(1, 2)
