"""A stack of self-attention blocks: what text encoders, language models and image models have in common."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import torch
import tyro
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, ContextualPosition, Mask, Memory, window
from foveate.errors import UserError, at_least, check_literals
from foveate.nn.blocks import ParallelBlock, SelfAttention, TransformerBlock
from foveate.nn.dropout import Dropout
from foveate.nn.feedforward import FeedForward, GatedFeedForward
from foveate.nn.heads import HeadFields, attention_layer, check_own_scores, check_positions, head_options
from foveate.nn.norms import Norm, norm
from foveate.nn.positions import CONTEXTUAL, PositionKind, are_concatenated, position_encoding
from foveate.nn.relative_attention import RelativeAttention
from foveate.nn.residual import Residual
from foveate.nn.rotary import QueryTemperature, Rotary, RotaryScaling, Turn
from foveate.nn.running import Running


@dataclass(kw_only=True)
class StackConfig(HeadFields):
    """The sizes and parts of a stack; a model's own config sets its defaults and adds what it reads and decides."""

    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    head_width: int | None = None
    """Width of each head's queries and keys; by default width / heads."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    layers: int = 6
    """Blocks of the stack."""
    norm: Literal["post", "pre", "output", "sandwich"] = "post"
    """Norm after each residual sum (the paper), before each layer (more stable), of each layer's output (OLMo 2), or
    before each layer and of its output (Gemma 2)."""
    norm_kind: Literal["layer", "layer-unbiased", "rms", "rms-shifted"] = "layer"
    """LayerNorm, with or without a bias; RMSNorm, which has no mean and no bias; or RMSNorm with a factor of 1 + weight
    (Gemma)."""
    epsilon: float = 1e-5
    """Added to the variance in each norm."""
    input_norm: bool = False
    """Normalize the input, positions included (BERT)."""
    input_width: int | None = None
    """Width of the input, of its positions and its norm, where a linear layer then makes it as wide as the model
    (ELECTRA); by default that of the model."""
    first_norm: bool = True
    """With norms before layers, the first attention has one too (ModernBERT has none, because its input has)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    gated: bool = False
    """A second linear layer gates each feed-forward layer (SwiGLU, with silu)."""
    bias: bool = True
    """Linear layers have biases."""
    attention_bias: Literal["all", "inputs", "none"] | None = None
    """Attention has biases in all its linear layers, in those of queries, keys and values alone (Qwen2), or in none;
    by default as `bias` says."""
    parallel: bool = False
    """Attention and feed-forward layer of a block stand side by side, not one after the other (GPT-NeoX)."""
    one_norm: bool = False
    """Such layers share one norm (GPT-J)."""
    positions: PositionKind = "sinusoidal"
    """Positions as waves of any length, as a learned table, as what each head adds to its scores for a distance, as
    distances that each layer projects (Transformer-XL), as rotations of queries and keys, as what a query counts of the
    keys behind one (contextual, Golovneva et al. 2024), or not at all."""
    position_join: Literal["add", "concatenate"] = "add"
    """Waves or table: added to the input, or put before it as [P, Z] and projected to the width."""
    max_length: int = 1024
    """Positions of the learned table."""
    position_offset: int | None = None
    """Rows of the learned table, or positions of the waves, before the first position (RoBERTa: 2); by default none."""
    rotary_width: int | None = None
    """Rotary positions: how much of each head's width turns; by default all of it."""
    rotary_base: float = 10_000.0
    """Rotary positions: the frequencies fall from 1 to almost 1 / rotary_base."""
    rotary_scaling: Annotated[RotaryScaling | None, tyro.conf.Suppress] = None
    """Rotary positions: how frequencies were changed for longer texts; by default they were not."""
    rotary_layers: tuple[bool, ...] | None = None
    """Rotary positions: which blocks have them, a pattern that repeats (SmolLM3: three of four); by default all."""
    query_temperature: float | None = None
    """Blocks without rotary positions: queries grow with the logarithm of their position, by this factor (Llama 4:
    0.1); by default they do not."""
    temperature_span: int = 8192
    """Positions after which queries grow, and grow again."""
    window_rotary_base: float | None = None
    """The rotary base of the blocks in which the window holds; by default that of all others."""
    window_every: int = 1
    """The window holds in every block (1), in every second one (2: alternating with dense ones, as in GPT-3), ..."""
    window_layers: tuple[bool, ...] | None = None
    """Which blocks the window holds in, a pattern that repeats; by default as `window_every` says."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float | None = None
    """Share of what is inside the feed-forward layers that is dropped in training; by default that of dropout."""
    layer_scale: float | None = None
    """A learned scale for each channel of each layer's output, which begins with this value; by default none."""
    depth_dropout: float = 0.0
    """Share of the examples for which a layer is skipped in training (stochastic depth), the same for all layers."""


