"""What a look does without, heads or single weights: what a browser removes is removed for its own look alone."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape

from torch import nn

from foveate.errors import UserError
from foveate.sight import Knock, Scale, change
from foveate.sight.changes import Change
from foveate.sight.sight import Sight
from foveate.viewer.protocol import ModelViewer


@dataclass(frozen=True)
class Removal:
    """A head that gives nothing, or the weight that a query of it gives to a key: its other keys share that."""

    site: str
    head: int
    query: int | None = None
    key: int | None = None

    @property
    def whole(self) -> bool:
        """Whether the head gives nothing."""
        return self.query is None

    def check(self, sight: Sight) -> None:
        """Raises UserError where the map still shows a weight that was removed: its rows and columns are not those of
        the call."""
        if self.whole or self.site not in sight.sites:
            return
        site = sight[self.site]
        left = site.windows or site.weights(heads=[self.head], queries=[self.query], keys=[self.key]).any()
        if left:
            raise UserError(f"single weights of {self.site} cannot be removed: its map joins several calls, or heads")


def can_remove(viewer: ModelViewer) -> bool:
    """Whether heads of a viewer's model can be removed."""
    return isinstance(getattr(viewer, "model", None), nn.Module)


@contextmanager
def without(viewer: ModelViewer, removed: Sequence[Removal]) -> Iterator[None]:
    """Run the viewer's model without these. Raises UserError for a head, a query or a key that it does not have."""
    if not removed:
        yield
        return
    if not can_remove(viewer):
        raise UserError(f"heads of {viewer.name} cannot be removed")
    model: nn.Module = viewer.model  # type: ignore[attr-defined]
    modules = {name for name, _ in model.named_modules()}
    changes: dict[str, list[Change]] = {}
    heads: dict[str, set[int]] = {}
    for each in removed:
        module = _module_of(modules, each.site)
        if each.query is None:
            heads.setdefault(module, set()).add(each.head)
        elif module == each.site:
            changes.setdefault(module, []).append(Knock(each.head, queries=each.query, keys=each.key))
        else:
            raise UserError(f"single weights of {each.site} cannot be removed: it is a part of the map of {module}")
    for module, several in heads.items():
        changes.setdefault(module, []).append(Scale(0.0, sorted(several)))
    with change(model, {escape(module): each for module, each in changes.items()}):
        yield


def _module_of(modules: Set[str], site: str) -> str:
    """Which of the modules attends at a site; the site of a part of a map has further words behind its name."""
    beginnings = [site[:end] for end in range(len(site), 0, -1) if end == len(site) or site[end] == "."]
    return next((name for name in beginnings if name in modules), site)
