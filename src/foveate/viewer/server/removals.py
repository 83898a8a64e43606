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
    of_modules: dict[str, set[int]] = {}
    for site, heads in removed.items():
        of_modules.setdefault(_module_of(model, site), set()).update(heads)
    with change(model, {escape(name): Scale(0.0, sorted(heads)) for name, heads in of_modules.items()}):
        yield


def _module_of(model: nn.Module, site: str) -> str:
    """The module that attends at a site; the site of a part of a map has further words behind its name."""
    modules = {name for name, _ in model.named_modules()}
    beginnings = [site[:end] for end in range(len(site), 0, -1) if end == len(site) or site[end] == "."]
    return next((name for name in beginnings if name in modules), site)
