"""Layers whose weights are in a layout of oneDNN."""

from typing import Any

from torch import nn


class PackedLayer(nn.Module):
    """A layer with a weight in oneDNN's layout. Copies of a model share it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLayer":
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        raise cannot_save()


def cannot_save() -> ValueError:
    return ValueError("an optimized model cannot be saved; save the original one")
