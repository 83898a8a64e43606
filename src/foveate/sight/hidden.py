"""What attends without being seen: the evidence for it, and the error that names it.

An empty answer would say that a model looks nowhere. So modules are watched that are called attention, and softmaxes
that are multiplied with something: where no call was noted, a look ends with an error.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from foveate.contracts import UserError

_CALLED_ATTENTION = re.compile(r"attent|attn", re.IGNORECASE)

TOLD = 3
"""So many modules are named for each reason."""

REASONS = {
    "softmax": "attends by a softmax of its own, which cannot be seen",
    "unlike": "makes more of its weights than a mean of values, or other weights than its arguments say",
    "thread": "ran in another thread than the one that looks, where nothing can be seen",
    "script": "is TorchScript, which cannot be seen into",
    "silent": "is called attention, but made no attention call that can be seen",
}

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
        if called_attention and not module.has_attention and self._noted == module.noted:
            self.note(module.name, module.kind, "softmax" if module.softmax else "silent")

    def seen(self) -> None:
        """An attention call was noted."""
        self._noted += 1

    def softmax(self) -> None:
        """The running module computed a softmax that is no part of a call that was noted, such as a router's."""
        if self._running:
            self._running[-1].softmax = True

    def attended(self) -> None:
        """The running module multiplied such a softmax with something: it attends."""
        self._here("softmax")

    def unlike(self) -> None:
        """The running module made a call whose output is not what the call says."""
        self._here("unlike")

    def note(self, name: str, kind: str, reason: str) -> None:
        """A module has attended unseen."""
        self.found.setdefault(name, (kind, reason))

    def _here(self, reason: str) -> None:
        if self._running:
            self._noted += 1
            self.note(self._running[-1].name, self._running[-1].kind, reason)

    def check(self, model: nn.Module, wanted: Callable[[str], bool], some_seen: bool) -> None:
        """Raise UserError if something wanted was hidden.

        Where something was seen, or is known to be hidden, a name alone is no evidence: a linear attention, for one, has
        no weights to see.
        """
        found = {name: told for name, told in self.found.items() if wanted(name)}
        if some_seen or any(reason != "silent" for _, reason in found.values()):
            found = {name: told for name, told in found.items() if told[1] != "silent"}
        lines = []
        for reason, text in REASONS.items():
            names = [f"{name or 'the model'} ({kind})" for name, (kind, why) in found.items() if why == reason]
            if names:
                more = f" (and {len(names) - TOLD} more like it)" if len(names) > TOLD else ""
                lines.append(f"{', '.join(names[:TOLD])}{more} {text}")
        if lines:
            raise UserError("; ".join(lines) + f"; {_advice(model, {reason for _, reason in found.values()})}")


def _advice(model: nn.Module, reasons: set[str]) -> str:
    """What the user can do."""
    if reasons == {"silent"}:
        return "if it is of a kind that has no weights, such as linear attention, there is nothing to see"
    if reasons == {"thread"}:
        return f"call the model itself, without DataParallel or threads, or {_SITES}"
    if reasons == {"script"}:
        return f"look at the model that it was made from, or {_SITES}"
    return f"{_switch(model)}, or {_SITES}"


def _switch(model: nn.Module) -> str:
    """Another way for this model to attend, if it has one."""
    unfused = [name for name, module in model.named_modules() if getattr(module, "fused_attn", True) is False]
    if unfused:
        return f"set fused_attn = True on such modules ({unfused[0]})"
    config = getattr(model, "config", None)
    now = getattr(config, "_attn_implementation", None)
    if now is None:
        return "attend by torch's scaled_dot_product_attention or foveate's attend"
    other = "eager" if now != "eager" else "sdpa" if getattr(model, "_supports_sdpa", False) else None
    if other is not None:
        return f"it attends by '{now}': try model.set_attn_implementation('{other}')"
    return "it has no other implementation: ask the model itself, by output_attentions=True"
