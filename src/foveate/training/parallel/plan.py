"""The parallel plan: which layers, by their class, have their weights gathered and let go together.

Each block of a deep stack is a unit of its own: only the weights of the block that computes, and those of the one to
come, are whole at a time. What is in no such block (embeddings, output, recurrent layers) forms one unit together,
which also keeps tied weights in one place.
"""

from torch import nn

from foveate.nn import DecoderBlock, EncoderBlock, GatedConvolution

UNITS: tuple[type[nn.Module], ...] = (EncoderBlock, DecoderBlock, GatedConvolution)


def units(model: nn.Module) -> list[nn.Module]:
    """The units of `model`, in the order in which they were built; not the model itself, which is the last one."""
    return [module for module in model.modules() if isinstance(module, UNITS)]
