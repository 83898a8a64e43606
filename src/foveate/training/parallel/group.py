"""One of several processes that train together: how they form a group, send each other values, and end together."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from foveate.accelerator import communication_backend, is_accelerator
from foveate.child_processes import end_with_parent
from foveate.contracts import Batch
from foveate.errors import UserError
from foveate.files import parse_json
from foveate.training.parallel import error_reporting
from foveate.training.parallel.batch_sharding import share
from foveate.training.parallel.launch import ProcessInfo, process_info
from foveate.training.parallel.processes import Json, Processes
from foveate.training.parallel.watch import DONE, FAILED, FOREVER, GONE, GRACE, Watch


class Group(Processes):
    """One of several processes. Entering it makes a process group if there is none."""

    def __init__(self, here: ProcessInfo, device: torch.device, splitting: int | None = 1) -> None:
        self.rank, self.size, self.local_size = here.rank, here.size, here.local_size
        self.splitting = here.size if splitting is None else splitting
        if here.size % self.splitting:
            raise UserError(f"{here.size} processes are not a multiple of the {self.splitting} that split each layer")
        self.device = device
        self._store: dist.Store | None = None
        self._watch: Watch | None = None

    def __enter__(self) -> "Group":
        if not dist.is_initialized():
            end_with_parent()
            self._store = _make_group(self)
        self._control = dist.new_group(backend="gloo", timeout=FOREVER)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After an error, a GPU may wait forever for pending operations.
        if self._store is not None and (error is None or self.device.type == "cpu"):
            dist.destroy_process_group()

    @contextmanager
    def watch(self) -> Iterator[None]:
        self._watch = watch = Watch(self.rank, self.size, self._report_missing)
        try:
            yield
        except BaseException as error:
            # A RuntimeError may mean that another process is missing; the watch knows soon.
            missing = isinstance(error, RuntimeError) and watch.broken(within=2.0)
            if missing:
                error_reporting.silence()
            else:
                error_reporting.claim(self._store)
            watch.leave(FAILED)
            dist.destroy_process_group(self._control)  # closes connections, so that no process waits for this one
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
        return share(batch, self.rank // self.splitting, self.groups)

    def total(self, values: Sequence[float]) -> list[float]:
        return self._reduced(values, dist.ReduceOp.SUM)

    def greatest(self, values: Sequence[float]) -> list[float]:
        return self._reduced(values, dist.ReduceOp.MAX)

    def on_main(self, work: Callable[[], Json]) -> Json:
        if not self.main:
            message = parse_json(bytes(self._bytes().tolist()), "a message of the main process", strict=False)
            if "error" in message:
                raise UserError(message["error"])
            return message["result"]
        try:
            result = work()
        except UserError as error:
            self._send({"error": str(error)})
            raise
        self._send({"result": result})
        return result

    def broadcast(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        def described() -> list[Any]:
            return [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in tensors.items()]

        layout = self.on_main(described)
        for name, dtype, shape in layout:
            kind = getattr(torch, dtype.removeprefix("torch."))
            tensor = tensors[name].detach().cpu().contiguous() if self.main else torch.empty(shape, dtype=kind)
            self._broadcast(tensor)
            yield name, tensor

    def gather(self, tensors: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
        found: list[dict[str, Tensor]] = [{} for _ in range(self.size)]
        for name, tensor in tensors.items():
            parts = [torch.empty_like(tensor) for _ in found]
            dist.all_gather(parts, tensor, group=self._control)
            for one, part in zip(found, parts, strict=True):
                one[name] = part
        return list(found)

    def synchronize(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            value = tensor.detach().cpu().contiguous()
            self._broadcast(value)
            if not self.main:
                tensor.detach().copy_(value)

    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]:
        reduced = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(reduced, operation, group=self._control)
        return reduced.tolist()

    def _send(self, value: Any) -> None:
        self._bytes(json.dumps(value).encode())

    def _bytes(self, content: bytes = b"") -> Tensor:
        """The bytes of the main process, in every process."""
        length = torch.tensor([len(content)])
        self._broadcast(length)
        received = torch.tensor(list(content) or [0] * int(length), dtype=torch.uint8)
        self._broadcast(received)
        return received

    def _broadcast(self, tensor: Tensor) -> None:
        # As bytes, because gloo does not support all types.
        dist.broadcast(tensor.reshape(-1).view(torch.uint8), 0, group=self._control)

    def _report_missing(self, word: float) -> None:
        """Called by the watch. The listener reports a process that ended without a message."""
        if word == GONE and error_reporting.claim(self._store):
            # At once, because the launcher kills the other processes. Not by print(), see Interruption.
            os.write(2, f"\nfoveate: {self._missing()}\n".encode())
            error_reporting.silence()

    def _missing(self) -> str:
        if self._watch is None or self._watch.word != GONE:
            return "another process of this training ended"
        return (
            f"rank {self._watch.next} of {self.size} processes ended without a message (killed, or out of memory?); "
            f"run the same command to continue from the last checkpoint"
        )


def join_process_group(device: torch.device, splitting: int | None = 1) -> Processes:
    """The processes of a training, for this process' `device`. To be entered by all of them.

    `splitting` processes, or all (None), split each layer among them.
    """
    here = process_info()
    return Processes() if here is None else Group(here, device, splitting)


def _make_group(group: Group) -> dist.Store:
    """Make the process group, of gloo for CPUs and what PyTorch has for accelerators."""
    backend = communication_backend(group.device)
    if is_accelerator(group.device):
        torch.accelerator.set_device_index(group.device)
    try:
        store, rank, size = next(dist.rendezvous("env://"))
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    except RuntimeError as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"the {group.size} processes of this training could not connect: {reason}") from None
    return store
