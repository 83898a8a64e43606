"""Pooling: one vector for a whole sequence. Its first or last position, the mean, or attention by one query.

All poolings take the encoded sequence, its lengths and, if there is one, the last recurrent state.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Score, attend, padding
from foveate.errors import one_of
from foveate.nn.named_scores import make_score


def pooling(
    kind: str, width: int, score: str = "additive", learned: bool = True, activation: str = "tanh"
) -> nn.Module:
    """The pooling of this name: "first", "last", "mean", or "attention" by a learned query or the last state.

    `activation` is the name in torch of the function g of the additive score.
    """
    one_of("pooling", kind, ("attention", *POOLINGS))
    if kind == "attention":
        return AttentionPooling(width, make_score(score, width, width, activation), learned)
    return POOLINGS[kind]()


class AttentionPooling(nn.Module):
    """Attention to a sequence with one query, learned or the last state of the sequence.

    With a learned query and the additive score, this is the word attention of Yang et al. 2016 (Hierarchical Attention
    Networks, section 2.2).
    """

    attends = True

    def __init__(self, width: int, score: Score, learned: bool = True) -> None:
        super().__init__()
        self.score = score
        self.query = None
        if learned:
            self.query = nn.Parameter(torch.empty(width))
            nn.init.normal_(self.query, std=width**-0.5)

    def forward(
        self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"], last: Float[Tensor, "B D"] | None = None
    ) -> Float[Tensor, "B C"]:
        """The weighted mean of each sequence."""
        query = last if self.query is None else self.query.expand(len(encoded), -1)
        if query is None:
            raise ValueError("a pooling without a learned query needs the last state of each row")
        return attend(query[:, None], encoded, encoded, self.score, mask=padding(lengths)).squeeze(1)


class MeanPooling(nn.Module):
    """The mean without padding; zeros for an empty sequence."""

    def forward(
        self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"], last: Float[Tensor, "B C"] | None = None
    ) -> Float[Tensor, "B C"]:
        real = torch.arange(encoded.shape[1], device=encoded.device) < lengths[:, None]
        return (encoded * real[..., None]).sum(1) / lengths[:, None].clamp(min=1)


def text_vector(
    hidden: Float[Tensor, "B T C"],
    lengths: Int[Tensor, "B"] | None,
    which: Literal["first", "last", "mean"],
    padding_side: Literal["left", "right"] = "right",
) -> Float[Tensor, "B C"]:
    """The vector of each text's first or last token, or the mean of its tokens; `lengths` are needed with padding."""
    if lengths is None:
        return hidden.mean(1) if which == "mean" else hidden[:, 0 if which == "first" else -1]
    begin = hidden.shape[1] - lengths[:, None] if padding_side == "left" else lengths[:, None] * 0
    end = begin + lengths[:, None]
    begin, end = (end - 1 if which == "last" else begin), (begin + 1 if which == "first" else end)
    columns = torch.arange(hidden.shape[1], device=hidden.device)
    weights = ((columns >= begin) & (columns < end)).to(hidden.dtype)
    return (weights / weights.sum(1, keepdim=True)).unsqueeze(1).matmul(hidden).squeeze(1)


class FirstPlace(nn.Module):
    """The first position, where an encoder with self-attention can collect information (Devlin et al. 2019)."""

    def forward(
        self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"], last: Float[Tensor, "B C"] | None = None
    ) -> Float[Tensor, "B C"]:
        return encoded[:, 0]


class LastState(nn.Module):
    """The last state of a recurrent encoder, of both directions if it is bidirectional."""

    def forward(
        self, encoded: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"], last: Float[Tensor, "B C"]
    ) -> Float[Tensor, "B C"]:
        return last


POOLINGS: dict[str, Callable[[], nn.Module]] = {"first": FirstPlace, "last": LastState, "mean": MeanPooling}
