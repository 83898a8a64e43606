"""Building blocks of models."""

from foveate.nn.attending import attends
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.attentive_decoder import (
    AttentiveDecoder,
    AttentiveDecoderState,
    RecurrentDecoderState,
    concatenate_choices,
)
from foveate.nn.blocks import DecoderBlock, ParallelBlock, TransformerBlock
from foveate.nn.boxes import box_centres, box_corners, generalized_iou, overlap
from foveate.nn.conditional_decoder import ConditionalBlock, ConditionalQueries
from foveate.nn.conditional_norm import ConditionalBatchNorm
from foveate.nn.convolution import (
    ChannelNorm,
    ConvNorm,
    GatedConvolution,
    ResidualBlock,
    ResponseNorm,
    SamePaddedConv2d,
)
from foveate.nn.decoder_stack import DecoderSizes, DecoderStack, DecoderStackState, decoder_block
from foveate.nn.deformable_attention import DeformableAttention, DeformableBlock, DeformableDecoderBlock
from foveate.nn.deformable_decoder import DeformableDecoder
from foveate.nn.depthwise import DepthwiseConv2d
from foveate.nn.detection_layers import box_layers, class_logits
from foveate.nn.dropout import Dropout, StochasticDepth, depth_rates
from foveate.nn.embeddings import WordEmbedding, tie_output, word_embeddings, word_vectors
from foveate.nn.feature_map_attention import FeatureMapAttention
from foveate.nn.feature_maps import FeatureMaps
from foveate.nn.feedforward import FeedForward, GatedFeedForward
from foveate.nn.fully_connected import FullyConnectedHead
from foveate.nn.heads import HeadFields, HeadSizes, attention_layer, stack_heads
from foveate.nn.hybrid_encoder import HybridEncoder
from foveate.nn.image_positions import coordinate_waves, grid_positions, inside_images
from foveate.nn.init import (
    TooManyWeightsError,
    initialize,
    initialize_convolutions,
    initialize_language_model,
    skip_init,
    without_memory,
)
from foveate.nn.low_rank import LowRank, add_low_rank, low_rank_updates, merge_low_rank, without_low_rank
from foveate.nn.named_scores import SCORES, make_score
from foveate.nn.norms import norm
from foveate.nn.object_queries import BoxQueries, LearnedQueries, Proposals, denoising_mask, surest_boxes
from foveate.nn.place_proposals import PlaceProposals, pick_places, surest_places
from foveate.nn.pooled_attention import PooledAttention
from foveate.nn.pooling import AttentionPooling, MeanPooling, pooling, text_vector
from foveate.nn.positions import (
    LearnedPositions,
    Positioned,
    SinusoidalPositions,
    longest_sequence,
    position_encoding,
)
from foveate.nn.precision import bfloat16_is_fast, cpu_has_bfloat16
from foveate.nn.pyramid import PyramidalEncoder
from foveate.nn.recurrent import Recurrent, WordStates, reverse_rows
from foveate.nn.recurrent_decoders import (
    BahdanauDecoder,
    ContextDecoder,
    FixedVectorDecoder,
    LuongDecoder,
)
from foveate.nn.relative_attention import RelativeAttention
from foveate.nn.residual import Residual
from foveate.nn.rotary import GridRotary, Rotary, Rotation, SectionedRotary
from foveate.nn.running import Running, RunningLayer, running_layer
from foveate.nn.sentence_vectors import FirstState, SentenceReader, SentenceWriter
from foveate.nn.stack import StackConfig, TransformerStack
from foveate.nn.window_attention import WindowAttention

__all__ = [
    "DeformableAttention",
    "DeformableBlock",
    "DeformableDecoder",
    "DeformableDecoderBlock",
    "FeatureMaps",
    "HybridEncoder",
    "denoising_mask",
    "overlap",
    "PlaceProposals",
    "pick_places",
    "surest_places",
    "SCORES",
    "WordStates",
    "box_layers",
    "class_logits",
    "inside_images",
    "make_score",
    "reverse_rows",
    "AttentionPooling",
    "AttentiveDecoder",
    "AttentiveDecoderState",
    "BahdanauDecoder",
    "BoxQueries",
    "ChannelNorm",
    "ContextDecoder",
    "ConditionalBatchNorm",
    "ConditionalBlock",
    "ConditionalQueries",
    "ConvNorm",
    "DecoderBlock",
    "DecoderSizes",
    "DecoderStack",
    "DecoderStackState",
    "DepthwiseConv2d",
    "Dropout",
    "FeatureMapAttention",
    "FeedForward",
    "FirstState",
    "FixedVectorDecoder",
    "FullyConnectedHead",
    "GatedConvolution",
    "GatedFeedForward",
    "GridRotary",
    "HeadFields",
    "Running",
    "RunningLayer",
    "running_layer",
    "stack_heads",
    "HeadSizes",
    "LearnedPositions",
    "LearnedQueries",
    "LowRank",
    "LuongDecoder",
    "MeanPooling",
    "MultiHeadAttention",
    "ParallelBlock",
    "PooledAttention",
    "Positioned",
    "Proposals",
    "PyramidalEncoder",
    "Recurrent",
    "RecurrentDecoderState",
    "RelativeAttention",
    "Residual",
    "ResidualBlock",
    "ResponseNorm",
    "Rotary",
    "Rotation",
    "SectionedRotary",
    "SamePaddedConv2d",
    "SentenceReader",
    "SentenceWriter",
    "SinusoidalPositions",
    "StackConfig",
    "StochasticDepth",
    "TransformerBlock",
    "TransformerStack",
    "TooManyWeightsError",
    "WindowAttention",
    "WordEmbedding",
    "add_low_rank",
    "concatenate_choices",
    "box_centres",
    "box_corners",
    "coordinate_waves",
    "attends",
    "attention_layer",
    "bfloat16_is_fast",
    "cpu_has_bfloat16",
    "decoder_block",
    "depth_rates",
    "generalized_iou",
    "grid_positions",
    "initialize",
    "initialize_convolutions",
    "initialize_language_model",
    "longest_sequence",
    "low_rank_updates",
    "merge_low_rank",
    "norm",
    "pooling",
    "position_encoding",
    "skip_init",
    "without_memory",
    "surest_boxes",
    "text_vector",
    "tie_output",
    "without_low_rank",
    "word_embeddings",
    "word_vectors",
]
