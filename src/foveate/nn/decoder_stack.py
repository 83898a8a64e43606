"""The decoder blocks of a Transformer that writes: for a whole target, or step by step."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, Memory, RelativePosition, RowGroups, causal, padding, window
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.blocks import DecoderBlock
from foveate.nn.feedforward import FeedForward
from foveate.nn.residual import Residual
from foveate.nn.rotary import Turn


@runtime_checkable
class DecoderSizes(Protocol):
    """The fields of a model's config that decide its decoder blocks."""

    width: int
    heads: int
    feedforward: int
    norm: Literal["post", "pre"]

    @property
    def activation(self) -> str: ...

    dropout: float
    attention_dropout: float
    activation_dropout: float


def decoder_block(sizes: DecoderSizes, attention: Callable[..., MultiHeadAttention] | None = None) -> DecoderBlock:
    """A block of these sizes, whose source is as wide as the model; `attention` makes both of its attention layers, the
    second one `to_source`."""
    usual = partial(MultiHeadAttention, sizes.width, sizes.heads, dropout=sizes.attention_dropout)
    return DecoderBlock(
        attention() if attention else usual(),
        attention(to_source=True) if attention else usual(),
        FeedForward(sizes.width, sizes.feedforward, sizes.activation, sizes.activation_dropout),
        partial(Residual, sizes.width, sizes.norm, sizes.dropout),
    )


@dataclass
class DecoderStackState:
    """The keys and values of each decoder block: of the tokens so far for each row, and of each source."""

    past: list[Memory]
    source: list[Memory]
    source_lengths: Int[Tensor, "E"]
    groups: RowGroups | None = None
    """Which rows share a source; None where each has its own. Shared sources are not copied when rows are reordered."""

    @property
    def steps(self) -> int:
        """Number of tokens so far."""
        return self.past[0].length

    def share(self, groups: RowGroups) -> None:
        """Rows of one group attend to one row of the source."""
        self.groups = groups
        for memory in self.source:
            memory.groups = groups

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        device = self.source_lengths.device
        own = rows.to(device)
        for memory in self.past:
            memory.reorder(own)
        sources: Int[Tensor, "K"] | None = own
        if self.groups is not None:
            groups, sources = self.groups.select(rows)
            self.share(groups)
        if sources is not None:
            sources = sources.to(device)
            for memory in self.source:
                memory.reorder(sources)
            self.source_lengths = self.source_lengths[sources]


class DecoderStack(nn.ModuleList):
    """Blocks of causal self-attention, attention to a source and a feed-forward layer (Vaswani et al. 2017).

    With a `window`, self-attention looks at most `window` positions back.
    """

    def __init__(self, blocks: Iterable[DecoderBlock] = (), window: int | None = None) -> None:
        super().__init__(blocks)
        self.window = window

    def __iter__(self) -> Iterator[DecoderBlock]:
        return super().__iter__()  # type: ignore[return-value]

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Float[Tensor, "B S E"],
        source_mask: Mask | None = None,
        distances: RelativePosition | None = None,
        past: list[Memory] | None = None,
        rotation: Turn | None = None,
    ) -> Float[Tensor, "B T C"]:
        """A whole target x. `distances` is the bias of relative positions for self-attention, and `rotation` turns its
        queries and keys. `past` are memories of nothing, to which the blocks' keys and values of x are added."""
        mask = causal() if self.window is None else causal() & window(self.window)
        for number, block in enumerate(self):
            own = None if past is None else past[number]
            x = block(x, source, mask=mask, source_mask=source_mask, past=own, bias=distances, rotation=rotation)
        return x

    def start(
        self,
        source: Float[Tensor, "B S E"],
        source_lengths: Int[Tensor, "B"],
        expected: int,
        width: int | None = None,
    ) -> DecoderStackState:
        """The state before the first token. Memory for `expected` tokens is allocated at once. `width` is that of the
        tokens, where the source has another."""
        nothing = source[:, :0] if width is None else source.new_empty(len(source), 0, width)
        return DecoderStackState(
            past=[block.self.memory(nothing, expected) for block in self],
            source=[block.cross.memory(source) for block in self],
            source_lengths=source_lengths,
        )

    def step(
        self,
        x: Float[Tensor, "R 1 C"],
        state: DecoderStackState,
        distances: RelativePosition | None = None,
        rotation: Turn | None = None,
    ) -> Float[Tensor, "R 1 C"]:
        """One more token of each row."""
        source_mask, bias = padding(state.source_lengths), distances.with_start(state.steps) if distances else None
        mask = None if self.window is None else window(self.window, state.steps)
        for block, past, source in zip(self, state.past, state.source, strict=True):
            x = block(x, source, mask=mask, source_mask=source_mask, past=past, bias=bias, rotation=rotation)
        return x
