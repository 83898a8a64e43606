"""Low-rank updates as an adapter of the peft library, for `PeftModel.from_pretrained(base, folder)`.

The base is transformers' model of the weights that the training began from, with the class of the head.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from foveate.errors import UserError, one_line
from foveate.files import written
from foveate.interop.key_map import Entry, JoinedTransposed, KeyMap

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

PREFIX = "base_model.model."
"""What peft puts before the names of the base model."""

SIDES = {"down": "lora_A", "up": "lora_B"}
"""Our names of an update's two factors, and peft's."""

HEADS = ("head.", "output.")
"""What the names of a head's modules begin with."""

SAVED_WHOLE = "classifier"
"""The module that peft saves with all that it holds, whatever `modules_to_save` says of its parts."""


def write_adapter(
    folder: Path,
    base: Path,
    key_map: KeyMap,
    task: str | None,
    state: Mapping[str, Tensor],
    updates: Mapping[str, Tensor],
    scale: float,
) -> None:
    """Write the updates, and the head from a model's `state`. `task` is peft's "task_type".

    Where transformers has one layer for several of ours, such as for queries and values, their updates become one of
    the ranks' sum. Raises UserError for something else among the updates.
    """
    pairs = _pairs(key_map, updates)
    tensors, ranks = dict[str, Tensor](), dict[str, int]()
    for entry in map(_of_layers, key_map.entries):
        if any(part in pairs for part in entry.ours):
            sides = joined(entry, pairs, [state[f"{part}.weight"].shape[0] for part in entry.ours])
            ranks[entry.public] = len(sides[0])
            names = (f"{PREFIX}{entry.public}.{side}.weight" for side in SIDES.values())
            tensors |= dict(zip(names, sides, strict=True))
    if not ranks:
        raise UserError("the adapter has no updates")
    rank = max(ranks.values())
    others = {name: own for name, own in ranks.items() if own != rank}
    head = {theirs for ours, theirs in key_map.names.items() if f"{ours}.".startswith(HEADS)}
    public = key_map.to_public(state)
    own = {name: value for name, value in public.items() if name in head or name.rpartition(".")[0] in head}
    modules = {name.rpartition(".")[0] for name in own if name not in head}
    modules = {SAVED_WHOLE if one.startswith(f"{SAVED_WHOLE}.") else one for one in modules}
    values = {
        "peft_type": "LORA",
        "task_type": task,
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": scale * rank,
        "rank_pattern": others,
        "alpha_pattern": {name: scale * own for name, own in others.items()},
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": any(_is_transposed(entry) for entry in key_map.entries if entry.public in ranks),
        "target_modules": sorted(ranks),
        "modules_to_save": sorted(modules) or None,
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with written(folder / WEIGHTS) as path:
        save_file(tensors | {PREFIX + name: value.contiguous() for name, value in own.items()}, path, {"format": "pt"})
    with written(folder / CONFIG) as path:
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _of_layers(entry: Entry) -> Entry:
    """An entry of modules; one of their weights alone, such as the projections that a DeBERTa joins, as of these."""
    end, names = ".weight", (entry.public, *entry.ours)
    if not all(name.endswith(end) for name in names):
        return entry
    return Entry(tuple(name.removesuffix(end) for name in entry.ours), entry.public.removesuffix(end), entry.transform)


def joined(entry: Entry, pairs: Mapping[str, Mapping[str, Tensor]], rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The update (A, B) of a public layer from those of the layers of ours that it is made of, which have so many rows;
    some may have none."""
    downs = {part: pairs[part]["down"] for part in entry.ours if part in pairs}
    down, column, ups = torch.cat([*downs.values()]), 0, []
    for part, count in zip(entry.ours, rows, strict=True):
        up = torch.zeros(count, len(down), dtype=down.dtype)
        if part in downs:
            width = len(downs[part])
            up[:, column : column + width] = pairs[part]["up"]
            column += width
        ups.append(up)
    whole = entry.transform.join(ups)
    return down.contiguous(), (whole.T if _is_transposed(entry) else whole).contiguous()


def _is_transposed(entry: Entry) -> bool:
    return isinstance(entry.transform, JoinedTransposed)


def _pairs(key_map: KeyMap, updates: Mapping[str, Tensor]) -> dict[str, dict[str, Any]]:
    """Both sides of the update of each layer. Raises UserError for anything else."""
    found = dict[str, dict[str, Any]]()
    names = {part for entry in key_map.entries for part in _of_layers(entry).ours}
    for name, tensor in updates.items():
        layer, _, side = name.rpartition(".")
        if side in SIDES and layer not in names and f"{layer}.weight" in names:
            raise UserError(
                f"transformers has no layer for '{one_line(layer)}' that peft changes: export the whole model"
            )
        if layer not in names or side not in SIDES or tensor.ndim != 2:
            raise UserError(f"the adapter has the tensor '{one_line(name)}', which is not an update of a layer")
        found.setdefault(layer, {})[side] = tensor
    if one_sided := [layer for layer, sides in found.items() if len(sides) < len(SIDES)]:
        raise UserError(f"the adapter has one side of the update of '{one_line(one_sided[0])}' alone")
    return found
