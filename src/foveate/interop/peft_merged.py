"""Adapters of the peft library that are read: low-rank updates and whole modules, merged into a copy of their base.

W' = W + scale B A        of a layer with weights (O, I), A (R, I), B (O, R)
"""

import hashlib
import math
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from torch import Tensor

from foveate import run_dir
from foveate.data.sources.cache import fetched
from foveate.errors import UserError, show_value
from foveate.files import read_json
from foveate.interop.key_map import JoinedTransposed, KeyMap
from foveate.interop.peft_adapter import CONFIG, PREFIX, WEIGHTS
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_values, write_tensors
from foveate.interop.weight_files import weight_files
from foveate.tensor_files import read_tensors

HEADS = {"CAUSAL_LM": "words", "SEQ_CLS": "text", "TOKEN_CLS": "tokens", "QUESTION_ANS": "span"}
"""What the model of each "task_type" predicts."""

REFUSED: dict[str, tuple[Any, ...]] = {
    "use_dora": (False,),
    "use_qalora": (False,),
    "lora_bias": (False,),
    "layer_replication": (),
    "trainable_token_indices": (),
    "target_parameters": (),
    "megatron_config": (),
    "alora_invocation_tokens": (),
}
"""Settings that change the merged weights and are not obeyed, and the values that change nothing; null changes none."""

PARTS = {"lora_A": "down", "lora_B": "up", "lora_embedding_A": "down", "lora_embedding_B": "up"}

COPIED = ("*.json", "*.model", "*.txt", "*.jinja", "*.spm")
"""The files of a folder beside its weights."""


