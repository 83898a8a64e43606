"""What the processes of one training tell each other, beside gradients: few numbers at each step, and who may go on.

`Processes` is the only process, `Group` one of several, with the same face. The main one, of rank 0, prints, writes
files and validates; the others wait for it as long as it takes. Nothing that is sent is a pickle.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from foveate.contracts import Batch
from foveate.errors import UserError
from foveate.training.parallel import error_reporting
from foveate.training.parallel.batch_sharding import share
from foveate.training.parallel.launch import ProcessInfo, process_info
from foveate.training.parallel.watch import DONE, FAILED, FOREVER, GONE, GRACE, Watch

Json = TypeVar("Json")


class Processes:
    """The only process: it agrees with itself."""

    rank, size, local_size = 0, 1, 1

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing was begun."""

    def watched(self) -> AbstractContextManager:
        """While it is entered, another process that ends is noticed, and an error here is told to the others."""
        return nullcontext()

    @property
    def main(self) -> bool:
        """Whether this process prints, writes and validates."""
        return self.rank == 0

    @property
    def broken(self) -> bool:
        """Whether another process has ended before its time."""
        return False

    def share(self, batch: Batch) -> Batch:
        """This process' examples of a batch."""
        return batch

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums of each process' values."""
        return list(values)

    def greatest(self, values: Sequence[float]) -> list[float]:
        """The greatest of each process' values."""
        return list(values)

    def on_main(self, work: Callable[[], Json]) -> Json:
        """What the main process' `work` gave (JSON values), or the UserError that it raised, at every process."""
        return work()

    def sent(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The main process' tensors on the CPU, one by one, at every process; what others give does not matter."""
        yield from tensors.items()

    def gathered(self, tensors: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
        """The tensors of every process, by its rank; they must have equal names and shapes everywhere."""
        return [tensors]

    def equalise(self, tensors: Iterable[Tensor]) -> None:
        """Give tensors everywhere the values that they have at the main process."""


class Group(Processes):
    """One of several processes. To be entered; makes a process group unless there is one."""

    def __init__(self, here: ProcessInfo, device: torch.device) -> None:
        self.rank, self.size, self.local_size = here.rank, here.size, here.local_size
        self.device = device
        self._store: dist.Store | None = None
        self._watch: Watch | None = None

    def __enter__(self) -> "Group":
        if not dist.is_initialized():
            self._store = _met(self)
        self._control = dist.new_group(backend="gloo", timeout=FOREVER)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After an error, a GPU may have operations that nobody will answer, and would wait for them.
        if self._store is not None and (error is None or self.device.type == "cpu"):
            dist.destroy_process_group()

    @contextmanager
    def watched(self) -> Iterator[None]:
        self._watch = watch = Watch(self.rank, self.size, self._tell_who_is_missing)
        try:
            yield
        except BaseException as error:
            # An operation fails where another process is missing; the watch knows, at once or after its neighbours.
            missing = isinstance(error, RuntimeError) and watch.broken(within=2.0)
            if missing:
                error_reporting.be_silent()
            else:
                error_reporting.claim(self._store)
            watch.leave(FAILED)
            dist.destroy_process_group(self._control)  # closes connections, so that nobody waits for this process
            watch.end(within=GRACE)
            if missing:
                raise UserError(self._missing()) from None
            raise
        watch.leave(DONE)
        watch.end()
        for group in (watch.group, self._control):
            dist.destroy_process_group(group)

    @property
    def broken(self) -> bool:
        return self._watch is not None and self._watch.broken()

    def share(self, batch: Batch) -> Batch:
        return share(batch, self.rank, self.size)

    def total(self, values: Sequence[float]) -> list[float]:
        return self._reduced(values, dist.ReduceOp.SUM)

    def greatest(self, values: Sequence[float]) -> list[float]:
        return self._reduced(values, dist.ReduceOp.MAX)

    def on_main(self, work: Callable[[], Json]) -> Json:
        if not self.main:
            told = json.loads(bytes(self._bytes().tolist()))
            if "error" in told:
                raise UserError(told["error"])
            return told["result"]
        try:
            result = work()
        except UserError as error:
            self._tell({"error": str(error)})
            raise
        self._tell({"result": result})
        return result

    def sent(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        def described() -> list[Any]:
            return [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in tensors.items()]

        layout = self.on_main(described)
        for name, dtype, shape in layout:
            kind = getattr(torch, dtype.removeprefix("torch."))
            tensor = tensors[name].detach().cpu().contiguous() if self.main else torch.empty(shape, dtype=kind)
            self._broadcast(tensor)
            yield name, tensor

    def gathered(self, tensors: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
        found: list[dict[str, Tensor]] = [{} for _ in range(self.size)]
        for name, tensor in tensors.items():
            parts = [torch.empty_like(tensor) for _ in found]
            dist.all_gather(parts, tensor, group=self._control)
            for one, part in zip(found, parts, strict=True):
                one[name] = part
        return list(found)

    def equalise(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            value = tensor.detach().cpu().contiguous()
            self._broadcast(value)
            if not self.main:
                tensor.detach().copy_(value)

    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]:
        reduced = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(reduced, operation, group=self._control)
        return reduced.tolist()

    def _tell(self, value: Any) -> None:
        self._bytes(json.dumps(value).encode())

    def _bytes(self, told: bytes = b"") -> Tensor:
        """The main process' bytes, at every process."""
        length = torch.tensor([len(told)])
        self._broadcast(length)
        content = torch.tensor(list(told) or [0] * int(length), dtype=torch.uint8)
        self._broadcast(content)
        return content

    def _broadcast(self, tensor: Tensor) -> None:
        # As bytes, because gloo does not know all types.
        dist.broadcast(tensor.reshape(-1).view(torch.uint8), 0, group=self._control)

    def _tell_who_is_missing(self, word: float) -> None:
        """Called by the watch. The listener speaks for a process that ended without a word."""
        if word == GONE and error_reporting.claim(self._store):
            # At once, because a launcher that misses a process kills the others. For print(), see Interruption.
            os.write(2, f"\nfoveate: {self._missing()}\n".encode())
            error_reporting.be_silent()

    def _missing(self) -> str:
        if self._watch is None or self._watch.word != GONE:
            return "another process of this training ended"
        return (
            f"rank {self._watch.next} of {self.size} processes ended without a word (killed, or out of memory?); the "
            f"same command goes on from the last checkpoint"
        )


def join_process_group(device: torch.device) -> Processes:
    """The processes of a training on this `device` (the others have their own); to be entered by all of them."""
    here = process_info()
    return Processes() if here is None else Group(here, device)


def _met(group: Group) -> dist.Store:
    """Make the process group: gloo between CPUs, NCCL between GPUs."""
    backend = "gloo"
    if group.device.type == "cuda":
        torch.cuda.set_device(group.device)
        backend = "cpu:gloo,cuda:nccl"
    try:
        store, rank, size = next(dist.rendezvous("env://"))
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    except RuntimeError as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"the {group.size} processes of this training did not find each other: {reason}") from None
    return store
