"""Writing all tokens of a fixed number at once, the surest first (MaskGIT, Chang et al. 2022).

https://arxiv.org/abs/2202.04200. B  batch    T  places    N  tokens; the number N stands for a hidden place
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.errors import UserError, at_least


@dataclass
class Unmasking:
    """Settings of filling in hidden places."""

    steps: int = 12
    """Steps, in each of which the surest places are kept; a cosine says how many."""
    temperature: float = 1.0
    """Divides the logits before tokens are drawn; 0 takes the likeliest."""
    order_temperature: float = 4.5
    """How much chance there is in what counts as sure, at first; it falls to 0 with the steps."""
    guidance: float = 2.0
    """How far logits are moved from those without a condition through those with it: 1 takes these as they are
    (classifier-free guidance, Ho and Salimans 2022)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "steps", self.steps)
        for name in ("temperature", "order_temperature", "guidance"):
            at_least(0, name, getattr(self, name))
            if not math.isfinite(getattr(self, name)):
                raise UserError(f"{name} is {getattr(self, name)}, but must be finite")


@torch.no_grad()
def unmask(
    model: nn.Module,
    hidden: Int[Tensor, "B T"],
    condition: Mapping[str, Tensor],
    nothing: Mapping[str, Tensor],
    settings: Unmasking,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B T"]:
    """Tokens for the hidden places of an image: `model(image=..., **condition).logits` says how likely each is.

    `nothing` is what the model is given in place of a condition, for guidance. Places that are not hidden stay.
    """
    image, mask = hidden.clone(), None
    open_at_first = None
    for step in range(1, settings.steps + 1):
        logits = _guided(model, image, condition, nothing, settings.guidance)
        mask = logits.shape[-1]
        is_open = image == mask
        open_at_first = is_open.sum(1) if open_at_first is None else open_at_first
        log_probs = torch.log_softmax(logits.float() / max(settings.temperature, 1e-6), -1)
        drawn = (log_probs + _gumbel(log_probs, generator)).argmax(-1) if settings.temperature else logits.argmax(-1)
        sureness = log_probs.gather(-1, drawn[..., None])[..., 0]
        done = step / settings.steps
        sureness = sureness + settings.order_temperature * (1 - done) * _gumbel(sureness, generator)
        left = (open_at_first * math.cos(math.pi / 2 * done)).floor().long()
        # The places that stay open are the least sure ones; known places are never opened again.
        rank = sureness.masked_fill(~is_open, math.inf).argsort(1).argsort(1)
        image = torch.where(is_open & (rank >= left[:, None]), drawn, image)
    return image


def _guided(
    model: nn.Module, image: Tensor, condition: Mapping[str, Tensor], nothing: Mapping[str, Tensor], guidance: float
) -> Float[Tensor, "B T N"]:
    logits = model(image=image, **condition).logits
    if guidance == 1:
        return logits
    plain = model(image=image, **nothing).logits
    return plain + guidance * (logits - plain)


def _gumbel(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Noise by which the greatest of log-probabilities is a draw from them."""
    uniform = torch.rand(like.shape, generator=generator, device=like.device)
    return -torch.log(-torch.log(uniform.clamp(1e-9, 1 - 1e-7)))
