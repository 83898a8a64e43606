"""`foveate size [PRESET]`: what a model costs to train and to run."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate import models
from foveate.cli.folders import is_model
from foveate.cli.parse import parse
from foveate.console import plain_console, print_table
from foveate.errors import UserError, at_least, at_most, one_of, unknown
from foveate.experiments.scaling_table import PETAFLOP_DAY, TABLE, count
from foveate.experiments.size import Size, measure_config, measure_part
from foveate.files import check_ending, check_place, written
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import is_public
from foveate.interop.through_transformers import is_ours
from foveate.interop.weight_files import weight_files
from foveate.nn import longest_sequence, without_memory
from foveate.tasks.start.weights import read_model_config
from foveate.tensor_files import read_shapes

GPUS = {
    "p100": (16e9, 18.7e12),
    "v100": (32e9, 125e12),
    "tpuv3": (32e9, 123e12),
    "a100": (80e9, 312e12),
    "h100": (80e9, 989e12),
    "h200": (141e9, 989e12),
    "b200": (192e9, 2250e12),
}
"""Memory in bytes and operations a second in half precision, as their makers state them."""

TRANSFORMER_LENGTH, OTHER_LENGTH = 1024, 128
"""Tokens of a sequence, where the model has positions for as many. A recurrent model takes a step for each."""

TENSOR_PARALLEL = 8
"""Devices of one machine, which share a layer at most."""


@dataclass
class SizeOptions:
    """Count the parameters, operations and memory of a preset or of the model in a folder, and what training takes.
    Without MODEL: the scaling table of published language models beside what is counted here."""

    model: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")] = None
    """A preset of `foveate models`, a folder of a trained model, or a name of trained weights such as smollm2."""
    vocabulary: int | None = None
    """Size of each vocabulary of a preset; by default that of its paper, or 8,000."""
    batch: int = 1
    """Sequences or images of a batch on one device."""
    length: int | None = None
    """Tokens of a sequence. By default 1,024 of a Transformer and 128 of other models, or as many as the model has
    positions for."""
    gpus: int = 1
    """Number of devices."""
    gpu: str = "h100"
    """Device: p100, v100, tpuv3, a100, h100, h200 or b200."""
    tokens: float = 300e9
    """Tokens to train on."""
    utilisation: float = 0.4
    """Share of the device's stated speed that a training reaches."""
    price: float = 2.0
    """Dollars of a device for an hour."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Other fields of the model that data decides, such as `--sizes classes 10`."""
    out: Path | None = None
    """Also write the table to this file, as Markdown (.md)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("batch", "gpus"):
            at_least(1, name, getattr(self, name))
        for name in ("vocabulary", "length"):
            at_least(1, name, 1 if getattr(self, name) is None else getattr(self, name))
        if self.gpu not in GPUS:
            raise unknown("device", self.gpu, GPUS)
        for name in ("tokens", "price"):
            at_least(0, name, getattr(self, name))
            at_most(1e30, name, getattr(self, name))
        if not 0 < self.utilisation <= 1:
            raise UserError(f"utilisation is {self.utilisation}, but must be above 0 and at most 1")


def main(arguments: Sequence[str]) -> None:
    options = parse(SizeOptions, arguments, "size")
    options.check()
    if options.out is not None:
        check_ending(options.out, ".md")
        check_place(options.out)
    headings, rows = _scaling() if options.model is None else _one(options, options.model)
    print_table(plain_console(), headings, rows)
    if options.out is not None:
        lines = ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
        with written(options.out) as path:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _scaling() -> tuple[list[str], list[list[str]]]:
    headings = ["model", "layers / width / heads", "parameters", "counted", "data", "training"]
    headings += ["petaFLOP/s-days published", "counted", "price"]
    rows = []
    for row in TABLE:
        counted = count(row)
        published = "" if row.flops is None else f"{row.flops / PETAFLOP_DAY:,.2f}"
        price = f"${row.devices * row.hours * row.price:,.0f}" if row.price else ""
        cells = ["undisclosed"] * 3 if counted is None else [counted.layout, f"{counted.parameters:,}", ""]
        if counted is not None and counted.petaflop_days is not None:
            cells[2] = f"{counted.petaflop_days:,.2f}"
        elif counted is not None and row.flops is not None:
            cells[2] = f"{row.flops / counted.flops_per_token / 1e9:,.0f} B tokens' worth"
        rows.append([row.name, cells[0], row.parameters, cells[1], row.data, row.training, published, cells[2], price])
    return headings, rows


def _one(options: SizeOptions, name: str) -> tuple[list[str], list[list[str]]]:
    if (others := _other_weights(options, name)) is not None:
        cells = [["parameters", f"{others:,}"], ["weights in half precision", _gigabytes(2 * others)]]
        return [name, "run by transformers"], cells
    family, model = _model_of_preset(options, name) if name in models.presets() else _model_of_folder(options, name)
    usual = TRANSFORMER_LENGTH if hasattr(model.config, "heads") else OTHER_LENGTH
    length = options.length or int(min(usual, longest_sequence(model)))
    size = measure_config(family, model.config, options.batch, length, model)
    memory, speed = GPUS[options.gpu]
    unit = "a token" if size.tokens > options.batch else "an example"
    rows = [
        ["parameters", f"{size.parameters:,}"],
        ["weights in half precision", _gigabytes(2 * size.parameters)],
        [f"operations of {unit}, forward", f"{size.forward_flops / size.tokens:.3g}"],
        [f"operations of {unit}, training", f"{size.training_flops / size.tokens:.3g}"],
        ["weights, gradients, AdamW", _gigabytes(16 * size.parameters)],
        ["activations of a batch, half precision", _gigabytes(size.activations / 2)],
    ]
    if size.cache:
        rows.append(["keys and values of a batch, half precision", _gigabytes(size.cache / 2)])
    config = model.config
    heads = getattr(config, "key_value_heads", None) or getattr(config, "heads", None) or 1
    for layout, (shards, parts) in _layouts(options.gpus, int(heads)).items():
        try:
            part = size if parts == 1 else measure_part(family, model.config, options.batch, length, parts)
        except UserError as error:
            rows.append([layout, str(error)])
        else:
            rows.append([layout, _fits(part, memory, shards)])
    seconds = size.training_flops / size.tokens * options.tokens / (options.gpus * speed * options.utilisation)
    dollars = options.gpus * options.price * seconds / 3600
    rows.append(
        [
            f"training on {options.tokens:.3g} {unit.split()[1]}s at {options.utilisation:.0%} of "
            f"{speed / 1e12:,.0f} TFLOP/s",
            f"{seconds / 86_400:,.1f} days, ${dollars:,.0f}",
        ]
    )
    return [name, f"{options.gpus:,} x {options.gpu}"], rows


def _model_of_preset(options: SizeOptions, name: str) -> tuple[str, Any]:
    """The family and the model of a preset on the device "meta", with the sizes that data decides."""
    preset = models.preset(name)
    sizes = preset.all_sizes(options.vocabulary)
    for given in options.sizes:
        one_of(f"size of {name} that data decides", given, sizes)
    return preset.family, models.create(name, device="meta", **sizes | options.sizes)


def _other_weights(options: SizeOptions, name: str) -> int | None:
    """The numbers in the weight files of a folder of which foveate has no model; None for all others."""
    folder = Path(name)
    if name in models.presets() or not is_public(folder) or is_ours(folder) or options.sizes or options.vocabulary:
        return None
    return sum(math.prod(shape) for file in weight_files(folder) for shape in read_shapes(file).values())


def _model_of_folder(options: SizeOptions, name: str) -> tuple[str, Any]:
    """The same of a folder, with the sizes that its own config has. Raises UserError where there is none."""
    if not is_model(name):
        raise unknown("preset, and no folder of a model,", name, models.presets())
    folder = locate(name, lambda line: print(line, file=sys.stderr))
    if options.sizes or options.vocabulary is not None:
        raise UserError("--sizes and --vocabulary are for presets: a folder has sizes of its own")
    family, config = read_model_config(folder)
    with without_memory():
        return family, models.build(family, config)


def _layouts(gpus: int, heads: int) -> dict[str, tuple[int, int]]:
    """The shards and the tensor-parallel parts of each way to divide the model among `gpus`. Heads are not split."""
    parts = max(parts for parts in range(1, min(gpus, TENSOR_PARALLEL) + 1) if gpus % parts == 0 == heads % parts)
    layouts = {"a whole model on each device": (1, 1)}
    if gpus > 1:
        layouts[f"shards on {gpus:,} devices"] = gpus, 1
    if parts > 1:
        layouts[f"layers in {parts} parts"] = 1, parts
        layouts[f"layers in {parts} parts, shards on {gpus // parts:,}"] = gpus // parts, parts
    return layouts


def _fits(part: Size, memory: float, shards: int) -> str:
    """Returns whether a device has the memory for its part of each layer, sharded, and what would."""
    needed = part.training_bytes(2, shards)
    if needed <= memory:
        return f"{_gigabytes(needed)}: fits"
    activations = part.activations / 2
    if activations >= memory:
        return f"{_gigabytes(needed)}: does not fit; the activations alone do not, lower the batch"
    enough = -(-16 * part.parameters // int(memory - activations))
    return f"{_gigabytes(needed)}: does not fit; {enough:,} shards of it would"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.2f} GB"
