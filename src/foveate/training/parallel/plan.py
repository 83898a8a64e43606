"""The parallel plan: what is known of layers, by class, to distribute the models that consist of them.

`units` are the layers whose weights are gathered and freed together (FSDP2). Each block of a deep stack is a unit: only
the weights of the current and the next block are whole at a time. All other layers (embeddings, output, recurrent
layers) form one unit, which also keeps tied weights together.

`SPLITS` are the layers that processes split among them (tensor parallelism, Shoeybi et al. 2019,
https://arxiv.org/abs/1909.08053): each process has some of the heads of attention and some of the hidden units of a
feed-forward layer. The other layers (norms, positions) are whole in each process. `vocabulary` are the tables of words
and the output layers, whose rows are split.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from foveate.attention import RelativePosition
from foveate.nn import (
    DecoderBlock,
    FeedForward,
    GatedConvolution,
    GatedFeedForward,
    MultiHeadAttention,
    RelativeAttention,
    TransformerBlock,
)

UNITS: tuple[type[nn.Module], ...] = (TransformerBlock, DecoderBlock, GatedConvolution)


def units(model: nn.Module) -> list[nn.Module]:
    """The units of `model` in order, without the model itself, which is the last unit."""
    return [module for module in model.modules() if isinstance(module, UNITS)]


@dataclass(frozen=True)
class Split:
    """How processes split a layer."""

    columns: tuple[str, ...] = ()
    """Linear layers of which each process computes a part of the output."""
    rows: str | None = None
    """The linear layer of which each process reads a part of the input. The outputs are summed."""
    heads: tuple[str, ...] = ()
    """Parameters with a row for each head."""


_ATTENTION = ("query", "key", "value")

SPLITS: Mapping[type[nn.Module], Split] = {
    MultiHeadAttention: Split(_ATTENTION, "output"),
    RelativeAttention: Split((*_ATTENTION, "distance"), "output", ("content_offset", "distance_offset")),
    FeedForward: Split(("inner",), "outer"),
    GatedFeedForward: Split(("inner", "gate"), "outer"),
    RelativePosition: Split(heads=("table",)),
}

TABLES = ("embedding", "source_embedding", "target_embedding")
OUTPUTS = ("output", "head.output")


def vocabulary(model: nn.Module) -> tuple[list[str], list[str]]:
    """The names of the tables of words and of the output layers of a model that consists of split layers."""
    known = dict(model.named_modules())
    tables = [name for name in TABLES if isinstance(known.get(name), nn.Embedding)]
    return tables, [name for name in OUTPUTS if isinstance(known.get(name), nn.Linear)]
