"""Tiny trainings whose layers several processes split: `split_processes.py WAY FOLDER SIZE RANK` is one of them."""

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

import foveate
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.errors import UserError
from foveate.training import CrossEntropy, Training, train
from foveate.training.loss_scale import LossScale
from foveate.training.parallel import join_process_group
from foveate.training.update import Updater

WORDS = 19
SIZES = {"width": 16, "heads": 4, "feedforward": 24, "dropout": 0.0}
STACK = {**SIZES, "layers": 2, "vocabulary": WORDS}

LARGER = {"width": 64, "heads": 4, "feedforward": 256, "layers": 3, "vocabulary": 96}
"""Of a model whose memory is measured."""

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("gpt-tiny", STACK),
    "gopher": ("gopher-280b", {**STACK, "max_length": 32}),
    "relative": ("gpt-tiny", {**STACK, "positions": "relative"}),
    "llama": ("llama-7b", {**STACK, "heads": 8, "key_value_heads": 4}),
    "neox": ("pythia-70m", {**STACK, "rotary_width": 4}),
    "bert": ("bert-tiny", {**STACK, "attention_dropout": 0.0}),
    "transformer": (
        "transformer-tiny",
        {**SIZES, "encoder_layers": 1, "decoder_layers": 2, "src_vocab": WORDS, "tgt_vocab": WORDS},
    ),
    "vit": ("vit-tiny", {**SIZES, "layers": 2, "classes": 5, "channels": 1, "image_size": 8}),
}
"""Presets and their sizes here. Nothing divides the vocabulary, and four processes have no class of the ViT each."""

FOUR = ("gpt", "transformer")
"""Models whose layers four processes split too. Slices of their seven tokens are of two and of one."""

AGAIN = ("bert", "gopher")
"""Models whose blocks are computed again in the backward pass."""


