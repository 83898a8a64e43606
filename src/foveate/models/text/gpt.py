"""GPT, the decoder of the Transformer alone: GPT-1 (Radford et al. 2018) and GPT-2 (Radford et al. 2019,
https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, Memory, causal
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, EncoderBlock, FeedForward, LearnedPositions, MultiHeadAttention, initialize, tie_output

INITIAL = 0.02
"""Standard deviation of the initial embeddings and positions, as in GPT-2."""


@dataclass
class GPTConfig:
    """The sizes of a GPT."""

    vocabulary: FromData
    """Size of the vocabulary."""
    conditions: FromData = 1
    """Number of conditions; condition 0 means none."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual sum (GPT-1), or before each layer (GPT-2)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu-tanh"
    """Activation function of the feed-forward layers."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float = 0.0
    """Share of the inner activations of the feed-forward layers that is dropped in training."""
    max_length: int = 1024
    """Positions that are learned."""
    condition: Literal["added"] | None = None
    """Add the vector of a condition to that of each token; None for a model without conditions."""
    condition_dropout: float = 0.1
    """Share of training passages with condition 0 instead, so that the model also works without a condition."""


class GPT(nn.Module):
    """Predicts the next token of a text from all tokens before it."""

    blocks: Iterable[EncoderBlock]

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = LearnedPositions(config.max_length, config.width)
        self.condition = nn.Embedding(config.conditions, config.width) if config.condition else None
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))  # type: ignore[assignment]
        # Post-norm blocks end with a norm of their own.
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        initialize(self, config.width)
        for table in (self.embedding.weight, self.positions.table):
            nn.init.normal_(table, std=INITIAL)
        tie_output(self.output, self.embedding)

    def forward(
        self,
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
        condition: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token. Padding behind a target's end changes nothing before it."""
        if self.training and condition is not None:
            hidden = torch.rand(condition.shape, device=condition.device) < self.config.condition_dropout
            condition = condition.masked_fill(hidden, 0)
        x = self.embedding(target) + self.positions(target.shape[1], device=target.device)
        x = self.dropout(x + self._vectors(condition, target))
        for block in self.blocks:
            x = block(x, mask=causal())
        return Output(self.output(self.norm(x)))

    def start(
        self,
        prompt: Int[Tensor, "B S"],
        prompt_lengths: Int[Tensor, "B"],
        condition: Int[Tensor, "B"] | None = None,
    ) -> "GPTState":
        """Read prompts, each with its START. The first step, whose token is START, continues from there.

        Prompts are aligned at their ends, so that the next tokens of all rows are in one column.
        """
        length = prompt.shape[1]
        self.positions(length)  # refuses what is too long
        padding = length - prompt_lengths
        columns = torch.arange(length, device=prompt.device) - padding[:, None]
        aligned = prompt.gather(1, columns.clamp(min=0))
        past = [
            block.self.memory(self.embedding.weight.new_empty(len(prompt), 0, self.config.width))
            for block in self.blocks
        ]
        state = GPTState(past, padding, self._vectors(condition, prompt))
        mask = causal() & state.mask(length)
        state.ahead = self._extend(aligned, columns.clamp(min=0), state, mask)[:, -1]
        return state

    def step(self, tokens: Int[Tensor, "R"], state: "GPTState") -> Float[Tensor, "R N"]:
        if state.ahead is not None:
            logits, state.ahead = state.ahead, None
            return self.output(self.norm(logits))
        column = state.past[0].length
        self.positions(1, start=column)
        places = (column - state.padding)[:, None]
        return self.output(self.norm(self._extend(tokens[:, None], places, state, state.mask(column + 1))[:, 0]))

    def _extend(
        self, tokens: Int[Tensor, "R T"], places: Int[Tensor, "R T"], state: "GPTState", mask: Mask | Tensor
    ) -> Float[Tensor, "R T C"]:
        """The hidden states of further tokens at these positions; adds their keys and values to the past."""
        x = self.dropout(self.embedding(tokens) + self.positions.table[places] + state.condition)
        for block, past in zip(self.blocks, state.past, strict=True):
            x = block(x, mask=mask, past=past)
        return x

    def _vectors(self, condition: Int[Tensor, "B"] | None, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B 1 C"]:
        """The vector of each text's condition; zeros in a model without conditions."""
        if self.condition is None:
            return self.embedding.weight.new_zeros(len(tokens), 1, self.config.width)
        condition = tokens.new_zeros(len(tokens)) if condition is None else condition
        return self.condition(condition)[:, None]


@dataclass
class GPTState:
    """The text so far of each row, as keys and values of every block."""

    past: list[Memory]
    padding: Int[Tensor, "R"]
    """Columns before the first token of each row."""
    condition: Float[Tensor, "R 1 C"]
    ahead: Float[Tensor, "R C"] | None = None
    """The hidden state after the prompt, for the first step."""

    def mask(self, columns: int) -> Tensor:
        """Hides the columns before each row's first token: booleans (R, 1, 1, columns)."""
        return (torch.arange(columns, device=self.padding.device) >= self.padding[:, None])[:, None, None]

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        for memory in self.past:
            memory.reorder(rows)
        self.padding, self.condition = self.padding[rows], self.condition[rows]
        self.ahead = None if self.ahead is None else self.ahead[rows]


def _block(config: GPTConfig) -> EncoderBlock:
    attention = MultiHeadAttention(config.width, config.heads, dropout=config.attention_dropout)
    feedforward = FeedForward(config.width, config.feedforward, config.activation, config.activation_dropout)
    return EncoderBlock(attention, feedforward, config.norm, config.dropout)


MODEL, CONFIG = GPT, GPTConfig

_TINY = {"width": 256, "heads": 4, "feedforward": 1024, "layers": 4}

PRESETS = {
    "gpt-tiny": ("4 blocks, width 256, 4 heads: for a laptop", _TINY),
    "gpt-conditioned": ("The same with a condition", {**_TINY, "condition": "added"}),
    "gpt1": ("12 blocks, width 768, 12 heads, post-norm (Radford et al. 2018)", {"norm": "post", "max_length": 512}),
    "gpt2": ("12 blocks, width 768, 12 heads (Radford et al. 2019)", {}),
    "gpt2-medium": ("24 blocks, width 1024, 16 heads", {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24}),
    "gpt2-large": ("36 blocks, width 1280, 20 heads", {"width": 1280, "heads": 20, "feedforward": 5120, "layers": 36}),
    "gpt2-xl": ("48 blocks, width 1600, 25 heads", {"width": 1600, "heads": 25, "feedforward": 6400, "layers": 48}),
}
