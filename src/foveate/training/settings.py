"""The settings of training."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import tyro

from foveate.data.workers import check_workers
from foveate.errors import UserError, at_least, check_literals
from foveate.training.pair_flags import PAIRS

FREE = frozenset(
    [
        "steps",
        "epochs",
        "minutes",
        "patience",
        "average",
        "log_every",
        "device",
        "threads",
        "workers",
        "parallel",
        "split_among",
        "recompute",
        "compile",
        "watch_attention",
        "tensorboard",
        "usual_epochs",
        "least_steps",
        "usual_warmup",
        "keep_batches",
    ]
)
"""Settings that may change when a training resumes: its end, what is kept, where it runs, what it shows."""

REMEDIES = ("learning_rate", "warmup", "clip", "precision")
"""Settings that may change too where a training stopped because its numbers were not finite any more."""

DEFAULT_STEPS = 10_000

USUAL_WARMUP = 500

MOST_THREADS = 4096
"""More than the processors of any machine."""


@dataclass
class Training:
    """Settings of a training. It ends at the first of the limits `steps`, `epochs` and `minutes`; without one, the size
    of the data decides (docs/small-data.md). A step is one update of the weights."""

    steps: int | None = None
    """Stop after this many steps. Without any limit: after 10,000, or the task's number of epochs; other numbers where
    data are few."""
    epochs: int | None = None
    """Stop after this many passes over the training data."""
    minutes: float | None = None
    """Stop after this time, including the time before a resume."""
    patience: int | None = 10
    """Stop when the metric has not improved in this many validations."""

    learning_rate: float = 1e-3
    """Peak learning rate, reached at the end of the warm-up. Cosine and linear schedules stay below it."""
    schedule: Literal["auto", "inverse-sqrt", "cosine", "linear", "constant"] = "auto"
    """Decay of the learning rate: inverse-sqrt after the warm-up; cosine and linear from the first step on, to 0 at the
    limit that ends training. Auto is cosine where data are few, else inverse-sqrt. If only epochs limit it and the
    length of the first one is unknown (parallel text of more than 100,000 lines), cosine and linear do not decay in the
    first epoch."""
    warmup: int | None = None
    """Steps of the warm-up, in which the learning rate rises from 0. By default the first tenth of the training, and at
    most 500 steps, or what is usual for the task."""
    usual_epochs: Annotated[int | None, tyro.conf.Suppress] = None
    """Passes over data that are not few, without a limit."""
    least_steps: Annotated[int, tyro.conf.Suppress] = 1000
    """Steps that are taken at least where data are few, without a limit."""
    keep_batches: Annotated[bool, tyro.conf.Suppress] = False
    """Whether the size of batches was given, and is kept where data are few."""
    usual_warmup: Annotated[int, tyro.conf.Suppress] = USUAL_WARMUP
    """The longest warm-up, where none is given."""
    accumulate: int = 1
    """Batches in a step. Their gradients are summed, as of one large batch."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW; or Muon for the matrices and convolutions inside of the model and AdamW for all other weights. Muon learns
    more in a step, which takes longer."""
    weight_decay: float = 0.01
    """Decoupled weight decay, for matrices only."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay rates of AdamW's two moments of the gradient."""
    epsilon: float = 1e-8
    """AdamW's constant in the denominator."""
    clip: float | None = 1.0
    """Largest norm of the gradient; longer gradients are scaled down."""
    freeze: tuple[str, ...] = ()
    """Parts of the model whose weights stay as they are, by their place in it: `embedding stack.blocks.0`."""
    rate_factors: Annotated[dict[str, float], PAIRS] = field(default_factory=dict)
    """What the learning rate is multiplied by in parts of the model, by their place in it: `stack 0.1 head 2`. Of
    several places that hold a weight, the longest one counts."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Precision of matrix products; weights stay in float32. Auto uses bfloat16 where it is faster: on GPUs that
    support it, and on CPUs that support it for models of width 64 or more. Float16 is for GPUs without bfloat16: the
    loss is scaled, and a step whose gradients overflow is computed again with half the scale."""

    validate_every: int = 500
    """Steps between two validations."""
    save_every: int = 500
    """Steps between two checkpoints. Each validation also writes one."""
    average: int = 5
    """Number of last checkpoints to average in the end. The better one of the average and the best checkpoint is kept.
    1 disables averaging."""
    ema: float = 0.0
    """Validate and keep a moving average of the weights, in which the average before a step counts this much: 0.999
    reaches over about a thousand steps. 0 keeps the weights as they are."""
    log_every: int = 50
    """Steps between two lines of metrics.jsonl."""

    seed: int = 1
    """Seed of all random numbers."""
    device: str = "auto"
    """Device: "cpu", or PyTorch's name of another. Auto uses a GPU of this machine if there is one."""
    threads: int | None = None
    """Number of CPU threads; by default PyTorch's choice."""
    workers: int | None = None
    """Processes that prepare batches. By default as many as processors that training leaves free, where images are
    decoded whenever they are read, else none: then a thread does."""
    parallel: Literal["auto", "replicate", "shard", "tensor", "both"] = "auto"
    """Each of several processes (torchrun) has a replica of the model, a shard of it, or a part of each layer (tensor).
    Auto shards a model whose weights, gradients and optimizer state need more than half of a process' memory. Both:
    groups of processes split each layer, and each group has a shard."""
    split_among: int = 2
    """With parallel both: processes that split each layer."""
    recompute: bool = False
    """Compute each block a second time in the backward pass, instead of keeping its activations: less memory, more
    time."""
    compile: bool = False
    """Compile the model's forward and backward pass (torch.compile): a minute or more before the first step. On
    a CPU steps are hardly faster. Needs a compiler: g++ on a CPU, Triton on a GPU. On one process."""
    watch_attention: bool = False
    """At each validation also write how decided each head is: its entropy, largest score and the share of its sink.
    `foveate report` draws them."""
    tensorboard: bool = False
    """Also write TensorBoard logs (needs `pip install tensorboard`)."""

    def check(self) -> None:
        """Raise UserError for an invalid value."""
        for name in ("accumulate", "validate_every", "save_every", "average", "log_every", "split_among"):
            at_least(1, name, getattr(self, name))
        for name in ("steps", "epochs", "patience"):
            at_least(1, name, getattr(self, name) if getattr(self, name) is not None else 1)
        check_workers(self.workers or 0)
        check_threads(1 if self.threads is None else self.threads)
        check_seed(self.seed)
        at_least(0, "warmup", 0 if self.warmup is None else self.warmup)
        for name in ("weight_decay", "learning_rate"):
            at_least(0, name, getattr(self, name))
        for name in ("minutes", "clip", "epsilon"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise UserError(f"{name} is {getattr(self, name)}, but must be above 0")
        for name, shares in {"betas": self.betas, "ema": (self.ema,)}.items():
            for share in shares:
                if not 0 <= share < 1:
                    raise UserError(f"{name} is {share}, but must be at least 0 and below 1")
        check_literals(self)

    @property
    def splitting(self) -> int | None:
        """Processes that split each layer among them: 1, several, or all (None)."""
        return {"tensor": None, "both": self.split_among}.get(self.parallel, 1)

    @property
    def last_step(self) -> int | None:
        """The step that ends training; None if only epochs or minutes limit it."""
        return DEFAULT_STEPS if self.unlimited else self.steps

    @property
    def unlimited(self) -> bool:
        """Whether no limit is given."""
        return self.steps is None and self.epochs is None and self.minutes is None

    def saves(self, step: int) -> bool:
        """Returns whether a checkpoint is due after `step`."""
        return step % self.save_every == 0 or step % self.validate_every == 0

    def fixed(self) -> dict[str, Any]:
        """The settings that must not change when a training resumes, as JSON values."""
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in FREE}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def check_seed(seed: int) -> None:
    """Raise UserError for a seed that PyTorch does not accept."""
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}, but must be at least 0 and below 2 ** 63")


def check_threads(threads: int) -> None:
    """Raise UserError for an invalid number of threads."""
    at_least(1, "threads", threads)
    if threads > MOST_THREADS:
        raise UserError(f"threads is {threads}, but must be at most {MOST_THREADS}")
