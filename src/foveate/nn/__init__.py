"""Modules that models are made of."""

from foveate.nn.attention import MultiHeadAttention, UnequalHeads
from foveate.nn.blocks import DecoderBlock, EncoderBlock, Residual
from foveate.nn.convolution import ConvNorm, GatedConvolution, ResidualBlock
from foveate.nn.dropout import Dropout, StochasticDepth, depth_rates
from foveate.nn.embeddings import LearnedPositions, Positioned, SinusoidalPositions, longest_sequence, positions
from foveate.nn.encoders import EncoderConfig, TransformerEncoder
from foveate.nn.feedforward import FeedForward
from foveate.nn.init import TooManyWeightsError, Undrawn, initialize, initialize_convolutions
from foveate.nn.packing import Precision, cpu_has_bfloat16, packed
from foveate.nn.pooling import SCORES, AttentionPooling, MeanPooling, pooling
from foveate.nn.readers import Readers
from foveate.nn.recurrent import Recurrent
from foveate.nn.recurrent_decoders import (
    BahdanauDecoder,
    FixedVectorDecoder,
    LuongDecoder,
    RecurrentDecoderState,
)
from foveate.nn.sentence_vectors import FirstState, SentenceReader, SentenceWriter
from foveate.nn.words import WordEmbedding, tie_output, word_embeddings, word_vectors

__all__ = [
    "SCORES",
    "AttentionPooling",
    "BahdanauDecoder",
    "ConvNorm",
    "DecoderBlock",
    "Dropout",
    "EncoderBlock",
    "EncoderConfig",
    "FeedForward",
    "FirstState",
    "FixedVectorDecoder",
    "GatedConvolution",
    "LearnedPositions",
    "LuongDecoder",
    "MeanPooling",
    "MultiHeadAttention",
    "Positioned",
    "Precision",
    "Readers",
    "Recurrent",
    "RecurrentDecoderState",
    "Residual",
    "ResidualBlock",
    "SentenceReader",
    "SentenceWriter",
    "SinusoidalPositions",
    "StochasticDepth",
    "TransformerEncoder",
    "TooManyWeightsError",
    "Undrawn",
    "UnequalHeads",
    "WordEmbedding",
    "cpu_has_bfloat16",
    "depth_rates",
    "initialize",
    "initialize_convolutions",
    "longest_sequence",
    "packed",
    "positions",
    "pooling",
    "tie_output",
    "word_embeddings",
    "word_vectors",
]
