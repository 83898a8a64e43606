"""What attends without being seen: the evidence for it, and the error that names it.

An empty answer would say that a model looks nowhere. So modules are watched that are called attention, and softmaxes
that are multiplied with something: where no call was noted, a look ends with an error.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from foveate.errors import UserError

_CALLED_ATTENTION = re.compile(r"attent|attn", re.IGNORECASE)

_FUSED = re.compile(r"scaled_dot_product_attention|ALL_ATTENTION_FUNCTIONS(\.get_interface|\[)")
"""What code has that attends by another function than its own."""

COMPILED = "_orig_mod."
"""What torch.compile puts into the paths of modules."""

TOLD = 3
"""So many modules are named for each reason."""

REASONS = {
    "softmax": "attends by a softmax of its own, which cannot be seen",
    "unlike": "makes more of its weights than a mean of values, or other weights than its arguments say",
    "thread": "ran in another thread than the one that looks, where nothing can be seen",
    "script": "is TorchScript, which cannot be seen into",
    "opaque": "attends under vmap, or without numbers (meta or fake tensors), where nothing can be seen",
    "nested": "attends within nested tensors, whose texts differ in length, which makes no one map",
    "mixed": "multiplies something by what it made of a softmax, which may be attention and cannot be seen",
    "silent": "is called attention, but made no attention call that can be seen",
}

WEAK = {"mixed", "silent"}
"""Reasons that count only where there is no better evidence: nothing was seen, and nothing is known to be hidden."""

_SITES = "look(model, sites=[...]) at other modules"


@dataclass
class _Running:
    """A module that has begun and not ended."""

    name: str
    kind: str
    noted: int
    """Attention calls that had been noted, or found hidden, before it began."""
    has_attention: bool = False
    """Whether a part of it is called attention."""
    softmax: bool = False
    """Whether it computed a softmax, itself or in a part that is not called attention."""


class Hidden:
    """Modules that ran and attended, as it seems, but not by a call that can be seen."""

    def __init__(self) -> None:
        self._running: list[_Running] = []
        self._noted = 0
        self.found: dict[str, tuple[str, str]] = {}
        """The kind of each such module and the reason, one of `REASONS`."""
        self._within: defaultdict[str, set[str]] = defaultdict(set)
        """For each such module, those within it, or itself, that did what it is named for."""

    def enter(self, name: str, kind: str) -> None:
        """A module begins to run."""
        self._running.append(_Running(name, kind, self._noted))

    def leave(self) -> None:
        """The module that began last has run."""
        module = self._running.pop()
        called_attention = bool(_CALLED_ATTENTION.search(module.kind))
        if self._running:
            parent = self._running[-1]
            parent.has_attention |= called_attention or module.has_attention
            parent.softmax |= module.softmax and not called_attention
        if called_attention and self._noted == module.noted and (module.softmax or not module.has_attention):
            self.note(module.name, module.kind, "softmax" if module.softmax else "silent")

    def seen(self) -> None:
        """An attention call was noted."""
        self._noted += 1

    def softmax(self) -> None:
        """The running module computed a softmax that is no part of a call that was noted, such as a router's."""
        if self._running:
            self._running[-1].softmax = True

    def attended(self, sure: bool) -> None:
        """The running module multiplied such a softmax with something: it attends, surely or as it seems."""
        self._here("softmax" if sure else "mixed")

    def unlike(self) -> None:
        """The running module made a call whose output is not what the call says."""
        self._here("unlike")

    def nested(self) -> None:
        """The running module made a call with nested tensors."""
        self._here("nested")

    def opaque(self) -> None:
        """The running module made a call with tensors whose numbers cannot be read."""
        self._here("opaque")

    def script(self, name: str, module: torch.jit.ScriptModule) -> None:
        """A part of the model is TorchScript; it counts if its code attends."""
        within = any(name == other or name.startswith(f"{other}.") or not other for other in self.found)
        if not within and _code_attends(module):
            self.note(name, module.original_name, "script")

    def note(self, name: str, kind: str, reason: str) -> None:
        """A module has attended unseen."""
        if name not in self.found or self.found[name][1] in WEAK:
            self.found[name] = (kind, reason)

    def _here(self, reason: str) -> None:
        """Name the innermost running module that is called attention, or just the innermost."""
        if self._running:
            self._noted += reason not in WEAK
            called = [module for module in self._running if _CALLED_ATTENTION.search(module.kind)]
            module = (called or self._running)[-1]
            self._within[module.name].add(self._running[-1].name)
            self.note(module.name, module.kind, reason)

    def check(self, model: nn.Module, wanted: Callable[[str], bool], some_seen: bool) -> None:
        """Raise UserError if something wanted was hidden.

        A name alone is weak evidence: a linear attention, for one, has no weights to see. Of what ran in other threads,
        only what is called attention counts, if there is any or something was seen.
        """
        found = {name: told for name, told in self.found.items() if any(map(wanted, {name, *self._within[name]}))}
        if some_seen or any(reason not in WEAK for _, reason in found.values()):
            found = {name: told for name, told in found.items() if told[1] not in WEAK}
        named = {name for name, (kind, _) in found.items() if _CALLED_ATTENTION.search(kind)}
        if some_seen or named:
            found = {name: told for name, told in found.items() if told[1] != "thread" or name in named}
        lines = []
        for reason, text in REASONS.items():
            names = [f"{name or 'the model'} ({kind})" for name, (kind, why) in found.items() if why == reason]
            if names:
                more = f" (and {len(names) - TOLD} more like it)" if len(names) > TOLD else ""
                lines.append(f"{', '.join(names[:TOLD])}{more} {text}")
        if lines:
            raise UserError("; ".join(lines) + f"; {_advice(model, found)}")


