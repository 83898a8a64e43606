"""T5, the Transformer with an encoder and a decoder that reads and writes any task as text (Raffel et al. 2020,
https://arxiv.org/abs/1910.10683).

It differs from the Transformer of 2017: RMS norms before each layer, no biases, scores without a scale, and as
positions a learned bias for buckets of distances, which all layers of a stack share. Version 1.1, and mT5 and Flan-T5
after it, gate the feed-forward layers (Shazeer 2020) and have an output layer of their own.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import BucketedPosition, Dot, Mask, Memory, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    DecoderStackState,
    Dropout,
    FeedForward,
    GatedFeedForward,
    MultiHeadAttention,
    Residual,
    TransformerBlock,
    norm,
    tie_output,
    word_embeddings,
)
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class T5Config:
    """The sizes of a T5. Defaults are those of the small one."""

    src_vocab: FromData
    """Size of the source vocabulary."""
    tgt_vocab: FromData
    """Size of the target vocabulary; one of the same size is the same, and has one embedding for both."""
    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    head_width: int = 64
    """Width of each head's queries, keys and values."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 6
    """Blocks of the encoder."""
    decoder_layers: int = 6
    """Blocks of the decoder."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    gated: bool = False
    """A second linear layer gates each feed-forward layer (version 1.1, with gelu-tanh)."""
    buckets: int = 32
    """Buckets of distances: half of them for one distance each, the others for wider and wider ranges."""
    farthest: int = 128
    """All distances from this one on are in one bucket."""
    epsilon: float = 1e-6
    """Added to the mean square in each norm."""
    dropout: float = 0.1
    """Share of embeddings, layer outputs, inner activations and attention weights that is dropped in training."""
    tie: bool = True
    """Share the target embedding with the output layer (version 1.0)."""
    scale_output: bool = True
    """Divide what the output layer reads by the root of the width (version 1.0)."""


class T5(EncoderDecoder, nn.Module):
    """Encodes the source and decodes the target from left to right."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.source_embedding, self.target_embedding = word_embeddings(
            config.src_vocab, config.tgt_vocab, config.width, shared=config.src_vocab == config.tgt_vocab
        )
        sizes = config.heads, config.buckets, config.farthest
        self.source_distances = BucketedPosition(*sizes, both_sides=True)
        self.target_distances = BucketedPosition(*sizes, both_sides=False)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            TransformerBlock(_attention(config), _feedforward(config), partial(_residual, config))
            for _ in range(config.encoder_layers)
        )
        self.decoder = DecoderStack(_decoder_block(config) for _ in range(config.decoder_layers))
        make_norm = norm("rms", config.epsilon)
        self.encoder_norm, self.decoder_norm = make_norm(config.width), make_norm(config.width)
        self.output = nn.Linear(config.width, config.tgt_vocab, bias=False)
        _initialize(self, config)
        if config.tie:
            tie_output(self.output, self.target_embedding)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token. Padding after the end of a target has no effect before it."""
        mask = padding(source_lengths)
        return self.decode(target, self.encode(source, mask), mask)

    def decode(
        self,
        target: Int[Tensor, "B T"],
        encoded: Float[Tensor, "B S C"],
        source_mask: Mask,
        past: list[Memory] | None = None,
    ) -> Output:
        """Logits of the token after each target token, of a source that was encoded; `past` gets its keys and
        values."""
        x = self.dropout(self.target_embedding(target))
        return Output(self._logits(self.decoder(x, encoded, source_mask, self.target_distances, past)))

    def encode(self, source: Int[Tensor, "B S"], mask: Mask) -> Float[Tensor, "B S C"]:
        """The output of the encoder."""
        x = self.dropout(self.source_embedding(source))
        for block in self.encoder:
            x = block(x, mask=mask, bias=self.source_distances)
        return self.dropout(self.encoder_norm(x))

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> DecoderStackState:
        encoded = self.encode(source, padding(source_lengths))
        return self.decoder.start(encoded, source_lengths, expected=source.shape[1] + 4)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self.dropout(self.target_embedding(tokens[:, None]))
        return self._logits(self.decoder.step(x, state, self.target_distances)).squeeze(1)

    def _logits(self, x: Float[Tensor, "R T C"]) -> Float[Tensor, "R T N"]:
        x = self.dropout(self.decoder_norm(x))
        return self.output(x * self.config.width**-0.5 if self.config.scale_output else x)


def _attention(config: T5Config) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width, config.heads, head_width=config.head_width, score=Dot(), dropout=config.dropout, bias=False
    )


def _feedforward(config: T5Config) -> FeedForward:
    layer = GatedFeedForward if config.gated else FeedForward
    return layer(config.width, config.feedforward, config.activation, config.dropout, bias=False)


def _decoder_block(config: T5Config) -> DecoderBlock:
    return DecoderBlock(_attention(config), _attention(config), _feedforward(config), partial(_residual, config))


def _residual(config: T5Config) -> Residual:
    return Residual(config.width, "pre", config.dropout, norm("rms", config.epsilon))


def _initialize(model: T5, config: T5Config) -> None:
    """Draw weights by normal distributions with the width of what a layer reads; queries have no scale in the scores,
    so they are smaller. A tied output is scaled where it is read; an untied one is drawn small."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            smaller = config.head_width**-0.5 if name.endswith(".query") else 1.0
            nn.init.normal_(module.weight, std=module.in_features**-0.5 * smaller)
    for embedding in (model.source_embedding, model.target_embedding):
        nn.init.normal_(embedding.weight)


MODEL, CONFIG = T5, T5Config


def _gated(width: int, heads: int, feedforward: int, layers: int) -> dict[str, Any]:
    """Version 1.1."""
    return {
        "width": width,
        "heads": heads,
        "feedforward": feedforward,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "activation": "gelu-tanh",
        "gated": True,
        "tie": False,
        "scale_output": False,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "t5-small": {},
    "flan-t5-small": _gated(512, 6, 1024, 8),
    "flan-t5-base": _gated(768, 12, 2048, 12),
}

SIZES: dict[str, dict[str, int]] = {name: {"src_vocab": 32_128, "tgt_vocab": 32_128} for name in PRESETS}
"""The sizes of the data of a preset's paper, which other data replaces."""
