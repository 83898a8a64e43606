"""Folders of timm: their `config.json` names an "architecture", whose sizes are those of the tensors beside it.

timm keeps the projections to queries, keys and values in one layer `attn.qkv`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, Joined, KeyMap
from foveate.interop.layout import Layout

CLASSIFIER, BODY = "timm classifier", "timm body"
"""What a folder is instead of a class of transformers: a model with a classifier, or without one."""

BUFFERS = ("*relative_position_index", "*relative_coords_table", "*attn_mask")


class Tensors:
    """The sizes of a folder's tensors, which say what `config.json` does not."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._shapes: Mapping[str, tuple[int, ...]] = values.get("tensors", {})
        self._where = where
        self.name, self.arguments = str(values.get("architecture")), values.get("model_args") or {}
        if not isinstance(self.arguments, Mapping):
            raise UserError(f"{where} has the model_args {show_value(self.arguments)}, which cannot be")
        self.image_size = self._image_size(values)

    def __contains__(self, name: str) -> bool:
        return name in self._shapes

    def size(self, name: str, axis: int = 0) -> int:
        """A tensor's size along an axis. UserError where there is none."""
        if len(shape := self._shapes.get(name, ())) <= axis:
            raise UserError(f"{self._where} names a {self.name}, but there is no such tensor '{name}' as that has")
        return shape[axis]

    def count(self, pattern: str) -> int:
        """How many tensors there are whose names have 0, 1, 2, ... in place of "*"."""
        found = 0
        while pattern.replace("*", str(found)) in self._shapes:
            found += 1
        return found

    def counts(self, pattern: str) -> tuple[int, ...]:
        """The same for each stage, whose number stands in place of a first "*"."""
        found: list[int] = []
        while count := self.count(pattern.replace("*", str(len(found)), 1)):
            found.append(count)
        return tuple(found)

    def argument(self, name: str, usual: int | None) -> int:
        """A number among the arguments that the model was made with. UserError where nothing says it."""
        found = self.arguments.get(name, usual)
        if type(found) is not int or found < 1:
            raise self.refuse(f"the {name} {show_value(found)}")
        return found

    def refuse(self, what: str) -> UserError:
        """The error for something that our models do not have."""
        return UserError(f"{self._where} names a {self.name} with {what}, which foveate does not have")

    def _image_size(self, values: Mapping[str, Any]) -> int:
        own = values.get("pretrained_cfg")
        size = (own if isinstance(own, Mapping) else {}).get("input_size", (3, 224, 224))
        size = self.arguments.get("img_size", size[-1] if isinstance(size, list | tuple) and size else size)
        height, width = size if isinstance(size, list | tuple) and len(size) == 2 else (size, size)
        if type(height) is not int or height != width or height < 1:
            raise self.refuse(f"images of the size {show_value(size)}")
        return height


def key_map(names: Mapping[str, str]) -> KeyMap:
    """The table of tensors, with `attn.qkv` in place of its parts. Swin V2 has biases apart, and none of keys."""
    entries = []
    for ours, theirs in names.items():
        place, _, part = theirs.rpartition(".")
        if part not in ("query", "key", "value"):
            entries.append(Entry((ours,), theirs))
        elif part == "query":
            parts = [f"{ours.removesuffix('query')}{one}" for one in ("query", "key", "value")]
            if f"{place}.logit_scale" in names.values():
                entries.append(Entry((f"{parts[0]}.bias",), f"{place}.q_bias"))
                entries.append(Entry((f"{parts[2]}.bias",), f"{place}.v_bias"))
                entries.append(Entry(tuple(f"{one}.weight" for one in parts), f"{place}.qkv.weight", Joined()))
            else:
                entries.append(Entry(tuple(parts), f"{place}.qkv", Joined()))
    return KeyMap(tuple(entries), ignored=BUFFERS)


def _refuse(config: Any) -> dict[str, Any]:
    raise UserError("foveate writes no folders of timm")


Names = Callable[[Any], Mapping[str, str]]


def timm_layout(family: str, names: Names, read: Callable[..., Any], body: bool = False) -> Layout:
    """The layout of a family in folders of timm; with `body`, also of models without a classifier."""
    return Layout(
        family=family,
        architectures={CLASSIFIER: "label", **({BODY: "none"} if body else {})},
        key_map=lambda config: key_map(names(config)),
        read_config=read,
        write_config=_refuse,
        image_processor="ViTImageProcessor",
    )
