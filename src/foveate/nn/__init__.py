"""Modules that models are made of."""

from foveate.nn.attention import MultiHeadAttention, UnequalHeads
from foveate.nn.blocks import DecoderBlock, EncoderBlock, Residual
from foveate.nn.dropout import Dropout
from foveate.nn.embeddings import LearnedPositions, Positioned, SinusoidalPositions
from foveate.nn.feedforward import FeedForward
from foveate.nn.recurrent import Recurrent
from foveate.nn.recurrent_decoders import (
    BahdanauDecoder,
    FixedVectorDecoder,
    LuongDecoder,
    RecurrentDecoderState,
)

__all__ = [
    "BahdanauDecoder",
    "DecoderBlock",
    "Dropout",
    "EncoderBlock",
    "FeedForward",
    "FixedVectorDecoder",
    "LearnedPositions",
    "LuongDecoder",
    "MultiHeadAttention",
    "Positioned",
    "Recurrent",
    "RecurrentDecoderState",
    "Residual",
    "SinusoidalPositions",
    "UnequalHeads",
]
