"""Models that consist of foveate's modules and torch's leaf layers: much less has to be watched while they run.

They attend by `attend` alone, in modules that say so (`attends`). What is recorded there is what was computed, not what
the arguments of another library's function are taken to mean. Nothing in them writes to queries and keys that they
attended to.
"""

from torch import nn

from foveate.errors import of_kind

CONTAINERS = {nn.Sequential, nn.ModuleList, nn.ModuleDict}
"""Modules of torch that only hold or call others."""


def own_modules(model: nn.Module) -> dict[str, nn.Module] | None:
    """The modules of such a model by their paths; None for any other one.

    A hook or method that was added to a module from outside could attend, too. (`named_modules` takes three times as
    long, a hundredth of a pass of a small model.)
    """
    of_kind(nn.Module, "the model", model, "a torch.nn.Module")
    found: dict[str, nn.Module] = {}
    own: dict[type, bool] = {}
    seen: set[nn.Module] = set()
    ahead = [("", model)]
    while ahead:
        path, module = ahead.pop()
        if module in seen:
            continue
        kind = type(module)
        if kind not in own:
            own[kind] = kind.__module__.startswith("foveate.") or kind in CONTAINERS
        hooks = (*module._forward_hooks, *module._forward_pre_hooks)
        changed = any(key >= 0 for key in hooks) or "forward" in vars(module)  # those of an open change are below 0
        if changed or not (own[kind] or cannot_attend(module)):
            return None
        seen.add(module)
        found[path] = module
        inside = path and f"{path}."
        ahead += [(inside + name, part) for name, part in reversed(module._modules.items()) if part is not None]
    return found


def cannot_attend(module: nn.Module) -> bool:
    """Returns whether a module is a leaf layer of torch: linear, dropout, normalisation, ..."""
    own = type(module).__module__.startswith("torch.nn.modules.") and "forward" not in vars(module)
    return own and not module._modules
