"""The model of the benchmarks of looking: a GPT-2 of transformers with random weights."""

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

TOKENS, LAYERS, HEADS, WIDTH = 4096, 12, 12, 768

Bound = tuple[str, float, float]
"""What was measured, how much it is, and how much it may be at most."""


def gpt2(tokens: int = TOKENS, layers: int = LAYERS, implementation: str = "sdpa") -> tuple[GPT2LMHeadModel, Tensor]:
    """The model, and a text for it."""
    torch.manual_seed(0)
    config = GPT2Config(n_positions=tokens, n_layer=layers, n_head=HEADS, n_embd=WIDTH)
    model = GPT2LMHeadModel._from_config(config, attn_implementation=implementation).eval()
    return model, torch.randint(config.vocab_size, (1, tokens))
