"""`look`: records what any PyTorch model attends to while it runs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext

import torch
from torch import nn

from foveate.errors import UserError
from foveate.sight.adapters import attach_all
from foveate.sight.measures import check_names
from foveate.sight.module_hooks import add_hooks
from foveate.sight.norms import ProjectionSearch, notes_of
from foveate.sight.own_models import own_modules
from foveate.sight.recorder import Recorder
from foveate.sight.sight import Sight
from foveate.sight.site_patterns import list_of_texts
from foveate.sight.watcher import Watcher, only_one, opened


@contextmanager
def look(
    model: nn.Module,
    sites: Sequence[str] | str | None = None,
    keep: Sequence[str] | None = None,
    values: bool = False,
    gradients: bool = False,
) -> Iterator[Sight]:
    """Record what every attention call of `model` attends to while the context is open.

    The model may be foveate's or any other: calls of foveate's `attend`, of torch's attention functions and of those
    of transformers are recorded, and weights that a model makes itself. Other weights are not computed, except for a
    few rows of each call, which are compared with the output. Outputs and gradients are the same as without a look.
    Compiled parts run uncompiled.

    `sites` are patterns of module paths ("decoder.*.cross"); only sites that match are recorded. `keep` names measures
    ("received", "top", ...) to compute at once; then queries and keys are not kept.

    With `values`, `sight.norms()` has each weight times the size of what it weighs. With `gradients`, the model runs
    with kernels of `attend`, and `sight.gradients(target)` and `sight.relevance(target)` say what a number computed
    from its output needs of what was looked at; its graph is kept as long as the sight.

    A process can have one open look, which records what runs in its own thread. When it closes, it raises UserError if
    a module attended in a way that cannot be recorded, if nothing that attended matches `sites`, or if all attention
    was outside of a call of `model`.
    """
    sites = None if sites is None else list_of_texts("sites", sites)
    own = own_modules(model)
    if keep is not None and (values or gradients):
        raise UserError("values and gradients need queries and keys: look without keep")
    if gradients and "change" in opened:
        raise UserError("a change is open, and gradients are those of the model as it is: close it first")
    search = ProjectionSearch() if values else None
    kept = None if keep is None else check_names(keep, ["output_error"])
    recorder = Recorder(sites, kept, own is not None, search, gradients)
    sight = Sight(recorder.index.sites, recorder.notes)
    with watch(model, "look", recorder, own), search or nullcontext():
        yield sight
    recorder.check(model, bool(recorder.index.sites))
    if values:
        sight.notes += notes_of(sight)


@contextmanager
def watch(model: nn.Module, kind: str, watcher: Watcher, own: dict[str, nn.Module] | None) -> Iterator[None]:
    """Let a watcher follow what a model attends to; compiled parts run uncompiled."""
    with ExitStack() as stack:
        stack.enter_context(only_one(kind, watcher))
        stack.enter_context(attach_all(watcher))
        if "torch._dynamo" in sys.modules:  # otherwise nothing is compiled, and importing the compiler takes a second
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        add_hooks(model, watcher, stack, own)
        yield
