"""XLNet: a language model that reads its tokens in any order (Yang et al. 2019, https://arxiv.org/abs/1906.08237).

P  places that are predicted
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, around, by_rank, padding, window
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.nn import Dropout, FeedForward, HeadFields, Residual, norm, text_vector, tie_output
from foveate.nn.heads import check_usual_heads
from foveate.nn.named_weighings import weighing
from foveate.nn.two_stream import TwoStreamAttention, TwoStreamBlock, View, distance_waves


@dataclass
class XLNetConfig(HeadFields):
    """The sizes of an XLNet. Defaults are those of XLNet-Base."""

    vocabulary: FromData
    """Size of the vocabulary."""
    width: int = 768
    """Width C of all layers: an even number."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks."""
    activation: Literal["relu", "gelu", "gelu-tanh"] = "gelu"
    """Activation function of the feed-forward layers."""
    epsilon: float = 1e-12
    """Added to the variance in each norm."""
    dropout: float = 0.1
    """Share of embeddings, distances and layer outputs that is dropped in training."""
    attention_dropout: float = 0.1
    """Share of attention weights that is dropped in training."""
    head: Literal["words", "text", "tokens", "none"] = "words"
    """What is predicted: the tokens at some places, a label of the whole text, or a label of each token; none gives the
    encoded tokens themselves."""
    classes: FromData = 2
    """Number of labels of a text or a token."""


class XLNet(nn.Module):
    """Predicts the tokens at some places from those that come before them in an order that the `ranks` give.

    The content stream has the vector of each token in the light of the tokens of its own rank and below. The query
    stream has a vector for each place that is predicted: it knows its position and the tokens of lower ranks, but not
    the token that it stands for. Tokens of equal rank see each other: those that nobody predicts have the lowest rank.

    With another head the content stream alone gives a label to each token or, by the last token, to the text.
    """

    blocks: Iterable[TwoStreamBlock]

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.width % 2:
            raise UserError(f"distances have a sine and a cosine, so the width must be even, not {config.width}")
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.unknown_token = nn.Parameter(torch.empty(config.width))
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))  # type: ignore[assignment]
        if config.head == "text":
            self.summary = nn.Linear(config.width, config.width)
        words = config.head == "words"
        self.output: nn.Module = nn.Identity()
        if config.head != "none":
            self.output = nn.Linear(config.width, config.vocabulary if words else config.classes)
        _initialize(self)
        if words:
            tie_output(cast(nn.Linear, self.output), self.embedding)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        ranks: Int[Tensor, "B T"] | None = None,
        places: Int[Tensor, "B P"] | None = None,
        segments: Int[Tensor, "B T"] | None = None,
    ) -> Output:
        """Logits (B, P, N) of the tokens at the places, by default at all of them.

        Without `ranks` each token sees all others and itself: logits are those of the content stream.
        Padding on the right needs the `lengths`, and two texts in one row their `segments`. The logits of a text's
        label are (B, 1, N); without a head the hidden states themselves come, (B, T, C).
        """
        hidden = self.hidden(tokens, lengths, ranks, places, segments)
        if self.config.head == "text":
            hidden = self.dropout(self.summary(text_vector(hidden, lengths, "last")).tanh())[:, None]
        return Output(self.output(hidden))

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        ranks: Int[Tensor, "B T"] | None = None,
        places: Int[Tensor, "B P"] | None = None,
        segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B P C"]:
        """The hidden states that `output` makes logits of."""
        content = self.dropout(self.embedding(tokens))
        waves = self.dropout(distance_waves(tokens.shape[1], self.config.width, content))
        real = None if lengths is None else padding(lengths)
        radius = self.config.window
        near = None if radius is None else window(radius)
        if ranks is None:
            view = View(near if real is None else _both(real, near), segments=segments)
            for block in self.blocks:
                content = block.content(content, block.self.source(content, waves, segments), view)
            if places is not None:
                content = content.gather(1, places[..., None].expand(-1, -1, content.shape[-1]))
            return self.dropout(content)
        places, at = _places(places, tokens)
        view = View(_both(_both(by_rank(ranks, ranks), real), near), segments=segments)
        own_segments = None if segments is None else segments.gather(1, at)
        near = None if radius is None else around(at[:, None].to(content.dtype), radius)
        order = by_rank(ranks.gather(1, at) - 1, ranks)
        query_view = View(_both(_both(order, real), near), places, own_segments)
        query = self.dropout(self.unknown_token.expand(*at.shape, -1))
        for number, block in enumerate(self.blocks):
            source = block.self.source(content, waves, segments)
            query = block.query(query, source, query_view)
            if number + 1 < self.config.layers:  # nothing reads the last content stream
                content = block.content(content, source, view)
        return self.dropout(query)


def _places(places: Tensor | None, tokens: Tensor) -> tuple[Tensor | None, Tensor]:
    """The positions of the queries, None for all in order, and the same as a tensor."""
    if places is not None:
        return places, places
    return None, torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)


def _both(order: Mask, other: Mask | None) -> Mask:
    return order if other is None else order & other


def _block(config: XLNetConfig) -> TwoStreamBlock:
    dropout, split, widths = config.attention_dropout, config.split, config.head_widths
    check_usual_heads(config, "XLNet", ("split", "head_widths", "weights"))
    select = weighing(config)
    attention = TwoStreamAttention(config.width, config.heads, dropout, split, widths, select)
    feedforward = FeedForward(config.width, config.feedforward, config.activation, config.dropout)
    residual = partial(Residual, config.width, "post", config.dropout, norm("layer", config.epsilon))
    return TwoStreamBlock(attention, feedforward, residual)


def _initialize(model: nn.Module, std: float = 0.02) -> None:
    """All weights by a normal distribution; biases of linear layers with 0 (appendix A.4)."""
    for name, parameter in model.named_parameters():
        if "around_" not in name:
            (nn.init.zeros_ if name.endswith(".bias") else partial(nn.init.normal_, std=std))(parameter)


MODEL, CONFIG = XLNet, XLNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "xlnet-tiny": {"width": 256, "heads": 4, "feedforward": 1024, "layers": 4},
    "xlnet-base": {},
    "xlnet-large": {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 32_000} for name in ("xlnet-base", "xlnet-large")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
