"""Finds modules that attended without being recorded, and the error that names them.

An empty sight would say that the model does not attend. So a look follows modules that are called attention, and
softmaxes that are multiplied with something. If no call was recorded there, the look ends with an error.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import nn

from foveate.errors import UserError

_CALLED_ATTENTION = re.compile(r"attent|attn", re.IGNORECASE)


def called_attention(running: Iterable[tuple[str, nn.Module]]) -> bool:
    """Returns whether any of some modules is called attention, by its class or the last part of its path."""
    return any(
        _CALLED_ATTENTION.search(f"{path.rpartition('.')[2]} {type(module).__name__}") for path, module in running
    )


_FUSED = re.compile(r"scaled_dot_product_attention|ALL_ATTENTION_FUNCTIONS(\.get_interface|\[)")
"""Matches code that attends by calling another function."""

COMPILED = "_orig_mod."
"""Part of module paths that torch.compile adds."""

MAX_NAMED = 3
"""Maximum number of modules that an error names for each reason."""

REASONS = {
    "softmax": "attends by a softmax of its own in a way that cannot be seen",
    "unused": "is called attention and has a softmax, which it multiplies in no way that can be seen",
    "mismatch": "has an output that is not the mean of the values by the weights that its arguments imply",
    "thread": "ran in another thread than the look, where nothing can be seen",
    "script": "is TorchScript, which cannot be seen into",
    "opaque": "attends under vmap or on tensors without values (meta or fake), where nothing can be seen",
    "nested": "attends on nested tensors, whose texts differ in length and have no common map",
    "weak_softmax": "multiplies something by a changed softmax, which may be attention and cannot be seen",
    "no_call": "is called attention, but made no attention call that can be seen",
}

WEAK = {"weak_softmax", "no_call"}
"""Reasons that count only if no attention was recorded and there is no other reason."""

_SITES = "look(model, sites=[...]) at other modules"


@dataclass
class _Running:
    """A module whose forward pass is running."""

    name: str
    kind: str
    calls_before: int
    """Number of attention calls that were found, recorded or not, before it began."""
    has_attention: bool = False
    """Whether a submodule is called attention."""
    softmax: bool = False
    """Whether it computed a softmax, itself or in a submodule that is not called attention."""


@dataclass(frozen=True)
class Place:
    """A place where a model attended: the module that is called attention, or else the innermost one that ran."""

    name: str
    kind: str
    innermost: str
    """The name of the innermost one."""


class Untraced:
    """Modules that probably attended, but not by a call that can be recorded."""

    def __init__(self) -> None:
        self._running: list[_Running] = []
        self._calls = 0
        self.found: dict[str, tuple[str, str]] = {}
        """The class name of each such module and the reason, one of `REASONS`."""
        self._within: defaultdict[str, set[str]] = defaultdict(set)
        """For each such module, itself or the submodules that gave the reason."""
        self._recorded: set[str] = set()
        """Modules of which attention was recorded."""

    @property
    def place(self) -> Place | None:
        """Of the running modules; None where none runs."""
        if not self._running:
            return None
        called = [module for module in self._running if _CALLED_ATTENTION.search(module.kind)]
        module = (called or self._running)[-1]
        return Place(module.name, module.kind, self._running[-1].name)

    def enter(self, name: str, kind: str) -> None:
        """Note that a module begins to run."""
        self._running.append(_Running(name, kind, self._calls))

    def leave(self) -> None:
        """Note that the module that began last has ended."""
        module = self._running.pop()
        called_attention = bool(_CALLED_ATTENTION.search(module.kind))
        if self._running:
            parent = self._running[-1]
            parent.has_attention |= called_attention or module.has_attention
            parent.softmax |= module.softmax and not called_attention
        no_calls = self._calls == module.calls_before
        if called_attention and no_calls and (module.softmax or not module.has_attention):
            self.add(module.name, module.kind, "unused" if module.softmax else "no_call")

    def note_recorded(self, name: str = "") -> None:
        """Note that an attention call was recorded, of the module that is named if its softmax came before."""
        self._calls += 1
        self._recorded.add(name)

    def note_softmax(self) -> None:
        """Note that the running module computed a softmax outside of a recorded call, such as that of a router."""
        if self._running:
            self._running[-1].softmax = True

    def note_product(self, sure: bool) -> None:
        """Note that the running module multiplied such a softmax with something: it attends, certainly or probably."""
        self._add_running("softmax" if sure else "weak_softmax")

    def note_mismatch(self, place: Place | None = None) -> None:
        """Note that the output of a call of a module, by default of the running one, does not match the call."""
        self._add_at(place or self.place, "mismatch")

    def note_nested(self) -> None:
        """Note that the running module attended on nested tensors."""
        self._add_running("nested")

    def note_opaque(self) -> None:
        """Note that the running module attended on tensors whose values cannot be read."""
        self._add_running("opaque")

    def check_script(self, name: str, module: torch.jit.ScriptModule) -> None:
        """Add a TorchScript module if its code attends."""
        within = any(name == other or name.startswith(f"{other}.") or not other for other in self.found)
        if not within and _code_attends(module):
            self.add(name, module.original_name, "script")

    def add(self, name: str, kind: str, reason: str) -> None:
        """Add a module that attended without being recorded."""
        if name not in self.found or self.found[name][1] in WEAK:
            self.found[name] = (kind, reason)

    def _add_running(self, reason: str) -> None:
        self._add_at(self.place, reason)

    def _add_at(self, place: Place | None, reason: str) -> None:
        if place is not None:
            self._calls += reason not in WEAK
            self._within[place.name].add(place.innermost)
            self.add(place.name, place.kind, reason)

    def check(self, model: nn.Module, is_selected: Callable[[str], bool], any_recorded: bool) -> None:
        """Raise UserError if a selected module attended without being recorded.

        A name is weak evidence: linear attention, for example, has no weights. Among modules that ran in other threads,
        only those that are called attention count, if there are any or if any attention was recorded.
        """
        found = {name: why for name, why in self.found.items() if any(map(is_selected, {name, *self._within[name]}))}
        found = {name: why for name, why in found.items() if why[1] != "unused" or name not in self._recorded}
        if any_recorded or any(reason not in WEAK for _, reason in found.values()):
            found = {name: why for name, why in found.items() if why[1] not in WEAK}
        named = {name for name, (kind, _) in found.items() if _CALLED_ATTENTION.search(kind)}
        if any_recorded or named:
            found = {name: why for name, why in found.items() if why[1] != "thread" or name in named}
        lines = []
        for reason, text in REASONS.items():
            names = [f"{name or 'the model'} ({kind})" for name, (kind, why) in found.items() if why == reason]
            if names:
                more = f" (and {len(names) - MAX_NAMED} more like it)" if len(names) > MAX_NAMED else ""
                lines.append(f"{', '.join(names[:MAX_NAMED])}{more} {text}")
        if lines:
            raise UserError("; ".join(lines) + f"; {_advice(model, found)}")


def _code_attends(module: torch.jit.ScriptModule) -> bool:
    """Returns whether TorchScript code calls torch's attention, or probably multiplies something by a softmax."""
    code = str(getattr(module, "inlined_graph", ""))
    products = ("aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum")
    own = "aten::softmax" in code and any(product in code for product in products)
    return own or "aten::scaled_dot_product_attention" in code


