"""What a user may choose about training, and the fraction of it that is behind."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from foveate.errors import UserError, at_least, check_literals

FREE = frozenset(
    ["steps", "epochs", "minutes", "patience", "average", "log_every", "device", "threads", "parallel", "tensorboard"]
)
"""Settings that may change when a training is resumed: when it ends, what is kept, where it runs, what it shows."""

DEFAULT_STEPS = 10_000

MOST_THREADS = 4096
"""More than any machine has processors."""

ALL_BUT_OVER = 1 - 2**-20
"""How much of an epoch is behind when as many batches are as were expected."""


@dataclass
class Training:
    """How to train. `steps`, `epochs` and `minutes` are limits: training ends at the first it meets; without any, after
    10,000 steps. A step is one update of the weights."""

    steps: int | None = None
    """Stop after this many steps; after 10,000 where no limit is given."""
    epochs: int | None = None
    """Stop after this many passes over the training data."""
    minutes: float | None = None
    """Stop after this much time, resumed parts included."""
    patience: int | None = 10
    """Stop when the metric was not better in this many validations in a row."""

    learning_rate: float = 1e-3
    """What the learning rate rises to in the warm-up; cosine and linear fall meanwhile, and stay below it."""
    schedule: Literal["inverse-sqrt", "cosine", "linear", "constant"] = "inverse-sqrt"
    """How the learning rate falls: inverse-sqrt after the warm-up; cosine and linear from the first step on, to 0 at
    the limit that ends training. Where only epochs do, these two do not fall in the first one if nobody knows how long
    it is: pairs of texts beyond 100,000 lines."""
    warmup: int = 500
    """Steps in which the learning rate rises from 0."""
    accumulate: int = 1
    """Batches per step: their gradients are summed, as if they were one large batch."""
    weight_decay: float = 0.01
    """Decoupled weight decay of AdamW; biases, norms and other vectors have none."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's decay rates of the two running means of the gradient."""
    epsilon: float = 1e-8
    """AdamW's addition to the denominator."""
    clip: float | None = 1.0
    """Scale the gradient down to this norm where it is longer."""
    label_smoothing: float = 0.1
    """The part of the probability that is asked to be spread evenly over the vocabulary."""
    choice_weight: float = 0.1
    """Hard attention: how much the consequences of its choices count beside the loss; more teaches it faster, if the
    noise that comes with it lets it."""
    entropy_bonus: float = 0.001
    """Hard attention: what a nat of entropy of its choices is worth, so that it does not decide too early."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What matrices are multiplied in; weights stay float32. Auto takes bfloat16 where it pays: on GPUs that have it,
    and on CPUs that have it for models of width 64 or more."""

    validate_every: int = 500
    """Steps between two validations."""
    save_every: int = 500
    """Steps between two checkpoints; each validation is followed by one too."""
    average: int = 5
    """How many of the last checkpoints are averaged in the end; the better of the average and the best checkpoint is
    kept. 1 averages nothing."""
    log_every: int = 50
    """Steps between two lines of metrics.jsonl."""

    seed: int = 1
    """Seed of all that is random."""
    device: str = "auto"
    """Where to train: "cpu", "cuda", "cuda:1", "mps". Auto takes a CUDA GPU if there is one."""
    threads: int | None = None
    """CPU threads; PyTorch's own choice if not given."""
    parallel: Literal["auto", "replicate", "shard"] = "auto"
    """Of several processes (torchrun) each holds a replica of the model, or a shard of it. Auto shards a model whose
    weights, gradients and optimizer would fill more than half of a process' memory."""
    tensorboard: bool = False
    """Write TensorBoard logs too (needs `pip install tensorboard`)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("accumulate", "validate_every", "save_every", "average", "log_every"):
            at_least(1, name, getattr(self, name))
        for name in ("steps", "epochs", "patience"):
            at_least(1, name, getattr(self, name) if getattr(self, name) is not None else 1)
        check_threads(1 if self.threads is None else self.threads)
        check_seed(self.seed)
        for name in ("warmup", "weight_decay", "learning_rate", "choice_weight", "entropy_bonus"):
            at_least(0, name, getattr(self, name))
        for name in ("minutes", "clip", "epsilon"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise UserError(f"{name} is {getattr(self, name)}, but must be above 0")
        for name, value in (("label_smoothing", self.label_smoothing), *(("betas", beta) for beta in self.betas)):
            if not 0 <= value < 1:
                raise UserError(f"{name} is {value}, but must be at least 0 and below 1")
        check_literals(self)

    @property
    def last_step(self) -> int | None:
        """The step that ends training, None where only epochs or minutes do."""
        unlimited = self.steps is None and self.epochs is None and self.minutes is None
        return DEFAULT_STEPS if unlimited else self.steps

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is due after `step`."""
        return step % self.save_every == 0 or step % self.validate_every == 0

    def fixed(self) -> dict[str, Any]:
        """The settings that a resumed training must share with the interrupted one, as JSON values."""
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in FREE}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass
class Progress:
    """Where a training stands. Every checkpoint holds one."""

    step: int = 0
    epoch: int = 0
    """Epochs behind."""
    position: int = 0
    """Batches of the current epoch behind."""
    epoch_length: int = 0
    """Batches in an epoch; 0 during the first where nobody knows."""
    tokens: int = 0
    """Target tokens seen."""
    seconds: float = 0.0
    """Time spent, in all processes that worked on this training."""
    validated: int = 0
    """The step of the last validation."""
    best: dict[str, float] = field(default_factory=dict)
    """The metrics of the best validation so far."""
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""

    def done(self, settings: Training) -> float:
        """The part of training that is behind, 0 to 1, by the nearest of the limits."""
        parts = [0.0]
        if settings.last_step is not None:
            parts.append(self.step / settings.last_step)
        if settings.epochs is not None:
            # An epoch may have more batches than the one before, and ends where it has no more.
            within = min(ALL_BUT_OVER, self.position / self.epoch_length) if self.epoch_length else 0.0
            parts.append((self.epoch + within) / settings.epochs)
        if settings.minutes is not None:
            parts.append(self.seconds / (60 * settings.minutes))
        return min(1.0, max(parts))

    def advance(self, tokens: int, seconds: float) -> None:
        """Count one step on so many `tokens`; `seconds` is the time spent so far."""
        self.step += 1
        self.tokens += tokens
        self.seconds = seconds

    def patience_lost(self, settings: Training) -> bool:
        """Whether the metric has not got better for as long as the user wants to wait."""
        return settings.patience is not None and self.stale >= settings.patience


