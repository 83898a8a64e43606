"""Bounds on what a file may claim or hold, checked before memory is taken for it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foveate.errors import UserError, show_value

FILE = 128 * 2**20
"""Bytes of a file that is read into memory at once: JSON, vocabularies, tables of settings."""

TABLE = 2**30
"""Bytes of a file that lists a user's examples in one JSON or XML document, such as COCO's."""

ARRAYS = 2**27
"""Bytes of the arrays in one file, as they are in memory."""

DEPTH = 100
"""Lists and tables in each other, in a JSON file."""

NAME = 255
"""Bytes of the name of a file, on most file systems."""

SIZES = (
    (("image_size", "patch_size"), 8_192),
    (("layer", "depth", "blocks"), 2_000),
    (("head",), 100_000),
    (("label",), 100_000),
    (("vocab", "width", "size", "dim", "length", "position", "feedforward", "channels"), 10_000_000),
)
"""What the names of a model's sizes contain, and the most that they can be: GPT-3 has 96 layers."""

COUNTED = ("num_", "n_"), ("_size", "_dim", "_heads")
"""How names of numbers begin and end in a model's config, where other libraries take `true` for 1."""

SWITCHES = ("fixed_input_size",)
"""Names that end so and are switches, in a config of timm."""

FORMATS = {
    **dict.fromkeys(("size", "width", "patch"), 4_096),
    **dict.fromkeys(("height", "channels", "levels", "bands", "actions"), 1_000),
    "rate": 1_000_000,
    "frames": 1_000_000,
}
"""What says in a processor's file how images, sounds and actions become numbers, and the most that each can be."""

NUMBERS = {
    **dict.fromkeys(("height", "width", "shortest_edge", "longest_edge", "size", "crop_size", "max_size"), 8_192),
    **dict.fromkeys(("patch_size", "temporal_patch_size", "merge_size", "size_divisor", "num_channels"), 4_096),
    **dict.fromkeys(("n_fft", "fft_length", "win_length", "frame_length"), 2**16),
    **dict.fromkeys(("feature_size", "num_mel_bins", "dimension"), 10_000),
    **dict.fromkeys(("sampling_rate", "hop_length", "nb_max_frames", "max_length", "max_frequency"), 10**6),
    **dict.fromkeys(("chunk_length", "chunk_length_s"), 3_600),
    **dict.fromkeys(("n_samples", "max_pixels", "min_pixels"), 10**8),
    **dict.fromkeys(("rescale_factor", "padding_value", "image_mean", "image_std"), 10**6),
}
"""What says in the file of a public processor how images and sounds become numbers, and the most that each can be."""

TOKENS = ("pad_token", "bos_token", "eos_token", "unk_token", "mask_token", "sep_token", "cls_token")
"""Special tokens of a public tokenizer: each is a text, or a table with one."""

COUNTS = ("labels", "answers", "counts")
"""Tables of such a file whose names are the user's."""


def check_file(path: Path, most: int = FILE) -> None:
    """Raise UserError for a file of more bytes than are read, and for a path that is not a regular file.

    A missing file passes.
    """
    if not os.path.exists(path):  # False of a name that no file can have; a Path's own method would raise
        return
    if not path.is_file():
        raise UserError(f"could not read {path}: it is {'a folder' if path.is_dir() else 'not a regular file'}")
    if (size := path.stat().st_size) > most:
        raise UserError(f"{path} has {size / 2**20:,.0f} MiB; the limit is {most // 2**20:,} MiB")


def check_depth(value: Any, where: Path | str) -> None:
    """Raise UserError for lists and tables that are nested more deeply than `DEPTH`."""
    level, depth = [value], 0
    while level := [part for one in level for part in _parts(one) if isinstance(part, dict | list)]:
        depth += 1
        if depth > DEPTH:
            raise UserError(f"{where} is damaged: lists or tables are nested more than {DEPTH} deep")


def check_sizes(value: Any, where: Path | str) -> None:
    """Raise UserError for a value in a model's config that no model's size can be."""
    for name, switch in _leaves(value):
        if (
            isinstance(switch, bool)
            and name not in SWITCHES
            and (name.startswith(COUNTED[0]) or name.endswith(COUNTED[1]))
        ):
            raise UserError(f"{where}: {name} is {show_value(switch)}, but must be a number")
    for name, size in _numbers(value):
        for parts, most in SIZES:
            if any(part in name for part in parts):
                if size > most:
                    raise UserError(f"{where}: {name} is {_format_size(size)}, but can be at most {most:,}")
                break


def check_preprocessor(value: dict[str, Any], where: Path | str) -> None:
    """Raise UserError for a value in the file of a public processor that no size of an image or a sound, and no share
    can be."""
    for name, number in _leaves(value):
        if name not in NUMBERS or number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise UserError(f"{where}: {name} is {show_value(number)}, but must be a number")
        if abs(number) > NUMBERS[name]:
            raise UserError(f"{where}: {name} is {_format_size(number)}, but can be at most {NUMBERS[name]:,}")


def check_tokens(value: dict[str, Any], where: Path | str) -> None:
    """Raise UserError for a special token of a public tokenizer that is no text."""
    for name in TOKENS:
        token = value.get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if not isinstance(text, str | None):
            raise UserError(f"{where}: {name} is {show_value(text)}, but must be a text")


def check_formats(value: dict[str, Any], where: Path | str) -> None:
    """Raise UserError for a number in a processor's file that no size of an image or a sound can be."""
    own = {name: part for name, part in value.items() if name not in COUNTS}
    for name, number in _numbers(own):
        if name in FORMATS and not 1 <= number <= FORMATS[name]:
            raise UserError(f"{where}: {name} is {_format_size(number)}, but must be from 1 to {FORMATS[name]:,}")


def _format_size(number: float) -> str:
    return f"{number:,}" if abs(number) < 10**30 else "a number of more than 30 digits"


def _numbers(value: Any) -> Iterator[tuple[str, int]]:
    """All whole numbers in a tree that `check_depth` has passed, with the name of the entry that has them."""
    return ((name, leaf) for name, leaf in _leaves(value) if isinstance(leaf, int) and not isinstance(leaf, bool))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All values in a tree that are no tables and no lists, with the name of the entry that has them."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part, name)
    else:
        yield name, value


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
