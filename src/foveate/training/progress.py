"""How far a training is, and the learning rate that this gives."""

import math
from dataclasses import dataclass, field

from foveate.training.loss_scale import LossScale
from foveate.training.settings import Training

WARM = 0.1
"""The share of a training after which a warm-up ends at the latest, where its length is not given."""

ALL_BUT_OVER = 1 - 2**-20
"""The share of an epoch that is done when it has more batches than expected."""


@dataclass
class Progress:
    """The progress of a training. Every checkpoint has one."""

    step: int = 0
    epoch: int = 0
    """Completed epochs."""
    position: int = 0
    """Completed batches of the current epoch."""
    epoch_length: int = 0
    """Batches in an epoch; 0 during the first one if unknown."""
    tokens: int = 0
    """Number of target tokens so far."""
    seconds: float = 0.0
    """Time spent so far, including the time before a resume."""
    validated: int = 0
    """The step of the last validation."""
    best: dict[str, float] = field(default_factory=dict)
    """The metrics of the best validation so far."""
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    window: dict[str, float] = field(default_factory=dict)
    """The sums of the next row of `metrics.jsonl`, where a training was stopped between two rows."""
    loss_scale: LossScale | None = None
    """That of the next step, in float16."""

    def done(self, settings: Training) -> float:
        """The completed share of training, 0 to 1, by the nearest limit."""
        parts = [0.0]
        if settings.last_step is not None:
            parts.append(self.step / settings.last_step)
        if settings.epochs is not None:
            # An epoch may have more batches than expected.
            within = min(ALL_BUT_OVER, self.position / self.epoch_length) if self.epoch_length else 0.0
            parts.append((self.epoch + within) / settings.epochs)
        if settings.minutes is not None:
            parts.append(self.seconds / (60 * settings.minutes))
        return min(1.0, max(parts))

    def advance(self, tokens: int, seconds: float) -> None:
        """Count one step of `tokens` tokens; `seconds` is the time so far."""
        self.step += 1
        self.tokens += tokens
        self.seconds = seconds

    def patience_lost(self, settings: Training) -> bool:
        """Returns whether the metric has not improved for `patience` validations."""
        return settings.patience is not None and self.stale >= settings.patience


def learning_rate(settings: Training, progress: Progress) -> float:
    """The learning rate of the step after `progress`.

    A linear warm-up, followed by the inverse square root of the step (Vaswani et al. 2017, section 5.3, scaled so that
    `settings.learning_rate` is the peak) or a constant. Cosine (Loshchilov and Hutter 2017) and linear are the product
    of the warm-up and a decay to 0 from the first step on.
    """
    step = progress.step + 1
    warmup = max(settings.usual_warmup if settings.warmup is None else settings.warmup, 1)
    risen = step / warmup
    if settings.warmup is None:
        risen = max(risen, progress.done(settings) / WARM)
    rate = settings.learning_rate * min(1.0, risen)
    match settings.schedule:
        case "inverse-sqrt" | "auto":
            return rate * min(1.0, math.sqrt(warmup / step))
        case "cosine":
            return rate * 0.5 * (1 + math.cos(math.pi * progress.done(settings)))
        case "linear":
            return rate * (1 - progress.done(settings))
        case "constant":
            return rate
