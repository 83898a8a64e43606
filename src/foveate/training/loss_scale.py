"""The factor of the loss in float16, in which the gradients of small losses would be 0."""

from dataclasses import dataclass

DOUBLED_AFTER = 2000
"""Steps without an overflow after which the factor is doubled."""


@dataclass(frozen=True)
class LossScale:
    """The loss is multiplied by a factor before the backward pass, and gradients are divided by it afterwards.

    The factor changes as that of `torch.amp.GradScaler`, which would read from the device once more in each step: here
    the norm of the gradient, which is read in any case, tells whether gradients overflowed. All processes have the same
    norm. A step that overflowed is computed again, not left out, and the statistics of batch norms count its examples
    once.
    """

    factor: float = 2.0**16
    steps: int = 0
    """Steps since the factor changed."""

    def after(self, overflow: bool) -> "LossScale":
        """The scale of the next step, after one whose gradients overflowed or did not."""
        if overflow:
            return LossScale(self.factor / 2)
        if self.steps + 1 < DOUBLED_AFTER:
            return LossScale(self.factor, self.steps + 1)
        return LossScale(self.factor * 2)
