"""Writes what is said in sounds with a Whisper, token by token."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.models.speech.whisper import Whisper
from foveate.nn import DecoderStackState


class SoundGenerator(nn.Module):
    """A `Generator` that writes what is said in given sounds, without the tokens that a folder suppresses."""

    def __init__(self, model: Whisper, source: Float[Tensor, "B S F"], values: Mapping[str, Any]) -> None:
        """`values` are those of `generation_config.json`: `suppress_tokens` are never written, and
        `begin_suppress_tokens` not as the first token."""
        super().__init__()
        self.model, self.source = model, source
        self.never, self.not_first = (
            torch.tensor(
                [token for token in values.get(name) or [] if 0 <= token < model.config.vocabulary], dtype=torch.long
            )
            for name in ("suppress_tokens", "begin_suppress_tokens")
        )
        lengths = torch.full((len(source),), source.shape[1], device=source.device)
        with torch.inference_mode():
            self.encoded = model.encode(source, lengths)

    def state(self) -> DecoderStackState:
        """The state before the first token."""
        return self.model.decoder.start(*self.encoded, expected=64)

    def prefill(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], padding_side: str = "left"
    ) -> tuple[Float[Tensor, "B N"], DecoderStackState]:
        """Read prompts of one length."""
        state = self.state()
        for place in range(tokens.shape[1]):
            logits = self.step(tokens[:, place], state)
        logits[:, self.not_first.to(logits.device)] = -torch.inf
        return logits, state

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        logits = self.model.step(tokens, state)
        logits[:, self.never.to(logits.device)] = -torch.inf
        return logits
