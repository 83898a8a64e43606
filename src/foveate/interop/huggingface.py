"""Opens Hugging Face folders: loads the model with the installed transformers, from local safetensors only.

Code in the folder is never run, nothing is unpickled, and nothing is downloaded.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foveate import run_dir
from foveate.data.tokens.library import check_growth
from foveate.data.tokens.public_tokenizer import TOKENIZER
from foveate.errors import UserError
from foveate.files import read_json, read_json_value
from foveate.interop.weight_files import (
    INDEX,
    WHOLE,
    check_names,
    check_whole,
    no_weights,
    refuse_adapters,
    shard_names,
)
from foveate.limits import check_file

LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Options for everything that transformers loads from a folder."""

WEIGHTS = (WHOLE, INDEX)
"""Files with the weights, unless the config names another file."""

READ_WHOLE = (".txt", ".model", ".jinja")
"""Endings of files beside JSON that transformers reads into memory at once, whatever their sizes."""

MAX_REASON = 200
"""Maximum number of characters of another library's error in an error message."""


def check_files(folder: Path) -> None:
    """Raise UserError for a file in a folder, or in its folders, that another library should not read: of more bytes or
    with other values than are read here, and a tokenizer that makes texts too long."""
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".json":
            value = read_json_value(file)
            if file.name == TOKENIZER and isinstance(value, dict):
                check_growth(value, file)
        elif file.suffix in READ_WHOLE:
            check_file(file)


def load(folder: Path, device: torch.device, whole: bool = False) -> nn.Module:
    """The model of a folder with its weights, in evaluation mode. Raises UserError if it cannot be opened safely, and
    with `whole` also for tensors of the folder that the model has not."""
    check_files(folder)
    transformers = import_transformers()
    with short_errors(f"transformers {transformers.__version__} cannot open {folder}"):
        config = transformers.AutoConfig.from_pretrained(folder, **LOCAL_ONLY)
        _check_weights(config, folder)
        _check_code(config, folder)
        kind = _model_class(transformers, config, folder)
        options = {**LOCAL_ONLY, "config": config, "use_safetensors": True, "output_loading_info": True}
        options["ignore_mismatched_sizes"] = True  # reported below, with the sizes
        model, found = kind.from_pretrained(folder, **options)
    for name, in_file, in_config in sorted(found.get("mismatched_keys", ())):
        sizes = f"{tuple(in_file)} in its file, but {tuple(in_config)} by config.json"
        raise UserError(f"{folder}: the tensor '{name}' has the size {sizes}")
    if whole and (spare := sorted(found.get("unexpected_keys", ()))):
        raise UserError(f"{folder} has the unknown tensor '{spare[0]}'")
    if missing := sorted(name for name in found["missing_keys"] if _matters(name, model)):
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        lacks = f"{folder} lacks the tensor '{missing[0]}'{more}"
        raise UserError(f"{lacks}: the attention of a {kind.__name__} would be random")
    return model.to(device).eval()


def import_transformers() -> Any:
    """Import transformers, which asks no network, and disable its messages. Raises UserError if it is not installed."""
    try:
        with _offline():
            import transformers
    except ImportError:
        raise UserError(
            "a Hugging Face folder needs the transformers library: pip install 'transformers>=5,<6'"
        ) from None
    transformers.logging.set_verbosity(logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def _offline() -> Iterator[None]:
    """Imports huggingface_hub offline. Code that imported it before may need the network, and child processes may."""
    if "huggingface_hub" in sys.modules or "HF_HUB_OFFLINE" in os.environ:
        yield
        return
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        del os.environ["HF_HUB_OFFLINE"]


def has_transformers() -> bool:
    """Returns whether transformers is installed."""
    try:
        import_transformers()
    except UserError:
        return False
    return True


@contextmanager
def short_errors(what: str) -> Iterator[None]:
    """Turn any error of another library into a UserError of one line; such errors may be pages long."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise UserError(f"{what}: {reason if len(reason) <= MAX_REASON else f'{reason[:MAX_REASON]}…'}") from error


def read_optional_json(folder: Path, name: str) -> dict[str, Any]:
    """The content of a JSON file in the folder; empty if there is no such file."""
    path = folder / name
    return read_json(path) if path.is_file() else {}


def vision_configs(config: Any) -> Iterator[Any]:
    """A config, and the configs in it that belong to the vision encoder."""
    yield config
    for name in ("encoder", "vision_config", "backbone_config"):
        if (part := getattr(config, name, None)) is not None:
            yield from vision_configs(part)


def _check_weights(config: Any, folder: Path) -> None:
    """Reject weights that are missing or pickled: transformers unpickles some file names whatever its options are."""
    refuse_adapters(folder)
    named = [str(value) for names, value in _leaves(config) if "transformers_weights" in names and value]
    for name in (files := named or [name for name in WEIGHTS if (folder / name).is_file()]):
        check_names([name.removesuffix(".index.json")], run_dir.CONFIG, folder)
        if name.endswith(".index.json"):
            check_names(shard_names(folder / name), name, folder)
            check_whole(folder, name)
    if not files:
        raise no_weights(folder)


def _check_code(config: Any, folder: Path) -> None:
    """Reject configs that would make transformers download code, which it may do even if remote code is not trusted."""
    for names, value in _leaves(config):
        name, code = next((name for name in names if "_implementation" in name), None), str(value)
        if name and "/" in code:
            raise UserError(
                f"{folder}: its {_public(name)} names code to download ('{code}'), which is never run; remove it"
            )
        if name and "flash" in code and not _installed(code):
            raise UserError(
                f"{folder}: its {_public(name)} is '{code}', which is not installed and is never downloaded; "
                "remove that entry from config.json, or set it to 'sdpa'"
            )


def _public(name: str) -> str:
    """The name of a config attribute in its file."""
    return name.strip("_").removesuffix("_internal")


def _installed(code: str) -> bool:
    """Returns whether this version of flash attention is installed, so that transformers does not download it."""
    check = getattr(import_transformers().utils, f"is_flash_attn_{code[-1]}_available", None)
    return check is not None and check()


def _leaves(value: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All values in a config, at any depth, with the names of the entries that contain them."""
    if isinstance(value, import_transformers().PreTrainedConfig):
        # The attributes, not the file, which may refer to another file or use other names.
        value = vars(value)
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(below, (*names, str(name)))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _leaves(below, names)
    else:
        yield names, value


def _model_class(transformers: Any, config: Any, folder: Path) -> Any:
    """The model class that the config names, if it is a class of transformers for this type of config."""
    for name in config.architectures or ["AutoModel"]:
        kind: Any = getattr(transformers, str(name), None)
        if name == "AutoModel":
            return kind
        base = transformers.PreTrainedModel
        if isinstance(kind, type) and issubclass(kind, base) and getattr(kind, "config_class", None) is type(config):
            return kind
    raise UserError(
        f"{folder} is a {', '.join(map(str, config.architectures))}, which is not a model of transformers "
        f"{transformers.__version__}; code in the folder is never run"
    )


def _matters(name: str, model: Any) -> bool:
    """Returns whether a tensor affects attention: heads and poolers come after it."""
    return "pooler" not in name and (model.base_model is model or name.startswith(f"{model.base_model_prefix}."))