class TransformerStack(nn.Module):
    """Positions, then blocks of self-attention (Vaswani et al. 2017, figure 1), with or without a mask."""

    blocks: Iterable[TransformerBlock]

    def __init__(
        self,
        config: StackConfig,
        distances: Any = None,
        attention: Callable[..., SelfAttention] | None = None,
    ) -> None:
        """`distances` is what all blocks are given as their bias, and `attention` makes their self-attention or what
        stands in its place; by default both are those of the config."""
        super().__init__()
        _check(config)
        self.window = config.window
        self.window_layers = config.window_layers or (*(False,) * (config.window_every - 1), True)
        self.rotary_layers = config.rotary_layers or (True,)
        self.temperature, self.temperature_span = config.query_temperature, config.temperature_span
        width = config.input_width or config.width
        given = distances is not None and config.positions == "relative"
        self.positions, own = position_encoding(
            "none" if given else config.positions,
            width,
            config.heads,
            config.max_length,
            config.position_join,
            config.position_offset or 0,
        )
        self.distances = own if distances is None else distances
        concatenated = are_concatenated(config.positions, config.position_join)
        self.project = nn.Linear(2 * width, width) if concatenated else None
        self.rotary = _rotary(config, config.rotary_base) if config.positions == "rotary" else None
        base = config.window_rotary_base
        self.near_rotary = _rotary(config, base) if self.rotary is not None and base is not None else self.rotary
        self.input_norm = _norm(config)(width) if config.input_norm else None
        self.dropout = Dropout(config.dropout)
        self.widen = nn.Linear(width, config.width) if config.input_width not in (None, config.width) else None
        blocks = (_block(config, attention, number) for number in range(config.layers))
        self.blocks = nn.ModuleList(blocks)  # type: ignore[assignment]
        if not config.first_norm and config.norm == "pre":
            self.blocks[0].around_self.norm = nn.Identity()  # type: ignore[index]
        # Post-norm blocks end with a norm of their own.
        self.norm = nn.Identity() if config.norm == "post" else _norm(config)(config.width)

    def forward(
        self,
        x: Float[Tensor, "B T E"],
        mask: Mask | Tensor | None = None,
        places: Int[Tensor, "P T"] | None = None,
        past: Sequence[Memory | Running] | None = None,
        biases: Sequence[Bias] = (),
        rotation: Turn | None = None,
    ) -> Float[Tensor, "B T C"]:
        """Each vector in the light of those that `mask` lets it see.

        `past` are the blocks' keys and values of what came before x; those of x are added to them. `places` are the
        positions of x, by default those that follow the past; padding on the left shifts them. Masks, windows and
        relative positions count the columns of past and x, padding included. `biases` (one for each block) and a
        `rotation` are positions that the model knows, such as those in a grid, where the stack has none.
        """
        start = past[0].length if past else 0
        x = self.positions(x, start, places)
        x = x if self.project is None else self.project(x)
        x = self.dropout(x if self.input_norm is None else self.input_norm(x))
        x = x if self.widen is None else self.widen(x)
        bias = self.distances.with_start(start) if self.distances is not None and start else self.distances
        near_rotation, unturned = rotation, None
        if self.rotary is not None and self.near_rotary is not None:
            if places is None:
                places = torch.arange(start, start + x.shape[1], device=x.device)[None]
            rotation = near_rotation = self.rotary(places, x.dtype)
            if self.near_rotary is not self.rotary:
                near_rotation = self.near_rotary(places, x.dtype)
            if self.temperature is not None:
                unturned = QueryTemperature.of(places, self.temperature, self.temperature_span, x.dtype)
        near = mask
        if self.window is not None:
            near = window(self.window, start) if mask is None else window(self.window, start) & mask
        for number, block in enumerate(self.blocks):
            windowed = self.window_layers[number % len(self.window_layers)]
            turns = self.rotary_layers[number % len(self.rotary_layers)]
            seen, turned = (near, near_rotation) if windowed else (mask, rotation)
            own = biases[number] if biases else bias
            x = block(x, seen, own, past[number] if past else None, turned if turns else unturned)
        return self.norm(x)

    def memories(self, x: Float[Tensor, "B T C"], expected: int = 0) -> list[Memory | Running]:
        """An empty past of rows like those of x, with room for `expected` positions."""
        return [block.self.memory(x[:, :0], expected) for block in self.blocks]


