"""Looking at any model while it runs, and asking afterwards where it looked."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from foveate.sight.doors import opened
from foveate.sight.hidden import COMPILED
from foveate.sight.measures import check_names
from foveate.sight.recorder import Recorder
from foveate.sight.sight import Sight


@contextmanager
def look(
    model: nn.Module, sites: Sequence[str] | str | None = None, keep: Sequence[str] | None = None
) -> Iterator[Sight]:
    """Note what every attention call of `model` looks at while the context is open.

    Of each map only a few rows are computed, to compare them with the output. The model may be foveate's or anybody's:
    what attends by foveate's `attend`, by torch's functions for attention or by those of transformers is seen. Outputs
    and gradients are those of a run that is not looked at; compiled parts run uncompiled meanwhile.

    `sites` are patterns of module paths ("decoder.*.cross") of which alone something is kept. `keep` names measures
    ("received", "top", ...) that are computed at once, so that queries and keys need not be kept at all.

    Raises UserError when it closes if a module attended in a way that cannot be seen.
    """
    sites = [sites] if isinstance(sites, str) else sites
    recorder = Recorder(sites, None if keep is None else check_names(keep, ["output_error"]))
    sight = Sight(recorder.maps.sites, recorder.notes)
    with ExitStack() as stack:
        stack.enter_context(opened(recorder))
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and to load the compiler takes a second
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        _watch(model, recorder, stack)
        yield sight
    recorder.hidden.check(model, recorder.wanted, bool(recorder.maps.sites))


def _watch(model: nn.Module, recorder: Recorder, stack: ExitStack) -> None:
    """Tell the recorder which module runs."""

    def leave(*_: object) -> None:  # what a hook returns would replace the module's output
        recorder.leave()

    hooks: list[RemovableHandle] = []
    stack.callback(_remove, hooks)
    for path, module in model.named_modules():
        name = path.replace(COMPILED, "")
        if isinstance(module, torch.jit.ScriptModule):
            recorder.hidden.script(name, module)
            continue
        hooks.append(module.register_forward_pre_hook(lambda module, _, name=name: recorder.enter(name, module)))
        hooks.append(module.register_forward_hook(leave, always_call=True))


def _remove(hooks: list[RemovableHandle]) -> None:
    for hook in hooks:
        hook.remove()
