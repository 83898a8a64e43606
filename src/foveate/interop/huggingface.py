"""Opening a folder of Hugging Face's: its model by the installed transformers, from safetensors on this disk alone.

Code that lies in such a folder is never run, nothing is unpickled, and no network is asked for what it lacks.
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

from foveate import bundle
from foveate.errors import UserError
from foveate.files import read_json

FROM_DISK: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""How everything of a folder is opened."""

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
"""Where the weights are, unless the config names another file."""

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")

TOLD = 200
"""Characters of another library's error that are passed on."""


def load(folder: Path, device: torch.device) -> nn.Module:
    """The model of a folder with its own weights, in evaluation mode. Raises UserError where anything is amiss."""
    transformers = library()
    with told(f"transformers {transformers.__version__} cannot open {folder}"):
        config = transformers.AutoConfig.from_pretrained(folder, **FROM_DISK)
        _check_weights(config, folder)
        _check_code(config, folder)
        kind = _model_class(transformers, config, folder)
        options = {**FROM_DISK, "config": config, "use_safetensors": True, "output_loading_info": True}
        model, found = kind.from_pretrained(folder, **options)
    if missing := sorted(name for name in found["missing_keys"] if _matters(name, model)):
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        lacks = f"{folder} lacks the tensor '{missing[0]}'{more}"
        raise UserError(f"{lacks}: where a {kind.__name__} looks would be chance")
    return model.to(device).eval()


def library() -> Any:
    """The transformers library, told to be quiet. Raises UserError where it is not installed."""
    if "huggingface_hub" not in sys.modules:  # whoever loaded it before may want more of it than folders
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
    except ImportError:
        raise UserError(
            "this is a folder of Hugging Face's, which needs the transformers library: pip install 'transformers>=5,<6'"
        ) from None
    transformers.logging.set_verbosity(logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def told(what: str) -> Iterator[None]:
    """Whatever goes wrong in another library, in one line: it raises all kinds of errors, with pages of text."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise UserError(f"{what}: {reason if len(reason) <= TOLD else f'{reason[:TOLD]}…'}") from error


def config_file(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder; nothing where there is none."""
    path = folder / name
    return read_json(path) if path.is_file() else {}


def parts(config: Any) -> Iterator[Any]:
    """A config, and those in it that are of the part that sees."""
    yield config
    for name in ("encoder", "vision_config", "backbone_config"):
        if (part := getattr(config, name, None)) is not None:
            yield from parts(part)


def _check_weights(config: Any, folder: Path) -> None:
    """Refuse weights that are not there, or would be unpickled: the library unpickles by name, whatever it is told."""
    if (folder / "adapter_config.json").is_file():
        raise UserError(f"{folder} holds an adapter to another model: merge the two and save the whole")
    named = [str(value) for names, value in _leaves(config) if "transformers_weights" in names and value]
    for name in (files := named or [name for name in WEIGHTS if (folder / name).is_file()]):
        _check_names([name.removesuffix(".index.json")], bundle.CONFIG, folder)
        if name.endswith(".index.json"):
            _check_names(_shards(folder / name), name, folder)
    if files:
        return
    if pickled := sorted(path.name for pattern in PICKLED for path in folder.glob(pattern)):
        raise UserError(
            f"{folder} has its weights as {pickled[0]} only, which may run code when it is opened; "
            "foveate reads model.safetensors: save it again with save_pretrained"
        )
    raise UserError(f"{folder} has no model.safetensors: there are no weights to run")


def _shards(index: Path) -> list[Any]:
    """The files that an index parts the weights among. Raises UserError where it is damaged."""
    shards = read_json(index).get("weight_map")
    if not isinstance(shards, dict):
        raise UserError(f"{index} is damaged: it has no weight_map")
    return list(shards.values())


def _check_names(names: list[Any], where: str, folder: Path) -> None:
    """Refuse weights that are no safetensors, or lie outside of the folder."""
    for name in map(str, names):
        path = Path(name)
        if not name.endswith(".safetensors") or path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"{folder}: its {where} has weights in '{name}', which is not opened; "
                "foveate reads safetensors of the folder itself: save it again with save_pretrained"
            )


def _check_code(config: Any, folder: Path) -> None:
    """Refuse what would have the library fetch code from elsewhere, even where remote code is not trusted."""
    for names, value in _leaves(config):
        name, code = next((name for name in names if "_implementation" in name), None), str(value)
        if name and "/" in code:
            raise UserError(
                f"{folder}: its {_public(name)} is code to be fetched ('{code}'), which is never run; remove that entry"
            )
        if name and "flash" in code and not _installed(code):
            raise UserError(
                f"{folder}: its {_public(name)} is '{code}', which is not installed here and never fetched; "
                "remove that entry from config.json, or set it to 'sdpa'"
            )


def _public(name: str) -> str:
    """What an attribute of a config is called in its file."""
    return name.strip("_").removesuffix("_internal")


def _installed(code: str) -> bool:
    """Whether flash attention of this version is there, so that the library need not fetch it."""
    check = getattr(library().utils, f"is_flash_attn_{code[-1]}_available", None)
    return check is not None and check()


def _leaves(value: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Whatever stands in a config, however deep, with the names of the entries that it lies below."""
    if isinstance(value, library().PreTrainedConfig):
        # As the library made it: its file may lead to another, or call what it sets by other names.
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
    """The class that the folder's config names, if it is one of the library's for such a config."""
    for name in config.architectures or ["AutoModel"]:
        kind: Any = getattr(transformers, str(name), None)
        if name == "AutoModel":
            return kind
        base = transformers.PreTrainedModel
        if isinstance(kind, type) and issubclass(kind, base) and getattr(kind, "config_class", None) is type(config):
            return kind
    raise UserError(
        f"{folder} is a {', '.join(map(str, config.architectures))}, which is no model of transformers "
        f"{transformers.__version__}; code that lies in a folder is never run"
    )


def _matters(name: str, model: Any) -> bool:
    """Whether a tensor takes part in what is looked at: heads and poolers come behind all attention."""
    return "pooler" not in name and (model.base_model is model or name.startswith(f"{model.base_model_prefix}."))
