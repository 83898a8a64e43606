"""BERT, the encoder of the Transformer trained to fill in words (Devlin et al. 2019, https://arxiv.org/abs/1810.04805),
and the models that change one part of it:

    RoBERTa      positions begin at row 2 of their table (Liu et al. 2019, https://arxiv.org/abs/1907.11692)
    DistilBERT   half the layers, no token types (Sanh et al. 2019, https://arxiv.org/abs/1910.01108)
    ELECTRA      words have narrower vectors than layers (Clark et al. 2020, https://arxiv.org/abs/2003.10555)
    MPNet        all layers add the same numbers for distances (Song et al. 2020, https://arxiv.org/abs/2004.09297)
    ModernBERT   rotary positions, windows, gates, no biases (Warner et al. 2024, https://arxiv.org/abs/2412.13663)
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import BucketedPosition, left_padding, padding
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
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class BertConfig(StackConfig):
    """The sizes of a BERT. Defaults are those of BERT-Base."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData = 2
    """Number of labels of a text, of a token or of a pair."""
    head: Literal["words", "tokens", "text", "pair", "span", "vector", "none"] = "words"
    """What is predicted: the word at each place, a label of each token, of the text, or of a pair of texts (whether the
    second follows the first), or at which tokens an answer begins and ends; vector gives the text's vector, none the
    encoded tokens themselves."""
    pooling: Literal["first", "mean"] = "first"
    """What stands for a text or a pair: its first token, or the mean of its tokens (Reimers and Gurevych 2019)."""
    word_activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    """Activation function before the logits of words."""
    text_activation: Literal["tanh", "relu", "gelu", "gelu-tanh", "silu"] = "tanh"
    """Activation function before the logits of a text or a pair."""
    label_layer: bool = False
    """A layer with an activation and a norm comes before all logits, as before those of words (ModernBERT)."""
    head_bias: bool = True
    """The layer before the logits has a bias."""
    token_types: int | None = 2
    """Kinds of tokens with a vector of their own: those of a first and of a second text (RoBERTa: 1; DistilBERT:
    none)."""
    distance_buckets: int | None = None
    """What each head adds to its scores for a distance: as many learned numbers, which distances beyond a quarter of
    them share the more the longer they are (MPNet: 32); by default none."""
    tie: bool = True
    """Use the embeddings as the weights of the output layer too."""
    width: int = 768
    heads: int = 12
    feedforward: int = 3072
    layers: int = 12
    epsilon: float = 1e-12
    input_norm: bool = True
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    positions: PositionKind = "learned"
    max_length: int = 512
    attention_dropout: float = 0.1
    activation_dropout: float | None = 0.0


class WordHead(nn.Module):
    """The logits of the word at a place: a layer with an activation, a norm, and the output layer."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        width = embedding.embedding_dim
        self.activation = ACTIVATIONS[config.word_activation]
        self.inner = nn.Linear(config.width, width, config.head_bias)
        self.norm = nn.LayerNorm(width, config.epsilon, bias=config.norm_kind != "layer-unbiased")
        self.output = nn.Linear(width, config.vocabulary)
        if config.tie:
            tie_output(self.output, embedding)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return self.output(self.norm(self.activation(self.inner(x))))


class TokenHead(nn.Module):
    """The logits of each token's label, or of where an answer begins and ends."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, 2 if config.head == "span" else config.classes)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return self.output(self.dropout(x))


class TextHead(TokenHead):
    """The logits of a text's label, from its vector: a layer with an activation, and the output layer."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__(config, embedding)
        self.activation = ACTIVATIONS[config.text_activation]
        self.inner = nn.Linear(config.width, config.width, config.head_bias)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return super().forward(self.activation(self.inner(x)))


class LayerHead(TokenHead):
    """The logits of a label, of a token or a text, with the same layer before them as those of words."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__(config, embedding)
        self.activation = ACTIVATIONS[config.word_activation]
        self.inner = nn.Linear(config.width, config.width, config.head_bias)
        self.norm = nn.LayerNorm(config.width, config.epsilon, bias=config.norm_kind != "layer-unbiased")

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T N"]:
        return super().forward(self.norm(self.activation(self.inner(x))))


class NoHead(nn.Identity):
    """The encoded tokens, or the vector of a text, as they are."""

    def __init__(self, config: BertConfig, embedding: nn.Embedding) -> None:
        super().__init__()