class Sequences:
    """Batches of three and two rows of random words, or images, and what to predict for them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index in range(skip, 8):
            yield self.batch(10 * number + index)

    def batch(self, seed: int) -> Batch:
        generator, rows = torch.Generator().manual_seed(seed), 3 - seed % 2
        if self.kind == "vit":
            pixels = torch.randn(rows, 1, 8, 8, generator=generator)
            return label_batch({"pixels": pixels}, torch.randint(5, (rows, 1), generator=generator), "images")
        tokens, labels = (torch.randint(4, WORDS, (rows, 7), generator=generator) for _ in range(2))
        labels[0, 5:] = IGNORE
        inputs = {"tokens": tokens}
        if self.kind == "transformer":
            inputs = {"source": tokens, "source_lengths": torch.tensor([7, 5, 6][:rows]), "target": tokens}
        return label_batch(inputs, labels, "words")


def create(kind: str, **changed: Any) -> torch.nn.Module:
    name, sizes = MODELS[kind]
    torch.manual_seed(3)
    return foveate.create(name, **{**sizes, **changed})


def steps(
    kind: str, parallel: str = "auto", recompute: bool = False, precision: str = "float32"
) -> tuple[dict[str, torch.Tensor], list[float]]:
    """The gradients of a first step, the weights after two, and losses, accuracies and norms of all. In float16 the
    gradients of the first step overflow at first."""
    settings = Training(
        device="cpu", precision=precision, parallel=parallel, clip=0.5, epsilon=1e-3, recompute=recompute
    )  # type: ignore[arg-type]
    found: dict[str, torch.Tensor] = {}
    numbers = []
    with join_process_group(torch.device("cpu"), settings.splitting) as processes:
        updater = Updater(create(kind).train(), CrossEntropy(0.1), settings, processes)
        if updater.loss_scale is not None:
            updater.loss_scale = LossScale(2.0**40)

        def keep(*_: Any) -> None:
            for name, parameter in updater.placement.working.named_parameters():
                gradient = parameter.grad
                assert gradient is not None
                whole = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
                found.setdefault(f"gradient of {name}", whole.clone())

        updater.optimizer.register_step_pre_hook(keep)
        data = Sequences(kind)
        for number in (0, 1):
            update = updater([data.batch(number), data.batch(number + 1)], 0.01, number + 1)
            numbers += [update.sums["loss"], update.sums["accuracy"], update.gradient_norm]
            numbers += [updater.loss_scale.factor] if updater.loss_scale is not None else []
        with updater.placement.full_model() as model:
            found |= {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return found, numbers


def run(folder: Path, last: int, dropout: float = 0.0, parallel: str = "auto") -> dict[str, torch.Tensor]:
    """Train a tiny GPT to a step; a training in the folder is resumed."""
    model = create("gpt", dropout=dropout)
    settings = Training(
        steps=last,
        device="cpu",
        threads=1,
        precision="float32",
        epsilon=1e-3,
        save_every=2,
        validate_every=100,
        average=1,
        parallel=parallel,  # type: ignore[arg-type]
    )
    train(model, Sequences("gpt"), CrossEntropy(), settings, folder, console=Console(file=StringIO()))
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def memory(parallel: str) -> dict[str, int]:
    """Parameters of this process, and bytes that a forward pass keeps for the backward pass."""
    settings = Training(device="cpu", precision="float32", parallel=parallel)  # type: ignore[arg-type]
    kept: dict[int, torch.Tensor] = {}
    with join_process_group(torch.device("cpu"), settings.splitting) as processes:
        updater = Updater(create("gpt", **LARGER), CrossEntropy(), settings, processes)
        working = updater.placement.working

        def local(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to_local() if isinstance(tensor, DTensor) else tensor

        own = {local(parameter).untyped_storage().data_ptr() for parameter in working.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            place = local(tensor).untyped_storage().data_ptr()
            if place not in own:
                kept[place] = local(tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = working(**Sequences("gpt").batch(0).inputs)
        return {
            "logits": local(output.logits).numel(),
            "parameters": sum(local(parameter).numel() for parameter in working.parameters()),
            "activations": sum(tensor.untyped_storage().nbytes() for tensor in kept.values()),
        }


def refused(kind: str, parallel: str, **changed: Any) -> str:
    """What the user is told."""
    settings = Training(device="cpu", parallel=parallel)  # type: ignore[arg-type]
    try:
        with join_process_group(torch.device("cpu"), settings.splitting) as processes:
            Updater(create(kind, **changed), CrossEntropy(), settings, processes)
    except UserError as error:
        return str(error)
    return "nothing was wrong"


def main(way: str, folder: Path, rank: int) -> None:
    for kind in MODELS if way == "tensor" else ("gopher", "vit"):
        found, numbers = steps(kind, way, recompute=kind in AGAIN)
        if rank == 0:
            save_file(found, folder / f"{kind}.safetensors")
            (folder / f"{kind}.json").write_text(json.dumps(numbers), encoding="utf-8")
    if way == "tensor":
        _, numbers = steps("gpt", way, precision="float16")
        (folder / f"float16-{rank}.json").write_text(json.dumps(numbers), encoding="utf-8")
    if way == "both":
        for kind in FOUR:
            found, numbers = steps(kind, "tensor")
            if rank == 0:
                save_file(found, folder / f"{kind}-on-four.safetensors")
                (folder / f"{kind}-on-four.json").write_text(json.dumps(numbers), encoding="utf-8")
    run(folder / "parts", 2, 0.3, way)
    save_file(run(folder / "parts", 4, 0.3, way), folder / f"parts-{rank}.safetensors")
    save_file(run(folder / "whole", 4, 0.3, way), folder / f"whole-{rank}.safetensors")
    run(folder / "to-one", 2, parallel=way)
    run(folder / "from-one", 4, parallel=way)
    if way == "tensor":
        (folder / f"memory-{rank}.json").write_text(json.dumps(memory(way)), encoding="utf-8")
        told = [refused("gpt", way, heads=5, width=20), refused("gpt", way, feedforward=7)]
        (folder / f"told-{rank}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    way, place, size, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=number, world_size=size)
    main(way, place, number)