def _code_attends(module: torch.jit.ScriptModule) -> bool:
    """Whether TorchScript calls torch's attention, or multiplies something by a softmax as it seems."""
    code = str(getattr(module, "inlined_graph", ""))
    products = ("aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum")
    own = "aten::softmax" in code and any(product in code for product in products)
    return own or "aten::scaled_dot_product_attention" in code


def _advice(model: nn.Module, found: dict[str, tuple[str, str]]) -> str:
    """What the user can do."""
    reasons = {reason for _, reason in found.values()}
    if reasons == {"silent"}:
        return "if it is of a kind that has no weights, such as linear attention, there is nothing to see"
    if reasons == {"thread"}:
        return f"call the model itself, without DataParallel or threads, or {_SITES}"
    if reasons == {"opaque"}:
        return f"call the model itself, on tensors with numbers, or {_SITES}"
    if reasons == {"nested"}:
        return f"give it padded tensors and a mask, or {_SITES}"
    if reasons == {"script"}:
        return f"look at the model that it was made from, or {_SITES}"
    modules = [module for name, module in model.named_modules() if name.replace(COMPILED, "") in found]
    return f"{_other_way(model, modules, unlike='unlike' in reasons)}, or {_SITES}"


def _other_way(model: nn.Module, modules: list[nn.Module], unlike: bool) -> str:
    """A way for these modules to attend that can be seen, or to have the weights from the model itself."""
    if modules and all(getattr(module, "fused_attn", True) is False for module in modules):
        return "set fused_attn = True on these modules"
    now = getattr(getattr(model, "config", None), "_attn_implementation", None)
    fused = getattr(model, "_supports_sdpa", False) and all(_may_be_fused(type(each)) for each in modules)
    if now == "eager" and fused:
        return "it attends by 'eager': load it with attn_implementation='sdpa'"
    if now not in (None, "eager") and unlike:
        return f"it attends by '{now}': load it with attn_implementation='eager'"
    if _tells_attentions(model):
        return "ask the model itself, by output_attentions=True"
    return "attend by torch's scaled_dot_product_attention or foveate's attend"


def _may_be_fused(kind: type) -> bool:
    """Whether the code of a module, or of a kind made of it, knows a fused implementation."""
    try:
        code = "".join(inspect.getsource(each) for each in (kind, *kind.__subclasses__()))
    except (OSError, TypeError):  # typed in, or made by other code
        return False
    return bool(_FUSED.search(code))


def _tells_attentions(model: nn.Module) -> bool:
    """Whether a model of transformers returns its weights when asked."""
    names = (*(getattr(model, "_can_record_outputs", None) or ()), *inspect.signature(model.forward).parameters)
    return any("attentions" in name for name in names)
