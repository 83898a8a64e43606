"""One step of training: forward, backward, clip, update."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from foveate.accelerator import read_numbers
from foveate.contracts import Batch, Output
from foveate.errors import UserError
from foveate.finite import NotFinite
from foveate.training.compilation import compiled_forward
from foveate.training.hardware import autocast_type, choose_device
from foveate.training.loss_scale import LossScale
from foveate.training.moving_average import MovingAverage
from foveate.training.objectives.objective import CrossEntropy, Loss, Objective
from foveate.training.optimizers import FACTOR, optimizer
from foveate.training.parallel import Processes, fingerprint, place
from foveate.training.rates import freeze
from foveate.training.recomputation import recompute_blocks
from foveate.training.settings import Training


@dataclass
class Update:
    """The result of one step."""

    weight: int
    """What the loss is divided by: target tokens that count, boxes."""
    sums: dict[str, float]
    """The loss and the logged values of the objective, summed."""
    gradient_norm: float
    """Before clipping."""
    learning_rate: float


class Updater:
    """Updates `model` by one step of its optimizer at each call. Moves the model to the device of the settings.

    Several processes share the examples of a step and get the same result.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, settings: Training, processes: Processes | None = None
    ) -> None:
        self.device = choose_device(settings.device)
        self.processes = processes or Processes()
        freeze(model, settings)
        self.placement = place(
            model, self.device, settings.parallel, self.processes, split_logits=type(objective) is CrossEntropy
        )
        if settings.recompute:
            recompute_blocks(self.placement.working)
        self.forward: Callable[..., Output] = self.placement
        if settings.compile:
            self.forward = compiled_forward(self.placement, self.processes)
        self.placement.average = MovingAverage(settings.ema) if settings.ema else None
        self.objective = objective
        self.settings = settings
        self.optimizer = optimizer(self.placement.working, settings, self.device)
        wanted = autocast_type(settings.precision, model, self.device)
        # What is faster was measured by each process; all of them compute in the same precision.
        agreed = self.processes.total([float(wanted is not None)])[0] == self.processes.size
        self.autocast_type = wanted if agreed else None
        self.loss_scale = LossScale() if self.autocast_type is torch.float16 else None

    def __call__(self, group: list[Batch], rate: float, step: int) -> Update:
        """One step on the batches of `group`. The loss is divided by their weight.

        Raises NotFinite, without a change of weights, if a loss or the gradient is not finite.
        """
        weight = sum(batch.total_weight for batch in group)
        statistics = [] if self.loss_scale is None else _statistics(self.placement.working)
        before = [value.clone() for value in statistics]
        totals, sums, norm = self._gradients(group, weight, step)
        while self.loss_scale is not None and self.loss_scale.factor > 1 and _overflows(totals, norm):
            self.optimizer.zero_grad()
            for value, kept in zip(statistics, before, strict=True):
                value.copy_(kept)
            self.loss_scale = self.loss_scale.after(overflow=True)
            totals, sums, norm = self._gradients(group, weight, step)
        self._refuse_non_finite(group, totals, norm, step)
        if self.loss_scale is not None:
            self.loss_scale = self.loss_scale.after(overflow=False)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate * parameters[FACTOR]
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.placement.average is not None:
            self.placement.average.update(self.placement.state(), step)
        return Update(weight, sums, norm, rate)

    def refuse_non_finite_weights(self, step: int) -> None:
        """Raise NotFinite where a weight or a statistic of the model is not finite, before it is validated or saved.
        Called by all processes."""
        if (name := self.placement.not_finite(self.processes)) is not None:
            raise NotFinite(f"step {step} stopped: '{name}' of the model is not finite any more")

    def _gradients(self, group: list[Batch], weight: int, step: int) -> tuple[list[float], dict[str, float], float]:
        """Compute the gradients of a step, clipped. Returns what `_summed` does, and their norm before."""
        losses = [self._backward(batch, max(weight, 1), number == len(group)) for number, batch in enumerate(group, 1)]
        norm, *numbers = read_numbers([self._clip(), *(number for loss in losses for number in _numbers(loss))])
        return *self._summed(losses, numbers, group, step), norm

    def _backward(self, batch: Batch, weight: int, last: bool) -> Loss:
        batch = self.processes.share(batch).to(self.device)
        with self.placement.gradients_of(last):
            with torch.autocast(self.device.type, self.autocast_type, enabled=self.autocast_type is not None):
                output = self.forward(**batch.inputs)
            loss = self.objective(output, batch)
            if batch.padding:
                loss = Loss(0 * loss.total, {name: 0 * value for name, value in loss.log.items()})
            # Gradients are averaged over groups of processes, but must be summed.
            scale = 1.0 if self.loss_scale is None else self.loss_scale.factor
            (loss.total * self.processes.groups / weight * scale).backward()
        return Loss(loss.total.detach(), loss.log)

    def _clip(self) -> Tensor:
        parameters = list(self.placement.working.parameters())
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if self.loss_scale is not None:
            self.placement.scale(gradients, 1 / self.loss_scale.factor)
        norm = self.placement.norm(gradients)
        if self.settings.clip is not None:
            self.placement.clip(parameters, self.settings.clip, norm)
        return norm

    def _summed(
        self, losses: list[Loss], numbers: list[float], group: list[Batch], step: int
    ) -> tuple[list[float], dict[str, float]]:
        """The loss of each batch, and the sums of losses and logged values, over all processes; `numbers` are those of
        this process, in turn."""
        logged: Counter[str] = Counter()
        own, read = [], iter(numbers)
        for loss in losses:
            own.append(next(read))
            logged.update({name: next(read) for name in loss.log})
        data = fingerprint(group)
        sums = self.processes.total([data, *own, *logged.values()])
        if sums[0] != data * self.processes.size:
            raise UserError(f"step {step} stopped: the processes read different data; give all of them the same data")
        sums = [value / self.processes.splitting for value in sums]  # processes that split layers have the same losses
        totals = sums[1 : 1 + len(losses)]
        return totals, {"loss": sum(totals), **dict(zip(logged, sums[1 + len(losses) :], strict=True))}

    def _refuse_non_finite(self, group: list[Batch], totals: list[float], norm: float, step: int) -> None:
        for batch, total in zip(group, totals, strict=True):
            if not math.isfinite(total):
                self._refuse(f"the loss is {total}", batch.source, step)
        if not math.isfinite(norm):
            self._refuse(f"the norm of the gradient is {norm}", " and ".join(batch.source for batch in group), step)

    def _refuse(self, what: str, where: str, step: int) -> None:
        raise NotFinite(f"step {step} stopped: {what} on {where}; the weights were not changed")

    @property
    def advice(self) -> str:
        """What may help against numbers that are not finite; REMEDIES may change when a training resumes."""
        precision = " or precision float32" if self.autocast_type is not None else ""
        return f"try a learning_rate below {self.settings.learning_rate:g}, a longer warmup{precision}"


def _statistics(model: nn.Module) -> list[Tensor]:
    """What the batch norms of a model have counted of the examples that they saw."""
    norms = [part for part in model.modules() if isinstance(part, nn.modules.batchnorm._NormBase)]
    return [value for norm in norms for value in norm.buffers(recurse=False)]


def _overflows(totals: list[float], norm: float) -> bool:
    """Returns whether gradients are not finite, of losses that are."""
    return not math.isfinite(norm) and all(map(math.isfinite, totals))


def _numbers(loss: Loss) -> list[Tensor]:
    """The loss and what is logged with it."""
    return [loss.total, *loss.log.values()]