def learning_rate(settings: Training, progress: Progress) -> float:
    """The learning rate of the step that comes after `progress`.

    A linear warm-up, then the inverse square root of the step (Vaswani et al. 2017, section 5.3, scaled so that
    `settings.learning_rate` is its peak) or nothing; or the warm-up times half a cosine (Loshchilov and Hutter 2017) or
    a line, which fall from the first step on and end at 0.
    """
    step, warmup = progress.step + 1, max(settings.warmup, 1)
    rate = settings.learning_rate * min(1.0, step / warmup)
    match settings.schedule:
        case "inverse-sqrt":
            return rate * min(1.0, math.sqrt(warmup / step))
        case "cosine":
            return rate * 0.5 * (1 + math.cos(math.pi * progress.done(settings)))
        case "linear":
            return rate * (1 - progress.done(settings))
        case "constant":
            return rate


def check_seed(seed: int) -> None:
    """Raise UserError for what PyTorch takes no random numbers from."""
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}, but must be at least 0 and below 2 ** 63")


def check_threads(threads: int) -> None:
    """Raise UserError for a number of threads that no machine can be asked for."""
    at_least(1, "threads", threads)
    if threads > MOST_THREADS:
        raise UserError(f"threads is {threads}, but must be at most {MOST_THREADS}")
