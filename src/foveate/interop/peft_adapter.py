"""Low-rank updates of a BERT as an adapter of the peft library, for `PeftModel.from_pretrained(base, folder)`.

The base is transformers' `AutoModelForSequenceClassification` of the weights that the training began from.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from foveate.errors import UserError, one_line
from foveate.files import written
from foveate.interop.keys import bert
from foveate.models.text.bert import BertConfig

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

PREFIX = "base_model.model."
"""What peft puts before the names of the base model."""

SIDES = {"down": "lora_A", "up": "lora_B"}
"""Our names of an update's two factors, and peft's."""


def write_adapter(
    folder: Path,
    base: Path,
    config: BertConfig,
    state: Mapping[str, Tensor],
    updates: Mapping[str, Tensor],
    scale: float,
) -> None:
    """Write the updates, and the head from a model's `state`. UserError for a model that transformers has not."""
    if config.head != "text" or config.pooling != "first":
        raise UserError("transformers' classifier reads the first token: train with --architecture.pooling first")
    key_map = bert.key_map(config)
    names = key_map.names
    tensors, layers, ranks = {}, set(), set()
    for name, tensor in updates.items():
        layer, _, side = name.rpartition(".")
        if layer not in names or side not in SIDES or tensor.ndim != 2:
            raise UserError(f"the adapter has the tensor '{one_line(name)}', which is not an update of a layer")
        layers.add(names[layer])
        ranks.add(tensor.shape[0 if side == "down" else 1])
        tensors[f"{PREFIX}{names[layer]}.{SIDES[side]}.weight"] = tensor.contiguous()
    if len(ranks) != 1:
        raise UserError(
            "the adapter has no updates" if not ranks else f"the adapter has updates of ranks {sorted(ranks)}"
        )
    (rank,) = ranks
    head = {theirs for ours, theirs in names.items() if ours.startswith("head.")}
    for name, tensor in key_map.to_public(state).items():
        if name.rpartition(".")[0] in head:
            tensors[PREFIX + name] = tensor.contiguous()
    values = {
        "peft_type": "LORA",
        "task_type": "SEQ_CLS",
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": scale * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(layers),
        "modules_to_save": sorted(head),
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with written(folder / WEIGHTS) as path:
        save_file(tensors, path, {"format": "pt"})
    with written(folder / CONFIG) as path:
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
