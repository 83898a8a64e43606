"""`change`: lets any PyTorch model attend in another way while it runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.errors import UserError, of_kind
from foveate.sight.call_adapter import has_values
from foveate.sight.changes import Change, Where
from foveate.sight.given_weights import MadeProduct
from foveate.sight.look import watch
from foveate.sight.own_models import own_modules
from foveate.sight.query_positions import first_query_position
from foveate.sight.watcher import MakeCall, Running, Watcher, kernel_of

Changes = Mapping[str, Change | Sequence[Change]]


@contextmanager
def change(model: nn.Module, changes: Changes) -> Iterator[None]:
    """Change what `model` attends to while the context is open.

        with foveate.change(model, {"decoder.5.cross": Knock(heads=[3])}):
            output = model(...)

    `changes` has patterns of the sites that a look names ("decoder.*.cross"), and for each a change or several, in
    their order. The model may be foveate's or any other, as for `look`. Changed calls run with the kernels of `attend`,
    in memory linear in the length. A look that is opened inside shows what the changed model attends to. Positions of
    queries count from the first one of a text, also while a cache grows.

    A process can have one open change, which acts in its own thread. When it closes, it raises UserError if a change
    acted nowhere, or if a module that it names attended in a way that cannot be changed. Gradients of a bias that a
    library passes as a mask are not computed.
    """
    of_kind(Mapping, "changes", changes, "a mapping from patterns of sites")
    if not changes:
        raise UserError('there is nothing to change: name a site, such as {"decoder.5.cross": Knock(heads=[3])}')
    listed = {
        pattern: [one] if isinstance(one, Change) or not isinstance(one, Sequence) else list(one)
        for pattern, one in changes.items()
    }
    for pattern, several in listed.items():
        for one in several:
            of_kind(Change, f"the change of {pattern}", one, "Knock(...), Scale(...) or the like")
    own = own_modules(model)
    changer = Changer(listed, own is not None)
    with watch(model, "change", changer, own):
        yield
    changer.check(model, changer.reached)
    changer.check_all_acted()


class Changer(Watcher):
    """Makes other calls in place of a model's own."""

    hook_id = -2

    def __init__(self, changes: Mapping[str, Sequence[Change]], own: bool) -> None:
        super().__init__(list(changes), own)
        self.reached = False
        """Whether any call was one to change, even if it has none of the tokens."""
        self._changes = [(pattern, one) for pattern, several in changes.items() for one in several]
        self._acted = [False] * len(self._changes)
        self._rows: dict[str, tuple[int, int]] = {}
        """By module: the end of its last queries and the number of its last keys."""

    def end_run(self) -> None:
        self.made = None

    def change(self, make: MakeCall, place: Running | None = None) -> Attended | None:
        """What the changed call of a module, by default the running one, gives; None where nothing changes it."""
        self.made = None
        module, running = place or self._running[-1]
        if not self.is_selected(module):
            return None
        call = make()
        if not has_values(call.queries):
            return None  # `record` says so
        self.reached = True
        where = Where(module, self._first(module, running, call))
        made = call
        for number, (pattern, one) in enumerate(self._changes):
            if fnmatchcase(module, pattern) and (changed := one(made, where)) is not None:
                made, self._acted[number] = changed, True
        if made is call:
            return None
        with self.inside_call():
            attended = kernel_of(made).attend(made)
        self.untraced.note_recorded(module)
        self.made = made
        return attended

    def record(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None) -> None:
        """Note a call that was left as it is."""
        if not has_values(call.queries):
            self.untraced.note_opaque()
            return
        self.untraced.note_recorded()
        module, _ = self._running[-1]
        if not self.is_selected(module):
            self._unselected.add(module)

    def record_weights(self, place: Running, product: MadeProduct) -> None:
        """Note weights of a module's own, changed or not."""
        module, _ = place
        self.untraced.note_recorded(module)
        if not self.is_selected(module):
            self._unselected.add(module)

    def _first(self, module: str, running: nn.Module, call: Call) -> int:
        """The position of a call's first query: what the call tells, or else behind the queries before it, where the
        keys grow with them."""
        steps, count = call.queries.shape[-2], call.keys.shape[-2]
        with torch.no_grad():
            first = first_query_position(call, running)
        if first is None or first < 0:
            end, keys = self._rows.get(module, (0, 0))
            first = end if keys and count == keys + steps else 0
        self._rows[module] = first + steps, count
        return first

    def check_all_acted(self) -> None:
        """Raise UserError for a change that changed nothing."""
        for (pattern, one), acted in zip(self._changes, self._acted, strict=True):
            if not acted:
                kind = type(one).__name__
                named = kind.lstrip("_") if kind.startswith("_") else str(one)
                raise UserError(
                    f"{named} of '{pattern}' changed nothing: nothing that attended has such a path, or such tokens"
                )
