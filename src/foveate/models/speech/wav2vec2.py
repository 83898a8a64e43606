"""wav2vec 2.0: convolutions over the samples of a sound, then a Transformer encoder (Baevski et al. 2020,
https://arxiv.org/abs/2006.11477).

It writes a text by CTC (Graves et al. 2006): each place of the sound gets a character or none. HuBERT (Hsu et al.
2021, https://arxiv.org/abs/2106.07447) is the same model, pretrained otherwise. Padding changes nothing: the norm over
time of the first convolution counts real samples alone.

B batch    S samples of a sound    Z places that the convolutions keep    C width    N characters or labels
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.errors import UserError
from foveate.models.speech.output import SpeechOutput
from foveate.nn import Dropout, FeedForward, MultiHeadAttention, Residual, TransformerBlock, initialize_language_model
from foveate.nn.convolved_positions import ConvolvedPositions
from foveate.nn.feedforward import ACTIVATIONS
from foveate.nn.norms import norm


@dataclass
class Wav2Vec2Config:
    """The sizes of a wav2vec 2.0. Defaults are those of the base model."""

    vocabulary: FromData = 32
    """Characters that are written, with the blank."""
    classes: FromData = 2
    """Number of labels of a sound."""
    head: Literal["words", "label", "none"] = "words"
    """What is predicted: the character at each place, a label of the sound, or none: the encoded places themselves."""
    convolution_widths: tuple[int, ...] = (512,) * 7
    """Channels of each convolution over the samples."""
    kernels: tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2)
    """Places that each of them reads at once."""
    strides: tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2)
    """Places from one of its outputs to the next: 320 samples in all."""
    convolution_norm: Literal["first", "each"] = "first"
    """The first convolution has a norm over time, or each has one over its channels."""
    convolution_bias: bool = False
    """Convolutions have a bias."""
    convolution_activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    """Activation function of the convolutions, and of the positions."""
    feature_norm: bool = True
    """A norm comes before the projection of the convolutions' output."""
    position_kernel: int = 128
    """Places that the convolution reads that gives positions."""
    position_groups: int = 16
    """Groups of channels of this convolution."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks of self-attention and a feed-forward layer."""
    norm: Literal["post", "pre"] = "post"
    """Norms come behind the layers, or before them."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu"
    """Activation function of the feed-forward layers."""
    epsilon: float = 1e-5
    """What layer norms add to the variance."""
    label_width: int = 256
    """Width of the layer before the logits of labels."""
    mask_share: float = 0.05
    """Share of the places that are masked in training (SpecAugment)."""
    mask_length: int = 10
    """Places of a mask."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""

    def __post_init__(self) -> None:
        if not len(self.convolution_widths) == len(self.kernels) == len(self.strides) > 0:
            counts = ", ".join(str(len(one)) for one in (self.convolution_widths, self.kernels, self.strides))
            raise UserError(f"convolution_widths, kernels and strides have {counts} entries: give one for each layer")
        if not 0 <= self.mask_share < 1:
            raise UserError(f"mask_share is {self.mask_share}, but must be at least 0 and below 1")


