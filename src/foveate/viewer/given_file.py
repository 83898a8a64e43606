"""A file of weights that another program wrote, such as a serving engine: .npz or .safetensors.

Each map is an array with the name of its site, say "layer.3":

    layer.3                            weights, (T, S), (H, T, S) or (B, H, T, S)
    layer.3.queries, layer.3.keys      instead: (H, T, D) and (H, S, D), whose weights are computed
    layer.3.indices, layer.3.values    instead: the k largest weights of each query, (H, T, k), and their keys
    tokens                             optional: the texts of all queries and keys
    tokens.queries, tokens.keys        optional: those of each side
    title                              optional: of the page
    causal, scale                      optional: of all queries and keys
    layer.3.causal, layer.3.scale      optional: of those of this site alone

Of safetensors, which hold numbers alone, the optional ones are metadata: `tokens` are a list in JSON.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveate.array_files import read_arrays, texts_of
from foveate.errors import UserError
from foveate.files import parse_json
from foveate.limits import check_file
from foveate.sight import Sight
from foveate.sight.from_weights import from_queries_and_keys, from_weights
from foveate.tensor_files import read_tensors
from foveate.viewer.protocol import LookResult

MOST = 2**32
"""Bytes of a file, and of each array in it."""

TEXTS = ("tokens", "tokens.queries", "tokens.keys", "title")

SETTINGS = ("causal", "scale")

PARTS = ("queries", "keys", "indices", "values")


def read_weights(path: Path) -> LookResult:
    """The maps of a file and their names. Raises UserError for a file that is damaged or has another layout."""
    if path.suffix not in (".npz", ".safetensors"):
        raise UserError(f"weights are read from .npz and .safetensors files, not {path}")
    if not path.exists():
        raise UserError(f"{path} does not exist")
    check_file(path, MOST)
    arrays, texts, settings = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    whole = {name: each for name, each in arrays.items() if not name.endswith(tuple(f".{part}" for part in PARTS))}
    sites = {name.rpartition(".")[0]: None for name in arrays if name not in whole}
    sides, sparse = {}, {}
    for site in sites:
        parts = {part: arrays[f"{site}.{part}"] for part in PARTS if f"{site}.{part}" in arrays}
        if parts.keys() == {"queries", "keys"}:
            sides[site] = parts["queries"], parts["keys"]
        elif parts.keys() == {"indices", "values"}:
            sparse[site] = parts["indices"], parts["values"]
        else:
            raise UserError(
                f"{path}: '{site}' needs queries and keys, or indices and values; it has {', '.join(parts)}"
            )
    count = len(texts.get("tokens.keys", texts.get("tokens", []))) or None
    whole |= {site: _dense(path, site, *both, count) for site, both in sparse.items()}
    if odd := [name for name in settings if name not in SETTINGS and name.rpartition(".")[0] not in sides]:
        raise UserError(f"{path}: '{odd[0]}' is of no site that has queries and keys")
    found = from_weights(whole) if whole or not sides else Sight({}, [])
    of_queries = [
        site
        for name, both in sides.items()
        for site in from_queries_and_keys({name: both}, *(_setting(settings, name, each) for each in SETTINGS))
    ]
    sight = Sight({site.name: site for site in (*found, *of_queries)}, [])
    both = texts.get("tokens")
    queries, keys = texts.get("tokens.queries", both), texts.get("tokens.keys", both)
    named: dict[str, Any] = {} if queries is keys is None else {"*": (queries, keys)}
    title = " ".join(texts.get("title", [])) or path.name
    return LookResult(sight, named, title, [f"{path.name}: weights that were given, not computed by foveate"])


def _setting(settings: dict[str, Any], site: str, name: str) -> Any:
    """What the file says of a site, or else of all."""
    found = settings.get(f"{site}.{name}", settings.get(name))
    return bool(found) if name == "causal" else None if found is None else float(found)


def _is_setting(name: str) -> bool:
    return name.rpartition(".")[2] in SETTINGS


def _read_npz(path: Path) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, Any]]:
    arrays = read_arrays(path, "a file of weights", most=MOST)
    texts = {name: texts_of(arrays.pop(name), f"{path}: {name}") for name in TEXTS if name in arrays}
    settings = {name: arrays.pop(name) for name in [*arrays] if _is_setting(name)}
    if odd := [name for name, each in settings.items() if each.size != 1 or each.dtype.kind not in "biuf"]:
        raise UserError(f"{path}: {' and '.join(odd)} must be single numbers")
    tensors = {name: _tensor(path, name, array) for name, array in arrays.items()}
    return tensors, texts, {name: each.item() for name, each in settings.items()}


def _read_safetensors(path: Path) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, Any]]:
    read = read_tensors(path)
    texts = {}
    for name in TEXTS:
        if name in read.metadata:
            value = read.metadata[name]
            listed = [value] if name == "title" else parse_json(value, f"{path}: {name}")
            if not isinstance(listed, list) or not all(isinstance(token, str) for token in listed):
                raise UserError(f"{path}: {name} must be a list of texts")
            texts[name] = listed
    given = {name: value for name, value in read.metadata.items() if _is_setting(name)}
    settings: dict[str, Any] = {}
    for name, value in given.items():
        try:
            settings[name] = value == "true" if name.endswith("causal") else float(value)
        except ValueError:
            raise UserError(f"{path}: {name} must be a number") from None
    return read.tensors, texts, settings


def _tensor(path: Path, name: str, array: np.ndarray) -> torch.Tensor:
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise UserError(f"{path}: '{name}' must be numbers, not {array.dtype}")
    return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))))


def _dense(path: Path, site: str, indices: torch.Tensor, values: torch.Tensor, count: int | None) -> torch.Tensor:
    """Whole maps of the largest weights; -1 stands for no key."""
    if indices.shape != values.shape or indices.is_floating_point() or not values.is_floating_point():
        raise UserError(f"{path}: '{site}' needs as many whole numbers in indices as weights in values")
    most = int(indices.max()) + 1 if indices.numel() else 0
    if int(indices.min() if indices.numel() else 0) < -1 or most > (count or most):
        raise UserError(f"{path}: an index of '{site}' is the number of a key, from 0, or -1 for none")
    count = count or most
    if 4 * values[..., 0].numel() * count > MOST:
        raise UserError(f"{path}: the maps of '{site}' take more than {MOST // 2**20:,} MiB, the limit")
    found = values.new_zeros(*values.shape[:-1], count + 1, dtype=torch.float32)  # the last key is that of -1
    found.scatter_add_(-1, indices.long().remainder(count + 1), values.float())
    return found[..., :-1]
