"""Which kernel computes an attention call: one table, read from the top.

A call has needs; the first kernel that serves all of them is chosen. Dot products, masks and the backward pass are
served by all. Every kernel but the eager one keeps memory linear in T and S, so a large call never goes to it unless it
is named, or has so few queries or keys that linear is what it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import torch

from foveate.attention.call import Call
from foveate.attention.kernels import blocked, eager, sdpa
from foveate.attention.kernels.precision import in_half, in_single_precision
from foveate.attention.selection import Attended, Soft

LARGE = 2**22
"""From how many numbers on (16 MiB in single precision) the eager kernel is not chosen, unless queries, keys and values
are as large: one query over many keys is no quadratic matter."""

FEW_QUERIES = 8
"""Up to how many queries the products of the eager kernel are faster than torch's fused one: steps of decoding. Of 40 x
8 heads with 24 keys and one query each, on two cores, 167 us instead of 388; of 8 x 8 with five each, 90 of 235. Where
keys lie across, which the fused one would copy, up to twice as many."""

FEW_KEYS = 24
"""Up to how many keys, of fewer than 1,024 numbers together, the same holds, with the backward pass too: short texts.
Of 170 x 4 heads with 12 keys of width 32, on two cores, 3.7 ms instead of 8.0; of 85 x 4 with 24 keys, 2.6 of 4.6."""

NEEDS = {
    "many": f"more than {FEW_QUERIES} queries (twice as many, if keys lie across) or gradients over more than "
    f"{FEW_KEYS} keys, half precision without gradients, or another device than a CPU",
    "score": "a score that is no dot product",
    "selection": "a selection other than soft",
    "sinks": "sinks in the softmax",
    "bias": "a bias",
    "bias gradient": "the gradient of a bias",
    "dropout": "dropout of the weights",
    "value width": "values of another width than the keys",
    "log-sum-exp": "the log-sum-exp on a CPU",
    "log-sum-exp elsewhere": "the log-sum-exp on another device",
    "log-sum-exp gradient": "the gradient of the log-sum-exp",
    "large": "more than 2**22 scores, more than its input holds",
}


_requires_grad = attrgetter("requires_grad")


@dataclass(frozen=True)
class Kernel:
    """A way to compute attention, and the needs that it serves."""

    name: str
    attend: Callable[[Call], Attended]
    serves: frozenset[str]


TABLE = (
    Kernel("few", in_single_precision(eager.attend), frozenset({"bias", "value width", "log-sum-exp", "large"})),
    Kernel("sdpa", in_single_precision(sdpa.attend), frozenset({"many", "bias", "log-sum-exp", "large"})),
    Kernel("eager", eager.attend, frozenset(NEEDS) - {"large"}),
    Kernel("blocked", blocked.attend, frozenset(NEEDS) - {"selection", "sinks"}),
)


def needs(call: Call) -> set[str]:
    """Which of `NEEDS` a call has."""
    bias_tensors = () if call.bias is None else (*call.bias.tensors(), *(call.queries,) * call.bias.reads_queries)
    grad = torch.is_grad_enabled()
    learning = grad and any(map(_requires_grad, (call.queries, call.keys, *call.score.tensors(), *bias_tensors)))
    on_cpu = call.queries.device.type == "cpu"
    few_keys = call.keys.shape[-2] <= FEW_KEYS and call.keys.shape[-2:].numel() < 1024
    most = 2 * FEW_QUERIES if call.keys.mT.is_contiguous() else FEW_QUERIES
    few = few_keys if learning else not in_half(call) and (few_keys or call.queries.shape[-2] <= most)
    has = {
        "many": not few or not on_cpu,
        "score": call.score.scale(call.queries.shape[-1]) is None,
        "selection": not isinstance(call.select, Soft),
        "sinks": call.select.sinks is not None,
        "bias": call.bias is not None,
        "bias gradient": grad and any(map(_requires_grad, bias_tensors)),
        "dropout": call.dropout > 0,
        "value width": call.values.shape[-1] != call.keys.shape[-1],
        "log-sum-exp": call.full and on_cpu,
        "log-sum-exp elsewhere": call.full and not on_cpu,
        "log-sum-exp gradient": call.full and learning,
        "large": call.numbers > max(LARGE, call.queries.numel() + call.keys.numel() + call.values.numel()),
    }
    return set(filter(has.get, has))


def choose(call: Call, name: str = "auto") -> Kernel:
    """The kernel for a call: the first of the table that serves it, or the named one if it does.

    The eager kernel, asked for by name, also computes what is large.
    """
    wanted = needs(call)
    if name == "auto":
        for kernel in TABLE:
            if wanted <= kernel.serves:
                return kernel
        told = _told(wanted - {"many"})  # which only the first kernel lacks, and no other would help
        raise ValueError(
            f"no kernel of linear memory serves {told}; kernel='eager' does, with {call.numbers:,} numbers"
        )
    for kernel in TABLE:
        if kernel.name == name:
            missing = wanted - kernel.serves - ({"large"} if name == "eager" else set())
            if missing:
                raise ValueError(f"the {name} kernel does not serve {_told(missing)}; use kernel='auto'")
            return kernel
    raise ValueError(f"no kernel is named '{name}'; there are auto, {', '.join(kernel.name for kernel in TABLE)}")


def _told(wanted: set[str]) -> str:
    return " together with ".join(text for need, text in NEEDS.items() if need in wanted)