class Wav2Vec2(nn.Module):
    """Encodes the samples of a sound, and predicts the character at each place, or a label of the whole."""

    def __init__(self, config: Wav2Vec2Config) -> None:
        super().__init__()
        self.config = config
        width, epsilon, inputs = config.width, config.epsilon, config.convolution_widths[-1]
        self.convolutions = nn.ModuleList(_layers(config))
        self.feature_norm = nn.LayerNorm(inputs, epsilon) if config.feature_norm else nn.Identity()
        self.projection = nn.Linear(inputs, width)
        self.mask = nn.Parameter(torch.empty(width).uniform_())
        self.positions = ConvolvedPositions(
            width, config.position_kernel, config.position_groups, ACTIVATIONS[config.convolution_activation]
        )
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))
        self.head = nn.Linear(width, config.label_width) if config.head == "label" else None
        sizes = {"words": (width, config.vocabulary), "label": (config.label_width, config.classes)}
        self.output = nn.Linear(*sizes[config.head]) if config.head in sizes else None
        initialize_language_model(self)

    def forward(self, source: Float[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> SpeechOutput:
        """Logits of the character at each place (B, Z, N), of labels (B, 1, N), or the encoded places (B, Z, C)."""
        x, lengths = self.encode(source, source_lengths)
        if self.head is not None:
            real = _real(x, lengths)
            x = ((self.head(x) * real).sum(1) / real.sum(1))[:, None]
        elif self.output is not None:
            x = self.dropout(x)
        logits = x if self.output is None else self.output(x)
        return SpeechOutput(logits, ctc=logits if self.config.head == "words" else None, ctc_lengths=lengths)

    def encode(
        self, source: Float[Tensor, "B S"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded places of each sound, and how many it has."""
        if source.shape[1] < (least := self.least_samples):
            raise UserError(f"a sound has {source.shape[1]:,} samples, but the model reads {least:,} at least")
        x = source[:, None]
        for layer in self.convolutions:
            x, lengths = layer(x, lengths)
        x = self.dropout(self.projection(self.feature_norm(x.mT)))
        real = _real(x, lengths)
        if self.training and self.config.mask_share:
            hidden = random_spans(lengths, x.shape[1], self.config.mask_share, self.config.mask_length)
            x = torch.where(hidden[..., None], self.mask, x)
        x = x * real
        x = x + self.positions(x)
        x = self.dropout(self.norm(x) if self.config.norm == "post" else x)
        for block in self.blocks:
            x = block(x, mask=padding(lengths))
        return self.norm(x) if self.config.norm == "pre" else x, lengths

    @property
    def least_samples(self) -> int:
        """Samples of the shortest sound with a place."""
        found = 1
        for kernel, stride in zip(self.config.kernels[::-1], self.config.strides[::-1], strict=True):
            found = (found - 1) * stride + kernel
        return found


class SampleConvolution(nn.Module):
    """A convolution that does not pad, a norm, if any, and an activation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, norm: str, config: Wav2Vec2Config) -> None:
        """`norm` is "time", for one over the places of each channel; "channels", for one over those of each place; or
        empty."""
        super().__init__()
        self.convolution = nn.Conv1d(inputs, outputs, kernel, stride, bias=config.convolution_bias)
        kinds: dict[str, Any] = {"time": TimeNorm, "channels": nn.LayerNorm}
        self.over, self.norm = norm, kinds[norm](outputs) if norm else None
        self.activation = ACTIVATIONS[config.convolution_activation]

    def forward(
        self, x: Float[Tensor, "B D S"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B E Z"], Int[Tensor, "B"]]:
        """The places that are kept, and how many each row has, at least one."""
        (kernel,), (stride,) = self.convolution.kernel_size, self.convolution.stride
        x = self.convolution(x)
        lengths = ((lengths - kernel).div(stride, rounding_mode="floor") + 1).clamp(min=1)
        if self.norm is not None:
            x = self.norm(x, lengths) if self.over == "time" else self.norm(x.mT).mT
        return self.activation(x), lengths


class TimeNorm(nn.Module):
    """A norm over the places of each channel, without those of padding."""

    def __init__(self, channels: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "B D Z"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B D Z"]:
        real, counts = _real(x.mT, lengths).mT, lengths[:, None, None]
        centred = x - (x * real).sum(2, keepdim=True) / counts
        variance = (centred.square() * real).sum(2, keepdim=True) / counts
        return centred * (variance + self.epsilon).rsqrt() * self.weight[:, None] + self.bias[:, None]


def random_spans(lengths: Int[Tensor, "B"], places: int, share: float, length: int) -> Bool[Tensor, "B Z"]:
    """Random stretches of `length` places, which cover about a share of each row, and less where they overlap."""
    count = share * lengths / length + torch.rand(len(lengths), device=lengths.device)
    last = (lengths - length)[:, None]
    drawn = torch.rand(len(lengths), places, device=lengths.device)
    drawn = drawn.masked_fill(torch.arange(places, device=lengths.device) > last, -1)
    rank = drawn.argsort(1, descending=True).argsort(1)
    begins = ((rank < count.floor()[:, None]) & (drawn >= 0)).float()
    spans = F.max_pool1d(F.pad(begins, (length - 1, 0))[:, None], length, 1)[:, 0]
    return spans > 0


def _real(x: Float[Tensor, "B Z C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B Z 1"]:
    """1 at the places of each row, 0 at those of padding."""
    return (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None].to(x.dtype)


def _layers(config: Wav2Vec2Config) -> list[SampleConvolution]:
    first, further = ("time", "") if config.convolution_norm == "first" else ("channels", "channels")
    outputs = config.convolution_widths
    rows = zip((1, *outputs), outputs, config.kernels, config.strides, strict=False)
    return [SampleConvolution(*sizes, further if layer else first, config) for layer, sizes in enumerate(rows)]


def _block(config: Wav2Vec2Config) -> TransformerBlock:
    return TransformerBlock(
        MultiHeadAttention(config.width, config.heads),
        FeedForward(config.width, config.feedforward, config.activation, config.dropout),
        partial(Residual, config.width, config.norm, config.dropout, norm("layer", config.epsilon)),
    )


MODEL, CONFIG = Wav2Vec2, Wav2Vec2Config

SIZES = {name: {"vocabulary": 32} for name in ("wav2vec2-base", "wav2vec2-large")}
"""The letters of English and what parts them, with the special tokens of the public models."""

PRESETS: dict[str, dict[str, Any]] = {
    "wav2vec2-base": {},
    "wav2vec2-large": {
        "width": 1024,
        "heads": 16,
        "feedforward": 4096,
        "layers": 24,
        "convolution_norm": "each",
        "convolution_bias": True,
        "norm": "pre",
    },
}
