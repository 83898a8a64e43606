"""Weights times how much a number would grow with them: what an answer needs of what was looked at.

The gradient of a weight is the product of the output's gradient and the value, dL/dA = dO V^T. It is computed for the
rows that are asked for, so that no map is kept while the model runs forward and back.

Chefer, Gur and Wolf 2021, "Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
Transformers" (https://arxiv.org/abs/2103.15679).
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.errors import UserError, of_kind
from foveate.sight.derived import FactoredSite
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.site import Site

Gradients = Mapping[int, Float[Tensor, "... T V"] | None]
"""By the identity of a recorded call: the gradient of its output, None if the number does not depend on it."""


class GradientSite(FactoredSite):
    """Each weight times its gradient, below 0 as 0 unless `signed`: what made the number larger, (B, H, T, S)."""

    shows = "gradients"

    def __init__(self, site: Site, gradients: Gradients, signed: bool) -> None:
        super().__init__(site)
        self._gradients, self._signed = gradients, signed

    def factor(
        self, recorded: RecordedCall, heads: Sequence[int], queries: Sequence[int], keys: Sequence[int]
    ) -> Float[Tensor, "B h t s"]:
        gradient, values, leading = self._gradients[id(recorded)], recorded.values, recorded.call.leading
        assert values is not None
        if gradient is None:
            return values.new_zeros(())
        count = leading[1:].numel()
        rows = gradient.reshape(-1, count, *gradient.shape[-2:])[:, list(heads)][:, :, list(queries)].float()
        along = values.expand(*leading, *values.shape[-2:]).reshape(-1, count, *values.shape[-2:])
        found = rows @ along[:, list(heads)][:, :, list(keys)].float().mT
        return found if self._signed else found.clamp_(min=0)


def gradients_of(sites: Sequence[Site], target: Tensor) -> Gradients:
    """The gradients of the outputs of all calls of some sites. Raises UserError if they were not kept."""
    of_kind(Tensor, "the target", target, "a tensor that was computed from the output")
    calls = [recorded for site in sites for recorded in site.calls]
    if any(recorded.output is None for recorded in calls):
        raise UserError("gradients need look(model, gradients=True)")
    if not target.requires_grad:
        raise UserError("the target has no gradient: leave torch.no_grad(), .item() and .detach() out of it")
    outputs = [recorded.output for recorded in calls if recorded.output is not None]
    found = torch.autograd.grad(target.sum(), outputs, retain_graph=True, allow_unused=True)
    if all(gradient is None for gradient in found):
        raise UserError("the target does not depend on anything that attended during the look")
    return {id(recorded): gradient for recorded, gradient in zip(calls, found, strict=True)}