HEADS = {
    "words": WordHead,
    "tokens": TokenHead,
    "text": TextHead,
    "pair": TextHead,
    "span": TokenHead,
    "vector": NoHead,
    "none": NoHead,
}


def make_head(config: BertConfig, embedding: nn.Embedding) -> nn.Module:
    """The layers behind a body."""
    one_of("head", config.head, HEADS)
    kind = HEADS[config.head]
    return (LayerHead if config.label_layer and issubclass(kind, TokenHead) else kind)(config, embedding)


class Bert(nn.Module):
    """Encodes each token in the light of all others; a head predicts from what it encoded."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        width = config.input_width or config.width
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.token_types = nn.Embedding(config.token_types, width) if config.token_types else None
        self.stack = self._stack(config)
        self.head = make_head(config, self.embedding)
        initialize_language_model(self)

    @staticmethod
    def _stack(config: Any) -> TransformerStack:
        buckets = config.distance_buckets
        if buckets is None or config.positions == "relative-projected":  # whose layers project distances themselves
            return TransformerStack(config)
        return TransformerStack(config, BucketedPosition(config.heads, buckets, 128, both_sides=True))

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        token_types: Int[Tensor, "B T"] | None = None,
        places: Int[Tensor, "B M"] | None = None,
        padding_side: Side = "right",
    ) -> Output:
        """Logits at each token, (B, T, N), at the given `places` alone, (B, M, N), or of the text or pair, (B, 1, N);
        the head vector gives (B, 1, C), and span the logits of being the first and the last token of an answer,
        (B, 2, T).

        `lengths` are needed where there is padding, `token_types` where there is a second text.
        """
        if self.config.head in ("text", "pair", "vector"):
            return Output(self.head(self.vector(tokens, lengths, token_types, padding_side)[:, None]))
        hidden = self.encode(tokens, lengths, token_types, padding_side)
        if self.config.head == "span":
            return Output(_inside(self.head(hidden).mT, lengths, padding_side))
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
        x = self.embedding(tokens)
        if self.token_types is not None:
            x = x + self.token_types(torch.zeros_like(tokens) if token_types is None else token_types)
        return self.stack(x, mask, positions)


def _inside(logits: Float[Tensor, "B P T"], lengths: Int[Tensor, "B"] | None, side: Side) -> Float[Tensor, "B P T"]:
    """Logits of tokens, of which padding has no chance."""
    if lengths is None:
        return logits
    places = torch.arange(logits.shape[-1], device=logits.device)
    places = places if side == "right" else places.flip(0)
    return logits.masked_fill((places >= lengths[:, None])[:, None], NO_CHANCE)


NO_CHANCE = -10_000.0
"""The logit of what cannot be: a number that half precision has, and after which a smoothed loss is finite."""

MODEL, CONFIG = Bert, BertConfig

_LARGE = {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24}

_DISTILBERT = {"token_types": None, "text_activation": "relu"}

_MPNET = {"position_offset": 2, "token_types": None, "epsilon": 1e-5, "distance_buckets": 32}

_MODERNBERT = {
    "positions": "rotary",
    "norm": "pre",
    "norm_kind": "layer-unbiased",
    "epsilon": 1e-5,
    "first_norm": False,
    "gated": True,
    "bias": False,
    "head_bias": False,
    "label_layer": True,
    "token_types": None,
    "rotary_base": 160_000.0,
    "window_rotary_base": 10_000.0,
    "window": 64,
    "max_length": 8192,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}

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
    "distilbert": {**_DISTILBERT, "layers": 6},
    "electra-small": {"input_width": 128, "width": 256, "heads": 4, "feedforward": 1024, "text_activation": "gelu"},
    "mpnet-base": _MPNET,
    "modernbert-base": {
        **_MODERNBERT,
        "feedforward": 1152,
        "layers": 22,
        "window_layers": (False, True, True),
    },
}

SIZES: dict[str, dict[str, int]] = {
    **{
        name: {"vocabulary": 30_522} for name in ("bert-base", "bert-large", "minilm-l6", "distilbert", "electra-small")
    },
    **{name: {"vocabulary": 50_265} for name in ("roberta-base", "roberta-large")},
    "mpnet-base": {"vocabulary": 30_527},
    "modernbert-base": {"vocabulary": 50_368},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