def merged(folder: Path, announce: Callable[[str], None]) -> Path:
    """The folder in the cache with an adapter's base, into which it is merged.

    Raises UserError for an adapter that is damaged or of another kind, and where its base is not a folder here.
    """
    values = read_json(folder / CONFIG)
    base = base_of(folder, values)
    key = hashlib.blake2b(digest_size=8)
    for path in (folder / CONFIG, folder / WEIGHTS, *weight_files(base), base / run_dir.CONFIG):
        if path.is_file():
            key.update(f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    name = f"{folder.resolve().name}-{key.hexdigest()}"
    before = lambda place: announce(f"merging {folder} and its base {base} into {place}")  # noqa: E731
    return fetched(name, lambda place: merge(folder, values, base, place), before)


def base_of(folder: Path, values: Mapping[str, Any]) -> Path:
    """The folder of the weights that an adapter changes. Raises UserError where it is not here."""
    named = values.get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise UserError(f"{folder / CONFIG} does not name its base model")
    for base in (Path(named), folder / named):
        if (base / run_dir.CONFIG).is_file():
            return base
    raise UserError(f"{folder} is an adapter of {named}, which is no folder here: write its folder into {CONFIG}")


def merge(folder: Path, values: Mapping[str, Any], base: Path, place: Path) -> None:
    """Write the merged model."""
    check_settings(values, str(folder / CONFIG))
    if not (folder / WEIGHTS).is_file():
        raise UserError(f"{folder} has no {WEIGHTS}")
    state = {name: value for file in weight_files(base) for name, value in read_tensors(file).tensors.items()}
    config = read_values(base)
    config = with_head(state, config, str(values.get("task_type")))
    table, updates = table_of(config, str(base / run_dir.CONFIG)), dict[str, dict[str, Tensor]]()
    bare = not any(name.startswith(table.prefix) for name in state)
    for name, tensor in read_tensors(folder / WEIGHTS).tensors.items():
        module, _, leaf = name.removeprefix(PREFIX).removesuffix(".weight").rpartition(".")
        if leaf in PARTS:
            updates.setdefault(module, {})[PARTS[leaf]] = tensor
            if "embedding" in leaf:
                updates[module]["embedding"] = tensor
        elif "lora_" in name:
            raise UserError(f"{folder} has the tensor '{name}', which foveate does not obey")
        elif ".original_module." not in name:
            own = name.removeprefix(PREFIX).replace(".base_layer.", ".").replace(".modules_to_save.", ".")
            own = name_in(state, own) or (own.removeprefix(table.prefix) if bare else own)
            state[own] = tensor
            for copy in [copy for copy, name in table.tied.items() if name == own and copy in state]:
                del state[copy]  # which is tied to it
    untie(state, config, updates, table.tied)
    turned = [entry.public for entry in table.entries if isinstance(entry.transform, JoinedTransposed)]
    for module, parts in updates.items():
        layer = name_in(state, f"{module}.weight")
        if layer is None or len(parts) < 2:
            raise UserError(f"{folder} changes '{module}', which its base {base} lacks")
        turn = "embedding" in parts or any(f".{module}".endswith(f".{one}") for one in turned)
        turn = turn or (not table.entries and bool(values.get("fan_in_fan_out")))
        state[layer] = updated(state[layer], parts, scale_of(module, values), turn, f"{folder}: '{module}'")
    if (rows := classes_of(state)) is not None and len(config.get("id2label") or {}) != rows:
        config["id2label"] = {str(number): f"LABEL_{number}" for number in range(rows)}
        config["label2id"] = {f"LABEL_{number}": number for number in range(rows)}
    write_tensors(place, state, config)
    for source in (base, folder):
        for pattern in COPIED:
            for path in source.glob(pattern):
                if path.name not in (run_dir.CONFIG, CONFIG) and not path.name.endswith(".index.json"):
                    shutil.copyfile(path, place / path.name)


def check_settings(values: Mapping[str, Any], where: str) -> None:
    """Raise UserError for an adapter that is not of low-rank updates, or has a setting that is not obeyed."""
    if (kind := values.get("peft_type")) != "LORA":
        raise UserError(f"{where} is an adapter of the type {show_value(kind)}; foveate reads LORA")
    for name, plain in REFUSED.items():
        if (value := values.get(name)) is not None and value not in plain:
            raise UserError(f"{where} has {name} {show_value(value)}, which foveate does not obey")
    for name in ("r", "lora_alpha"):
        if not isinstance(values.get(name), int | float) or isinstance(values[name], bool) or not values[name] > 0:
            raise UserError(f"{where} has {name} {show_value(values.get(name))}, but must have a number above 0")


def with_head(state: dict[str, Tensor], config: Mapping[str, Any], task: str) -> dict[str, Any]:
    """The base's config with the class of the adapter's task; the tensors of another head leave `state`."""
    found, kind = dict(config), config.get("model_type")
    if task not in HEADS or kind not in MODEL_TYPES:
        return found
    layout, named = layout_at(MODEL_TYPES[str(kind)]), config.get("architectures") or [None]
    if layout.architectures.get(named[0]) == HEADS[task]:
        return found
    own = next((name for name, head in layout.architectures.items() if head == HEADS[task]), None)
    if own is None:
        raise UserError(f"the adapter is of the task {task}, for which foveate has no {kind}")
    for name in [name for name in state if any(fnmatchcase(name, one) for one in (*layout.heads, "lm_head.*"))]:
        del state[name]
    return {**found, "architectures": [own]}


def table_of(config: Mapping[str, Any], where: str) -> KeyMap:
    """The table of tensors of a base; an empty one for a type that foveate has not."""
    if (kind := config.get("model_type")) not in MODEL_TYPES:
        return KeyMap(())
    layout = layout_at(MODEL_TYPES[str(kind)])
    return layout.key_map(layout.read_config(config, where))


def untie(state: dict[str, Tensor], config: dict[str, Any], updates: Collection[str], tied: Mapping[str, str]) -> None:
    """Give a tied model an output matrix of its own where only its embeddings are updated, as peft has it."""
    for copy, name in tied.items():
        own = name_in(state, name)
        if own is not None and copy not in state and any(name_in(state, f"{one}.weight") == own for one in updates):
            state[copy], config["tie_word_embeddings"] = state[own].clone(), False


def name_in(state: Mapping[str, Tensor], name: str) -> str | None:
    """The name of a tensor in a file, which may lack the name of the body before it, or have it; None where there is
    none."""
    if name in state:
        return name
    found = [one for one in state if name.endswith(f".{one}") or one.endswith(f".{name}")]
    return found[0] if len(found) == 1 else None


def scale_of(module: str, values: Mapping[str, Any]) -> float:
    """What the update of a module is multiplied by."""
    rank, alpha = (
        next((value for part, value in (values.get(pattern) or {}).items() if _matches(module, part)), values[usual])
        for pattern, usual in (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha"))
    )
    return float(alpha) / (math.sqrt(rank) if values.get("use_rslora") else rank)


def _matches(module: str, pattern: str) -> bool:
    """As peft finds the modules of a pattern."""
    try:
        return re.match(rf"(.*\.)?({pattern})$", module) is not None
    except re.error as error:
        raise UserError(f"{CONFIG} has the pattern {show_value(pattern)}, which cannot be read: {error}") from None


def updated(weight: Tensor, parts: Mapping[str, Tensor], scale: float, turn: bool, what: str) -> Tensor:
    """The weights with an update, which is turned for embeddings and for layers that keep inputs first.

    Raises UserError for factors of other sizes.
    """
    down, up = parts["down"].float(), parts["up"].float()
    if down.ndim != 2 or up.ndim != 2 or weight.ndim != 2 or down.shape[0] != up.shape[1]:
        raise UserError(f"{what} has factors {tuple(down.shape)} and {tuple(up.shape)}, which is no update of a layer")
    change = scale * (up @ down)
    change = change.T if turn else change
    if change.shape != weight.shape:
        raise UserError(f"{what} has an update of {tuple(change.shape)}, but weights of {tuple(weight.shape)}")
    return (weight.float() + change).to(weight.dtype)


def classes_of(state: Mapping[str, Tensor]) -> int | None:
    """The labels of a classifier's last layer; None where there is none."""
    names = ("score.weight", "classifier.weight", "classifier.out_proj.weight", "qa_outputs.weight")
    return next((len(state[name]) for name in names if name in state), None)
