"""Convolutional sequence to sequence learning (Gehring et al. 2017, https://arxiv.org/abs/1705.03122).

The paper's weight normalisation is left out. It changes training, not the function of the model, and AdamW does not
need it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import Dot, Memory, attend, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, GatedConvolution, LearnedPositions, Positioned
from foveate.nn.encoder_decoder import EncoderDecoder

HALF = math.sqrt(0.5)
"""The sum of two parts, times this, varies as much as each of them."""


@dataclass
class ConvolutionalSeq2SeqConfig:
    """The sizes of a convolutional encoder-decoder."""

    src_vocab: FromData
    """Size of the source vocabulary."""
    tgt_vocab: FromData
    """Size of the target vocabulary."""
    embedding: int = 512
    """Width E of word embeddings, of queries, keys and values, and of the last hidden layer."""
    width: int = 512
    """Width C of the convolutions."""
    encoder_layers: int = 20
    """Convolutions of the encoder."""
    decoder_layers: int = 20
    """Convolutions of the decoder, each followed by attention."""
    kernel: int = 3
    """Positions that a convolution covers."""
    max_length: int = 1024
    """Number of learned positions, the greatest length of a text."""
    dropout: float = 0.2
    """Share of embeddings, inputs of convolutions, and outputs that is dropped in training."""


class ConvolutionalSeq2Seq(EncoderDecoder, nn.Module):
    """Encodes the source by convolutions and decodes the target by causal convolutions with attention."""

    encoder: Iterable["EncoderLayer"]
    decoder: Iterable["DecoderLayer"]

    def __init__(self, config: ConvolutionalSeq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        embedding, width = config.embedding, config.width
        self.source_embedding = nn.Embedding(config.src_vocab, embedding)
        self.target_embedding = nn.Embedding(config.tgt_vocab, embedding)
        self.source_positions = Positioned(LearnedPositions(config.max_length, embedding))
        self.target_positions = Positioned(LearnedPositions(config.max_length, embedding))
        self.dropout = Dropout(config.dropout)
        self.encoder_input, self.encoder_output = nn.Linear(embedding, width), nn.Linear(width, embedding)
        self.decoder_input, self.decoder_output = nn.Linear(embedding, width), nn.Linear(width, embedding)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))  # type: ignore[assignment]
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))  # type: ignore[assignment]
        self.output = nn.Linear(embedding, config.tgt_vocab)
        self._initialize()

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token."""
        return Output(self._advance(target, self.start(source, source_lengths)))

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> "ConvolutionalState":
        embedded = self.dropout(self.source_positions(self.source_embedding(source)))
        real = (torch.arange(source.shape[1], device=source.device) < source_lengths[:, None])[..., None]
        x = self.encoder_input(embedded)
        for layer in self.encoder:
            x = layer(x, real)
        encoded = self.encoder_output(x)
        if encoded.requires_grad:
            # All layers of the decoder send gradients here, which are scaled down (section 3.5).
            share = 1 / (2 * self.config.decoder_layers)
            encoded.register_hook(lambda gradient: gradient * share)
        return ConvolutionalState(
            source=Memory(encoded, (encoded + embedded) * HALF, Dot()),
            source_lengths=source_lengths,
            past=[x.new_zeros(len(x), self.config.kernel - 1, self.config.width) for _ in self.decoder],
            length=0,
        )

    def step(self, tokens: Int[Tensor, "R"], state: "ConvolutionalState") -> Float[Tensor, "R N"]:
        return self._advance(tokens[:, None], state).squeeze(1)

    def _advance(self, tokens: Int[Tensor, "R T"], state: "ConvolutionalState") -> Float[Tensor, "R T N"]:
        """The logits after further tokens, one or a whole target; updates the state."""
        embedded = self.dropout(self.target_positions(self.target_embedding(tokens), state.length))
        x = self.decoder_input(embedded)
        for number, layer in enumerate(self.decoder):
            x, state.past[number] = layer(x, state.past[number], embedded, state)
        state.length += tokens.shape[1]
        return self.output(self.dropout(self.decoder_output(x)))

    def _initialize(self) -> None:
        """Initialize so that variances stay the same through all layers, dropout and gates included (section 3.5)."""
        kept = 1 - self.config.dropout
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.1)
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.table, std=0.1)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=math.sqrt(kept / module.in_features))
                nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, GatedConvolution):
                nn.init.normal_(module.linear.weight, std=math.sqrt(4 * kept / module.linear.in_features))


class EncoderLayer(nn.Module):
    """A gated convolution and a residual connection."""

    def __init__(self, config: ConvolutionalSeq2SeqConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.width, config.kernel)
        self.around = ((config.kernel - 1) // 2, config.kernel // 2)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B S C"], real: Bool[Tensor, "B S 1"]) -> Float[Tensor, "B S C"]:
        """Padding, where `real` is False, is set to zero like the positions beyond the ends."""
        padded = F.pad(self.dropout(x) * real, (0, 0, *self.around))
        return (self.convolution(padded) + x) * HALF


class DecoderLayer(nn.Module):
    """A causal gated convolution, attention to the source, and a residual connection."""

    def __init__(self, config: ConvolutionalSeq2SeqConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.width, config.kernel)
        self.cross = SourceAttention(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "R T C"],
        past: Float[Tensor, "R K C"],
        embedded: Float[Tensor, "R T E"],
        state: "ConvolutionalState",
    ) -> tuple[Float[Tensor, "R T C"], Float[Tensor, "R K C"]]:
        """The output, and the last `kernel - 1` inputs of the convolution for the next step."""
        read = torch.cat([past, self.dropout(x)], 1)
        hidden = self.cross(self.convolution(read), embedded, state)
        return (hidden + x) * HALF, read[:, x.shape[1] :]


class SourceAttention(nn.Module):
    """Dot-product attention with the state of the layer plus the embedding as the query; adds the result to the
    state."""

    attends = True

    def __init__(self, config: ConvolutionalSeq2SeqConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.width, config.embedding)
        self.answer = nn.Linear(config.embedding, config.width)

    def forward(
        self, hidden: Float[Tensor, "R T C"], embedded: Float[Tensor, "R T E"], state: "ConvolutionalState"
    ) -> Float[Tensor, "R T C"]:
        queries = (self.query(hidden) + embedded) * HALF
        context = attend(queries, state.source, mask=padding(state.source_lengths))
        # Corrects the variance of the mean of m vectors, which is smaller by a factor of m.
        context = context * state.source_lengths[:, None, None].to(context.dtype).sqrt()
        return (self.answer(context) + hidden) * HALF


@dataclass
class ConvolutionalState:
    """The state of the decoder for each row: the source and the past inputs of each layer."""

    source: Memory
    """Keys are the outputs of the encoder, values the same plus the embeddings. All layers share it."""
    source_lengths: Int[Tensor, "R"]
    past: list[Float[Tensor, "R K C"]]
    length: int
    """Number of tokens so far."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.source.reorder(rows)
        self.source_lengths = self.source_lengths[rows]
        self.past = [each[rows] for each in self.past]


MODEL, CONFIG = ConvolutionalSeq2Seq, ConvolutionalSeq2SeqConfig

TRAINED = {"learning_rate": 3e-3}
"""On 29,000 pairs, 600 steps give 32 BLEU, and 14 with a learning rate of 0.001 (docs/log/translation.md)."""

PRESETS: dict[str, dict[str, Any]] = {
    "convolutional-tiny": {"embedding": 128, "width": 192, "encoder_layers": 4, "decoder_layers": 3, "dropout": 0.3},
    "convolutional": {},
}

TRAINING = {
    "convolutional-tiny": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""
