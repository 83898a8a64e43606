"""The parallel plan: the classes of layers whose weights are gathered and freed together.

Each block of a deep stack is a unit: only the weights of the current and the next block are whole at a time. All other
layers (embeddings, output, recurrent layers) form one unit, which also keeps tied weights together.
"""

from torch import nn

from foveate.nn import DecoderBlock, GatedConvolution, TransformerBlock

UNITS: tuple[type[nn.Module], ...] = (TransformerBlock, DecoderBlock, GatedConvolution)


def units(model: nn.Module) -> list[nn.Module]:
    """The units of `model` in order, without the model itself, which is the last unit."""
    return [module for module in model.modules() if isinstance(module, UNITS)]
