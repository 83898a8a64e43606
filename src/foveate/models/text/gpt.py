"""GPT, the decoder of the Transformer alone: GPT-1 (Radford et al. 2018), GPT-2 (Radford et al. 2019,
https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf) and GPT-3 (Brown
et al. 2020, https://arxiv.org/abs/2005.14165)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.text.causal_language_model import (
    CausalLanguageModel,
    CausalLanguageModelConfig,
    Side,
    TextState,
)
from foveate.nn.positions import PositionKind


@dataclass(kw_only=True)
class GPTConfig(CausalLanguageModelConfig):
    """The sizes of a GPT. Defaults are those of the smallest GPT-2."""

    conditions: FromData = 1
    """Number of conditions; condition 0 means none."""
    width: int = 768
    heads: int = 12
    feedforward: int = 3072
    layers: int = 12
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu-tanh"
    positions: PositionKind = "learned"
    condition: Literal["added"] | None = None
    """Add the vector of a condition to that of each token; None for a model without conditions."""
    condition_dropout: float = 0.1
    """Share of training passages with condition 0 instead, so that the model also works without a condition."""


class GPT(CausalLanguageModel):
    """Predicts the next token of a text from all tokens before it, and from a condition if it has any."""

    config: GPTConfig

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.condition = None
        if config.condition is not None:
            self.condition = nn.Embedding(config.conditions, config.width)
            nn.init.normal_(self.condition.weight, std=0.02)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        padding_side: Side = "right",
        places: Int[Tensor, "B M"] | None = None,
        texts: Int[Tensor, "B T"] | None = None,
        condition: Int[Tensor, "B"] | Float[Tensor, "B C"] | None = None,
    ) -> Output:
        """Logits of the token after each token or of each token's label, (B, T, N), of those at given `places` alone,
        (B, M, N), or of the text's label, (B, 1, N).

        Padding on the right needs no `lengths`, unless the whole text gets a label. `texts` are those of
        `CausalLanguageModel.forward`; all of a row have its condition.
        """
        if self.training and condition is not None and not condition.is_floating_point():
            dropped = torch.rand(condition.shape, device=condition.device) < self.config.condition_dropout
            condition = condition.masked_fill(dropped, 0)
        hidden = self.hidden(tokens, lengths, padding_side, self._vectors(condition, tokens.shape[0]), texts)
        return self.predict(hidden, lengths, padding_side, places)

    def prefill(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        padding_side: Side = "right",
        condition: Int[Tensor, "B"] | Float[Tensor, "B C"] | None = None,
    ) -> tuple[Float[Tensor, "B N"], TextState]:
        """Read prompts of at least one token each; the logits of their next tokens and the state to go on from."""
        return self._prefill(tokens, lengths, padding_side, self._vectors(condition, tokens.shape[0]))

    def _vectors(
        self, condition: Int[Tensor, "B"] | Float[Tensor, "B C"] | None, rows: int
    ) -> Float[Tensor, "B 1 C"] | None:
        """The vector of each text's condition, which may be given itself; None in a model without conditions."""
        if self.condition is None:
            return None
        if condition is None:
            condition = torch.zeros(rows, dtype=torch.long, device=self.condition.weight.device)
        return (condition if condition.is_floating_point() else self.condition(condition))[:, None]


MODEL, CONFIG = GPT, GPTConfig

_TINY = {"width": 256, "heads": 4, "feedforward": 1024, "layers": 4}


def _sizes(layers: int, width: int, heads: int, **more: int | str) -> dict[str, int | str]:
    return {"layers": layers, "width": width, "heads": heads, "feedforward": 4 * width, **more}


PRESETS: dict[str, dict[str, Any]] = {
    "gpt-tiny": _TINY,
    "gpt-conditioned": {**_TINY, "condition": "added"},
    "gpt1-tiny": {**_TINY, "norm": "post"},
    "gpt3-tiny": {**_TINY, "window": 63, "window_every": 2},
    "gpt1": {"norm": "post", "max_length": 512},
    "gpt2": {},
    "gpt2-medium": _sizes(24, 1024, 16),
    "gpt2-large": _sizes(36, 1280, 20),
    "gpt2-xl": _sizes(48, 1600, 25),
    "megatron-8.3b": _sizes(72, 3072, 32),
    "turing-nlg-17b": _sizes(78, 4256, 28),
    "gopher-280b": _sizes(80, 16384, 128, positions="relative-projected", norm_kind="rms", max_length=2048),
    "gpt3-175b": _sizes(96, 12288, 96, max_length=2048, window=255, window_every=2),
}

SIZES: dict[str, dict[str, int]] = {
    "gpt1": {"vocabulary": 40_478},
    **{
        name: {"vocabulary": 50_257}
        for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "turing-nlg-17b", "gpt3-175b")
    },
    "megatron-8.3b": {"vocabulary": 51_200},
    "gopher-280b": {"vocabulary": 32_000},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
