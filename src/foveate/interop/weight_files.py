"""The files with a model's weights, in one part or in several (shards). Only safetensors are opened."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.files import read_json
from foveate.tensor_files import read_metadata

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder. Raises UserError where there are none, or a shard is missing."""
    refuse_adapters(folder)
    if (folder / WHOLE).is_file():
        return [folder / WHOLE]
    if not (folder / INDEX).is_file():
        raise no_weights(folder)
    check_names(shard_names(folder / INDEX), INDEX, folder)
    return _shards(folder, INDEX)


def check_whole(folder: Path, index: str) -> None:
    """Raise UserError for a shard that an index names and that is missing, truncated or damaged."""
    for file in _shards(folder, index):
        read_metadata(file)


def _shards(folder: Path, index: str) -> list[Path]:
    files = [folder / name for name in dict.fromkeys(map(str, shard_names(folder / index)))]
    if missing := [file.name for file in files if not file.is_file()]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UserError(f"{folder} lacks {missing[0]}{more} of the {len(files)} files that its {index} names")
    return files


def refuse_adapters(folder: Path) -> None:
    """Raise UserError for a folder that changes another model's weights."""
    if (folder / "adapter_config.json").is_file():
        raise UserError(f"{folder} has only an adapter for another model: merge the two and save the whole model")


def no_weights(folder: Path) -> UserError:
    """The error of a folder without safetensors."""
    if pickled := sorted(path.name for pattern in PICKLED for path in folder.glob(pattern)):
        return UserError(
            f"{folder} has its weights only as {pickled[0]}, which may run code when it is opened; "
            f"foveate reads model.safetensors: save the model again with {_conversion(folder)}"
        )
    return UserError(f"{folder} has no model.safetensors: there are no weights")


def _conversion(folder: Path) -> str:
    """The command that writes safetensors, for where the pickle is trusted."""
    values = read_json(folder / run_dir.CONFIG) if (folder / run_dir.CONFIG).is_file() else {}
    named = values.get("architectures")
    kind = named[0] if isinstance(named, list) and named and str(named[0]).isidentifier() else "AutoModel"
    code = f"import transformers; transformers.{kind}.from_pretrained('{folder}').save_pretrained('{folder}')"
    return f'python -c "{code}"'


@dataclass
class _Index:
    """What is read of an index: the file of each tensor."""

    weight_map: dict[str, str]


def shard_names(index: Path) -> list[str]:
    """The file of each tensor that an index lists. Raises UserError if the index is damaged."""
    return list(from_dict(_Index, read_json(index), f"{index} is damaged", others=True).weight_map.values())


def check_names(names: Iterable[Any], where: str, folder: Path) -> None:
    """Raise UserError for files that are not safetensors, or are outside of the folder."""
    for name in map(str, names):
        path = Path(name)
        if not name.endswith(".safetensors") or path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"{folder}: its {where} has weights in '{name}', which is not opened; "
                "foveate reads only safetensors inside the folder: save the model again with save_pretrained"
            )
