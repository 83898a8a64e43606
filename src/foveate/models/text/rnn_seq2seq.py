"""Recurrent encoder-decoder without attention (Sutskever et al. 2014) and with attention.

The query of attention is the decoder's state before the step (Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473) or
after it (Luong et al. 2015, https://arxiv.org/abs/1508.04025). Attention is global or in a local window (Luong), and
soft, hard (Xu et al. 2015, https://arxiv.org/abs/1502.03044) or monotonic (Raffel et al. 2017,
https://arxiv.org/abs/1704.00784).
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Hard, Monotonic, Selection, Soft
from foveate.config import FromData
from foveate.contracts import Choices, Output
from foveate.errors import UserError, check_literals
from foveate.nn import (
    BahdanauDecoder,
    Dropout,
    FixedVectorDecoder,
    LuongDecoder,
    Recurrent,
    RecurrentDecoderState,
    WordStates,
    make_score,
    reverse_rows,
    tie_output,
    word_embeddings,
)
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.local_windows import DiagonalWindow, LocalWindow, PredictedWindow
from foveate.nn.maxout import Maxout


@dataclass
class RNNSeq2SeqConfig:
    """The sizes of a recurrent encoder-decoder, and the attention of its decoder."""

    src_vocab: FromData
    """Size of the source vocabulary."""
    tgt_vocab: FromData
    """Size of the target vocabulary."""
    embedding: int = 256
    """Width of the word embeddings."""
    width: int = 256
    """Width C of the recurrent states; a bidirectional encoder gives half to each direction."""
    layers: int = 1
    """Recurrent layers of encoder and decoder."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    encoder: Literal["bidirectional", "unidirectional", "embeddings"] = "bidirectional"
    """Read the source in both directions, only from left to right, or use the word embeddings without an encoder."""
    encoder_width: int | None = None
    """Width of the encoder's states, of both directions together; by default that of the decoder's."""
    reverse_source: bool = False
    """The encoder reads the source from its end to its beginning (Sutskever)."""
    bridge: bool = True
    """A linear layer and tanh between the encoder's last state and the decoder's first; else they are the same."""
    maxout: int | None = None
    """With score_from "before": units of a maxout layer before the output, which also reads the last word (Bahdanau).
    By default a tanh layer as wide as the states."""
    score: Literal["none", "additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """The score of source positions; "none" for a decoder without attention, with one fixed vector of the source."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    select: Literal["soft", "hard", "monotonic"] = "soft"
    """The weighted mean of the source, one position (sampled in training), or positions from left to right."""
    mean_share: float = 0.5
    """With hard selection: the share of training steps that use the weighted mean instead, which helps learning."""
    samples: int = 1
    """With hard selection after the step, without input feeding or window: places drawn at each step in training. The
    others' mean reward is the baseline of each, which makes REINFORCE alone learn."""
    window: Literal["none", "local-m", "local-p"] = "none"
    """Attend to all positions, or near a centre: position t at step t (local-m), or a predicted one (local-p)."""
    window_radius: int = 10
    """With a window: positions on either side of its centre."""
    score_from: Literal["before", "after"] = "after"
    """The query is the state before the step (Bahdanau) or after it (Luong)."""
    input_feeding: bool = False
    """With score_from "after": the attentional state is an input of the next step (Luong)."""
    fixed_vector: Literal["first", "every"] = "first"
    """Without attention: the source vector gives the first state, or is also an input of every step."""
    dropout: float = 0.2
    """Share of embeddings and outputs that is dropped in training."""
    tie: Literal["none", "output", "all"] = "none"
    """Share the target embedding with the output layer, or also with the source embedding (one vocabulary)."""


class RNNSeq2Seq(EncoderDecoder, nn.Module):
    """Encodes the source and decodes the target token by token."""

    def __init__(self, config: RNNSeq2SeqConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.source_embedding, self.target_embedding = word_embeddings(
            config.src_vocab, config.tgt_vocab, config.embedding, shared=config.tie == "all"
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = _encoder(config)
        self.bridge = _bridge(config, self.encoder.width)
        self.decoder = _decoder(config, self.encoder.width)
        self.output = nn.Linear(_output_width(config), config.tgt_vocab)
        if config.tie != "none":
            tie_output(self.output, self.target_embedding)
            # With the initial values of an input layer, the first outputs would be overconfident.
            nn.init.normal_(self.target_embedding.weight, std=0.1)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token, and the choices of hard attention."""
        hidden, choices = self._advance(target, self.start(source, source_lengths))
        return Output(self.output(hidden), choices)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> RecurrentDecoderState:
        reverse = self.config.reverse_source
        source = reverse_rows(source, source_lengths) if reverse else source
        encoded, last = self.encoder(self.dropout(self.source_embedding(source)), lengths=source_lengths)
        # Attention, its windows and its pictures count places in the order of the text.
        encoded = reverse_rows(encoded, source_lengths) if reverse else encoded
        hidden = last if self.bridge is None else tuple(torch.tanh(self.bridge(part)) for part in last)
        return self.decoder.start(hidden, encoded, source_lengths)

    def step(self, tokens: Int[Tensor, "R"], state: RecurrentDecoderState) -> Float[Tensor, "R N"]:
        hidden, _ = self._advance(tokens[:, None], state)
        return self.output(hidden).squeeze(1)

    def _advance(self, tokens: Int[Tensor, "R T"], state: RecurrentDecoderState) -> tuple[Tensor, Choices | None]:
        hidden, choices = self.decoder(self.dropout(self.target_embedding(tokens)), state)
        return self.dropout(hidden), choices


def _encoder(config: RNNSeq2SeqConfig) -> Recurrent | WordStates:
    if config.encoder == "embeddings":
        return WordStates(config.embedding, 2 if config.cell == "lstm" else 1, config.layers)
    bidirectional = config.encoder == "bidirectional"
    width = config.encoder_width or config.width
    return Recurrent(config.cell, config.embedding, width, config.layers, bidirectional, config.dropout)


def _bridge(config: RNNSeq2SeqConfig, encoder_width: int) -> nn.Linear | None:
    if config.bridge:
        return nn.Linear(encoder_width, config.width)
    if encoder_width != config.width:
        raise UserError(
            f"without a bridge the decoder begins in the encoder's last state, but their widths are "
            f"{config.width} and {encoder_width}"
        )
    return None


def _output_width(config: RNNSeq2SeqConfig) -> int:
    return config.width if config.maxout is None or config.score == "none" else config.maxout


def _decoder(config: RNNSeq2SeqConfig, source_width: int) -> FixedVectorDecoder | BahdanauDecoder | LuongDecoder:
    def recurrent(further_width: int) -> Recurrent:
        input_width = config.embedding + further_width
        return Recurrent(config.cell, input_width, config.width, config.layers, dropout=config.dropout)

    if config.score == "none":
        return FixedVectorDecoder(recurrent, config.width, every_step=config.fixed_vector == "every")
    score = make_score(config.score, config.width, source_width, config.score_activation)
    select, window = _selection(config), _window(config)
    if config.score_from == "before":
        inputs = config.width + source_width + config.embedding
        readout = None if config.maxout is None else Maxout(inputs, config.maxout)
        return BahdanauDecoder(recurrent, config.width, source_width, score, select, window, readout)
    if config.maxout is not None:
        raise UserError('maxout needs score_from "before"')
    fed, samples = config.input_feeding, config.samples if config.select == "hard" else 1
    if samples > 1 and (fed or window is not None):
        raise UserError(
            "several samples of a step need steps that do not depend on others: no input feeding, no window"
        )
    return LuongDecoder(recurrent, config.width, source_width, score, select, window, fed, samples)


def _selection(config: RNNSeq2SeqConfig) -> Selection:
    if config.select == "hard":
        if not 0 <= config.mean_share <= 1:
            raise UserError(f"mean_share is {config.mean_share}, but must be from 0 to 1")
        return Hard(config.mean_share)
    return Soft() if config.select == "soft" else Monotonic()


def _window(config: RNNSeq2SeqConfig) -> LocalWindow | None:
    if config.window == "local-m":
        return DiagonalWindow(config.window_radius)
    return PredictedWindow(config.width, config.window_radius) if config.window == "local-p" else None


MODEL, CONFIG = RNNSeq2Seq, RNNSeq2SeqConfig

TRAINED = {"learning_rate": 4e-3}
"""On 29,000 pairs, 0.005 gives six BLEU more than 0.002 after six epochs. 0.004 also works for every score and
selection on short messages."""

LARGE = {"learning_rate": 1e-3}
"""Wide recurrent layers diverge at the rates of narrow ones."""

_FOUR_LAYERS = {
    "cell": "lstm",
    "layers": 4,
    "embedding": 1000,
    "width": 1000,
    "encoder": "unidirectional",
    "reverse_source": True,
    "bridge": False,
}

PRESETS: dict[str, dict[str, Any]] = {
    "rnn": {"score": "none"},
    "rnn-bahdanau": {"score": "additive", "score_from": "before"},
    "rnn-luong": {"cell": "lstm", "score": "biaffine", "input_feeding": True},
    "rnn-attentive": {"score": "scaled-dot"},
    "rnn-local": {"cell": "lstm", "score": "biaffine", "input_feeding": True, "window": "local-p"},
    "rnn-hard": {"score": "additive", "select": "hard"},
    "rnn-monotonic": {"score": "additive", "select": "monotonic"},
    "sutskever-2014": {**_FOUR_LAYERS, "score": "none", "dropout": 0.0},
    "bahdanau-2015": {
        "embedding": 620,
        "width": 1000,
        "encoder_width": 2000,
        "score": "additive",
        "score_from": "before",
        "maxout": 500,
        "dropout": 0.0,
    },
    "luong-2015": {**_FOUR_LAYERS, "score": "biaffine", "input_feeding": True, "dropout": 0.2},
}

TRAINING = {name: LARGE if name.endswith(("2014", "2015")) else TRAINED for name in PRESETS}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {
    "sutskever-2014": {"src_vocab": 160_000, "tgt_vocab": 80_000},
    "bahdanau-2015": {"src_vocab": 30_000, "tgt_vocab": 30_000},
    "luong-2015": {"src_vocab": 50_000, "tgt_vocab": 50_000},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
