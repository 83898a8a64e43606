"""Settings that follow the size of the data, where no limit is given: batches, epochs, schedule."""

import math
from dataclasses import replace
from operator import length_hint
from typing import Any, Protocol, runtime_checkable

from foveate.training.settings import DEFAULT_STEPS, Training

LEAST_BATCHES = 40
"""An epoch has at least this many batches: batches are smaller where data are few."""

SMALLEST = 1 / 8
"""The smallest share of a batch that is left."""

MOST_EPOCHS = 60
"""The most epochs that `least_steps` may take."""

LEAST_VALIDATIONS = 10


@runtime_checkable
class Resizable(Protocol):
    """Batches whose size can change."""

    def resized(self, share: float) -> Any:
        """Returns the same data in batches of this share of their size."""


def follow_size(settings: Training, batches: Any) -> tuple[Training, Any, list[str]]:
    """The settings and the batches that fit the number of batches, and lines for the user.

    A number of steps or epochs that is given is kept, and the size of batches with it; so is a size that is given.
    """
    lines: list[str] = []
    count = length_hint(batches)
    given = settings.steps is not None or settings.epochs is not None
    resizable = not given and not settings.keep_batches
    if 0 < count < LEAST_BATCHES and resizable and isinstance(batches, Resizable):
        batches = batches.resized(max(SMALLEST, count / LEAST_BATCHES))
        before, count = count, length_hint(batches)
        lines.append(f"few data: {count:,} small batches an epoch, not {before:,}; --steps or --epochs keep these")
    per_epoch = math.ceil(count / settings.accumulate)
    few = 0 < per_epoch * MOST_EPOCHS < DEFAULT_STEPS
    if settings.schedule == "auto":
        settings = replace(settings, schedule="cosine" if few and not given else "inverse-sqrt")
    if settings.unlimited:
        epochs = _epochs(settings, per_epoch)
        if epochs is not None:
            steps = epochs * per_epoch
            every = max(1, min(settings.validate_every, steps // LEAST_VALIDATIONS))
            save = min(settings.save_every, every)
            settings = replace(settings, epochs=epochs, validate_every=every, save_every=save)
            lines.append(f"training for {epochs:,} epochs of {per_epoch:,} steps, validated every {every:,} steps")
    return settings, batches, [*lines, *_inside_warmup(settings, per_epoch)]


def _epochs(settings: Training, per_epoch: int) -> int | None:
    """The number of epochs, where data or task decide; None where 10,000 steps end the training."""
    if not per_epoch:
        return settings.usual_epochs
    if settings.usual_epochs is None:
        return MOST_EPOCHS if per_epoch * MOST_EPOCHS < DEFAULT_STEPS else None
    return max(settings.usual_epochs, min(MOST_EPOCHS, math.ceil(settings.least_steps / per_epoch)))


def _inside_warmup(settings: Training, per_epoch: int) -> list[str]:
    """A warning where the training ends before the learning rate has risen."""
    limits = [limit for limit in (settings.last_step, (settings.epochs or 0) * per_epoch) if limit]
    if settings.warmup is None or not limits or min(limits) > settings.warmup:
        return []
    return [
        f"the training ends after {min(limits):,} steps, inside its warm-up of {settings.warmup:,}: lower --warmup, or "
        f"leave it out"
    ]
