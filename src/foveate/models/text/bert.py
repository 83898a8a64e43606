"""BERT, the encoder of the Transformer trained to fill in words (Devlin et al. 2019, https://arxiv.org/abs/1810.04805),
and RoBERTa (Liu et al. 2019, https://arxiv.org/abs/1907.11692), whose positions begin at row 2 of their table."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import left_padding, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import one_of
from foveate.models.text.causal_language_model import Side
from foveate.nn import (
    Dropout,
    StackConfig,
    TransformerStack,
    initialize_language_model,
    text_vector,
    tie_output,
)
from foveate.nn.feedforward import ACTIVATIONS


@dataclass(kw_only=True)
class BertConfig(StackConfig):
    """The sizes of a BERT. Defaults are those of BERT-Base."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData = 2
    """Number of labels of a text, of a token or of a pair."""
    head: Literal["words", "tokens", "text", "pair", "vector", "none"] = "words"
    """What is predicted: the word at each place, a label of each token, of the text, or of a pair of texts (whether the
    second follows the first); vector gives the text's vector, none the encoded tokens themselves."""
    pooling: Literal["first", "mean"] = "first"
    """What stands for a text or a pair: its first token, or the mean of its tokens (Reimers and Gurevych 2019)."""
    word_activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    """Activation function before the logits of words."""
    token_types: int = 2
    """Kinds of tokens with a vector of their own: those of a first and of a second text (RoBERTa: 1)."""
    tie: bool = True
    """Use the embeddings as the weights of the output layer too."""
    width: int = 768
    heads: int = 12
    feedforward: int = 3072
    layers: int = 12
    epsilon: float = 1e-12
    input_norm: bool = True
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    positions: Literal["none", "sinusoidal", "learned", "relative", "relative-projected", "rotary"] = "learned"
    max_length: int = 512
    attention_dropout: float = 0.1
    activation_dropout: float | None = 0.0


class WordHead(nn.Module):
    """The logits of the word at a place: a layer with an activation, a norm, and the output layer."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.word_activation]
        self.inner = nn.Linear(config.width, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.output = nn.Linear(config.width, config.vocabulary)
        if config.tie:
            tie_output(self.output, embedding)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return self.output(self.norm(self.activation(self.inner(x))))


class TokenHead(nn.Module):
    """The logits of each token's label."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.classes)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return self.output(self.dropout(x))


class TextHead(TokenHead):
    """The logits of a text's label, from its vector: a layer with tanh, and the output layer."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__(config, embedding)
        self.inner = nn.Linear(config.width, config.width)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return super().forward(torch.tanh(self.inner(x)))


def _no_head(config: BertConfig, embedding: nn.Embedding) -> nn.Module:
    return nn.Identity()


HEADS = {
    "words": WordHead,
    "tokens": TokenHead,
    "text": TextHead,
    "pair": TextHead,
    "vector": _no_head,
    "none": _no_head,
}


class Bert(nn.Module):
    """Encodes each token in the light of all others; a head predicts from what it encoded."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        one_of("head", config.head, HEADS)
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.token_types = nn.Embedding(config.token_types, config.width)
        self.stack = TransformerStack(config)
        self.head = HEADS[config.head](config, self.embedding)
        initialize_language_model(self)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        token_types: Int[Tensor, "B T"] | None = None,
        places: Int[Tensor, "B M"] | None = None,
        padding_side: Side = "right",
    ) -> Output:
        """Logits at each token, (B, T, N), at the given `places` alone, (B, M, N), or of the text or pair, (B, 1, N);
        the head vector gives (B, 1, C).

        `lengths` are needed where there is padding, `token_types` where there is a second text.
        """
        if self.config.head in ("text", "pair", "vector"):
            return Output(self.head(self.vector(tokens, lengths, token_types, padding_side)[:, None]))
        hidden = self.encode(tokens, lengths, token_types, padding_side)
        if places is not None:
            hidden = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
        return Output(self.head(hidden))

    def vector(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        token_types: Int[Tensor, "B T"] | None = None,
        padding_side: Side = "right",
    ) -> Float[Tensor, "B C"]:
        """The vector of each text: that of its first token, or the mean."""
        hidden = self.encode(tokens, lengths, token_types, padding_side)
        return text_vector(hidden, lengths, self.config.pooling, padding_side)

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        token_types: Int[Tensor, "B T"] | None = None,
        padding_side: Side = "right",
    ) -> Float[Tensor, "B T C"]:
        """The encoded tokens."""
        mask = positions = None
        if lengths is not None and padding_side == "right":
            mask = padding(lengths)
        elif lengths is not None:
            before = tokens.shape[1] - lengths
            mask = left_padding(before)
            positions = (torch.arange(tokens.shape[1], device=tokens.device) - before[:, None]).clamp(min=0)
        types = torch.zeros_like(tokens) if token_types is None else token_types
        return self.stack(self.embedding(tokens) + self.token_types(types), mask, positions)


MODEL, CONFIG = Bert, BertConfig

_LARGE = {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24}

_ROBERTA = {"position_offset": 2, "token_types": 1, "epsilon": 1e-5}

PRESETS: dict[str, dict[str, Any]] = {
    "bert-mini": {
        "width": 128,
        "heads": 4,
        "feedforward": 512,
        "layers": 2,
        "norm": "pre",
        "input_norm": False,
        "positions": "rotary",
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
    "bert-tiny": {"width": 256, "heads": 4, "feedforward": 1024, "layers": 4},
    "minilm-l6": {"width": 384, "feedforward": 1536, "layers": 6},
    "bert-base": {},
    "bert-large": _LARGE,
    "roberta-base": _ROBERTA,
    "roberta-large": {**_ROBERTA, **_LARGE},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 30_522} for name in ("bert-base", "bert-large", "minilm-l6")},
    **{name: {"vocabulary": 50_265} for name in ("roberta-base", "roberta-large")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
