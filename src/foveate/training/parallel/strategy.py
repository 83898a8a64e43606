"""The strategy of distribution: one whole model, replicas, shards, or a part of each layer."""

import math
from typing import Literal

import torch
from torch import nn

from foveate.accelerator import device_memory, is_accelerator
from foveate.errors import UserError
from foveate.training.parallel.launch import process_info
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.processes import Processes
from foveate.training.parallel.replicas import Replicas

BYTES = 16
"""Bytes for each weight in training: the weight, its gradient and AdamW's two moments, four bytes each."""

WEIGHT = 4
"""Bytes for each weight that is not trained."""


Parallel = Literal["auto", "replicate", "shard", "tensor", "both"]


def place(
    model: nn.Module, device: torch.device, parallel: Parallel, processes: Processes, split_logits: bool = False
) -> Placement:
    """Place `model` on the processes, each with its own `device`. "auto" chooses `parallel` by the size of the model.

    `split_logits`: the objective takes logits of which each process has a part.
    """
    if processes.size == 1:
        return Placement(model, device)
    if parallel in ("tensor", "both"):
        from foveate.training.parallel.split_layers import SplitLayers  # as below

        return SplitLayers(model, device, processes, parallel == "both", split_logits)
    (large,) = processes.greatest([is_large(model, device, processes.local_size)])
    if parallel == "shard" or (parallel == "auto" and large):
        # Here, because the import takes more than a second.
        from foveate.training.parallel.shards import Shards

        return Shards(model, device)
    return Replicas(model, device)


def is_large(model: nn.Module, device: torch.device, local_size: int) -> bool:
    """Returns whether a replica needs more than half of a process' memory, which leaves too little for activations.

    The processes of a machine share its main memory, but each has its own GPU.
    """
    memory = device_memory(device) / (1 if is_accelerator(device) else local_size)
    return BYTES * sum(parameter.numel() for parameter in model.parameters()) > memory / 2


def check_memory(model: nn.Module, device: torch.device, parallel: Parallel) -> None:
    """Raise UserError for a model, with or without weights, of which no process can hold what its training needs."""
    here = process_info()
    size, local_size = (1, 1) if here is None else (here.size, here.local_size)
    parameters = list(model.parameters())
    needed = sum(parameter.numel() * (BYTES if parameter.requires_grad else WEIGHT) for parameter in parameters)
    memory = device_memory(device) / (1 if is_accelerator(device) else local_size)
    shares = 1 if parallel == "replicate" else size
    if needed / shares <= memory:
        return
    count, holder = sum(parameter.numel() for parameter in parameters), "GPU" if is_accelerator(device) else "machine"
    who = "each process" if size > 1 else f"this {holder}"
    raise UserError(
        f"training {count:,} parameters takes {needed / 1e9:,.0f} GB (weights, gradients and AdamW's moments), but "
        f"{who} has {memory / 1e9:,.0f}: use a smaller model, or shards on "
        f"at least {math.ceil(needed / memory):,} processes with as much (--parallel shard)"
    )
