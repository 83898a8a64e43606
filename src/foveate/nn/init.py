"""The random weights that Transformers begin with."""

from torch import nn


def initialize(model: nn.Module, width: int) -> None:
    """Draw linear layers evenly by their two widths (Glorot and Bengio 2010), embeddings with a norm of about 1.

    Embeddings are multiplied by the root of `width` where they are read, as in Vaswani et al. 2017, section 3.4.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=width**-0.5)