def _check(config: StackConfig) -> None:
    """Raise UserError for choices that do not go together."""
    check_literals(config)
    at_least(1, "temperature_span", config.temperature_span)
    if config.parallel and config.norm != "pre":
        raise UserError("parallel attention and feed-forward layers need norm='pre'")
    check_positions(config.positions, config)
    scored = ("query_key_norm", "score_scale", "score_cap", "score_limit", "head_score")
    own = [name for name in scored if getattr(config, name) not in (None, "scaled-dot")]
    if own and (config.positions == "relative-projected" or config.head_widths is not None):
        raise UserError(f"{own[0]} needs heads of equal width and positions other than 'relative-projected'")
    if config.positions == "relative-projected":
        check_own_scores(config, "a stack of relative-projected positions")
    if config.positions == "contextual" and (config.mixing == "multi-token" or config.head_score == "distance"):
        raise UserError("contextual positions need mixing other than 'multi-token' and scores that are dot products")


def _norm(config: StackConfig) -> Norm:
    return norm(config.norm_kind, config.epsilon)


def _rotary(config: StackConfig, base: float) -> Rotary:
    head_width = config.head_width or config.width // config.heads
    width = config.rotary_width or head_width
    if width > head_width:
        raise UserError(f"rotary_width is {width}, but a head has a width of {head_width} only")
    return Rotary(width, base, config.rotary_scaling)


def _attention(config: StackConfig, make: Callable[..., SelfAttention] | None, number: int) -> SelfAttention:
    options: dict[str, Any] = {
        **head_options(config, _norm(config)),
        "head_width": config.head_width,
        "dropout": config.attention_dropout,
        "bias": config.bias if config.attention_bias is None else config.attention_bias != "none",
        "output_bias": None if config.attention_bias is None else config.attention_bias == "all",
    }
    if config.positions == "contextual":  # one rule for each layer: it learns
        width = config.head_width or config.width // config.heads
        options["select"] = ContextualPosition(width, CONTEXTUAL, options["select"])
    if make is None and config.positions == "relative-projected":
        make = RelativeAttention
    return (
        attention_layer(config, number=number, **options)
        if make is None
        else make(config.width, config.heads, **options)
    )


def _block(config: StackConfig, attend: Callable[..., SelfAttention] | None, number: int) -> TransformerBlock:
    attention = _attention(config, attend, number)
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    layer = GatedFeedForward if config.gated else FeedForward
    feedforward = layer(config.width, config.feedforward, config.activation, dropout, config.bias)
    around = _norm(config), config.layer_scale, config.depth_dropout
    residual = partial(Residual, config.width, config.norm, config.dropout, *around)
    if config.parallel:
        return ParallelBlock(attention, feedforward, residual, config.one_norm)
    return TransformerBlock(attention, feedforward, residual)
