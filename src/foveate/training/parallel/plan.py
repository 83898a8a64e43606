"""The parallel plan: what is known of layers, by class, to distribute the models that consist of them.

`units` are the layers whose weights are gathered and freed together (FSDP2). Each block of a deep stack is a unit: only
the weights of the current and the next block are whole at a time. All other layers (embeddings, output, recurrent
layers) form one unit, which also keeps tied weights together.

`SPLITS` are the layers that processes split among them (tensor parallelism, Shoeybi et al. 2019,
https://arxiv.org/abs/1909.08053): each process has some of the heads of attention and some of the hidden units of a
feed-forward layer. `vocabulary` are the tables of words and the output layers, whose rows are split. `sequences` are
the blocks between which each process has a slice of the sequence. All other layers (positions, norms elsewhere) are
whole in each process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import nn

from foveate.attention import BucketedPosition, RelativePosition
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    FeedForward,
    GatedConvolution,
    GatedFeedForward,
    MultiHeadAttention,
    RelativeAttention,
    Residual,
    TransformerBlock,
    TransformerStack,
)

UNITS: tuple[type[nn.Module], ...] = (TransformerBlock, DecoderBlock, GatedConvolution)


def units(model: nn.Module) -> list[nn.Module]:
    """The units of `model` in order, without the model itself, which is the last unit."""
    return [module for module in model.modules() if isinstance(module, UNITS)]


@dataclass(frozen=True)
class Split:
    """The way in which processes split a layer."""

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
    BucketedPosition: Split(heads=("table",)),
}

TABLES = ("embedding", "source_embedding", "target_embedding")
OUTPUTS = ("output", "head.output")


def vocabulary(model: nn.Module) -> tuple[list[str], list[str]]:
    """The names of the tables of words and of the output layers of a model that consists of split layers."""
    known = dict(model.named_modules())
    tables = [name for name in TABLES if isinstance(known.get(name), nn.Embedding)]
    return tables, [name for name in OUTPUTS if isinstance(known.get(name), nn.Linear)]


def sequences(model: nn.Module) -> Iterator[tuple[list[str], str]]:
    """Blocks of split layers that follow one another without anything between them, and the norm after the last one,
    by name."""
    for name, layer in model.named_modules():
        if isinstance(layer, TransformerStack):
            blocks, last = f"{name}.blocks", f"{name}.norm"
        elif isinstance(layer, DecoderStack) or (name == "encoder" and isinstance(layer, nn.ModuleList)):
            blocks, last = name, f"{name}_norm"
        else:
            continue
        found = list(model.get_submodule(blocks).named_children())
        if found and all(_is_split(block) for _, block in found):
            yield [f"{blocks}.{number}" for number, _ in found], last


def _is_split(block: nn.Module) -> bool:
    """Returns whether all layers of a block, beside its residual connections, are split."""
    if not isinstance(block, TransformerBlock | DecoderBlock):
        return False
    return all(type(layer) in SPLITS for layer in block.children() if not isinstance(layer, Residual))


def residuals(model: nn.Module, blocks: list[str]) -> Iterator[str]:
    """The names of the residual connections of blocks."""
    for block in blocks:
        for name, layer in model.get_submodule(block).named_children():
            if isinstance(layer, Residual):
                yield f"{block}.{name}"


def sliced_layers(model: nn.Module) -> Iterator[str]:
    """The names of the norms and of the dropout that act on slices of the sequence."""
    for blocks, last in sequences(model):
        for residual in residuals(model, blocks):
            yield from (f"{residual}.{name}" for name, _ in model.get_submodule(residual).named_children())
        yield last
