"""Heads that a look does without: what a browser removes is removed for its own look alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape

from torch import nn

from foveate.errors import UserError
from foveate.sight import Scale, change
from foveate.viewer.protocol import ModelViewer


def can_remove(viewer: ModelViewer) -> bool:
    """Whether heads of a viewer's model can be removed."""
    return isinstance(getattr(viewer, "model", None), nn.Module)


@contextmanager
def without_heads(viewer: ModelViewer, removed: Mapping[str, Sequence[int]]) -> Iterator[None]:
    """Let these heads of each site give nothing. Raises UserError for a head that the model does not have."""
    if not removed:
        yield
        return
    if not can_remove(viewer):
        raise UserError(f"heads of {viewer.name} cannot be removed")
    model: nn.Module = viewer.model  # type: ignore[attr-defined]
    with change(model, {escape(site): Scale(0.0, [*heads]) for site, heads in removed.items()}):
        yield