def _advice(model: nn.Module, found: dict[str, tuple[str, str]]) -> str:
    """Advice for the user."""
    reasons = {reason for _, reason in found.values()}
    if reasons == {"no_call"}:
        return "if it has no weights, as linear attention has none, there is nothing to see"
    if reasons == {"thread"}:
        return f"call the model itself, without DataParallel or threads, or {_SITES}"
    if reasons == {"opaque"}:
        return f"call the model itself, on tensors with values, or {_SITES}"
    if reasons == {"nested"}:
        return f"call it with padded tensors and a mask, or {_SITES}"
    if reasons == {"script"}:
        return f"look at the model that it was made from, or {_SITES}"
    modules = [module for name, module in model.named_modules() if name.replace(COMPILED, "") in found]
    return f"{_alternative(model, modules, mismatch='mismatch' in reasons)}, or {_SITES}"


def _alternative(model: nn.Module, modules: list[nn.Module], mismatch: bool) -> str:
    """A way for these modules to attend that can be recorded, or to get the weights from the model itself."""
    if modules and all(getattr(module, "fused_attn", True) is False for module in modules):
        return "set fused_attn = True on these modules"
    if modules and all(hasattr(module, "processor") for module in modules):  # of diffusers
        processor = type(modules[0].processor).__name__
        return f"it attends by {processor} of diffusers: give it the same that ends in 2_0, by set_attn_processor"
    now = getattr(getattr(model, "config", None), "_attn_implementation", None)
    fused = getattr(model, "_supports_sdpa", False) and all(_may_be_fused(type(each)) for each in modules)
    if now == "eager" and fused:
        return "it attends by 'eager': load it with attn_implementation='sdpa'"
    if now not in (None, "eager") and mismatch:
        return f"it attends by '{now}': load it with attn_implementation='eager'"
    if _returns_attentions(model):
        return "ask the model itself, by output_attentions=True"
    return "attend by torch's scaled_dot_product_attention or foveate's attend"


def _may_be_fused(kind: type) -> bool:
    """Returns whether the code of a module class, or of a subclass, has a fused implementation."""
    try:
        code = "".join(inspect.getsource(each) for each in (kind, *kind.__subclasses__()))
    except (OSError, TypeError):  # defined interactively, or generated
        return False
    return bool(_FUSED.search(code))


def _returns_attentions(model: nn.Module) -> bool:
    """Returns whether a model of transformers can return its attention weights."""
    names = (*(getattr(model, "_can_record_outputs", None) or ()), *inspect.signature(model.forward).parameters)
    return any("attentions" in name for name in names)
