"""The table of kernels, and the choice of one for an attention call.

A call has needs. The first kernel of the table that serves all of them is chosen. All kernels serve dot products, masks
and the backward pass. All but the eager one use memory linear in T and S. A large call goes to the eager kernel only by
name, or if it has few queries or keys.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.kernels import blocked, chunks, eager, flex, points, rows, sdpa
from foveate.attention.kernels.precision import in_half, in_single_precision
from foveate.attention.points import PointScore
from foveate.attention.selection import Attended, Soft

LARGE = 2**22
"""Above this many numbers (16 MiB in single precision) the eager kernel is not chosen, unless queries, keys and values
are as large: one query over many keys needs no quadratic memory."""

FEW_QUERIES = 8
"""Up to this many queries the eager kernel is faster than torch's fused kernel, as in steps of decoding. On two cores,
40 x 8 heads with 24 keys and one query each take 167 us instead of 388, 8 x 8 heads with five queries 90 instead of
235. The limit is twice as high for transposed keys, which the fused kernel would copy."""

FEW_KEYS = 24
"""Up to this many keys, of fewer than 1,024 numbers per head, the same holds for forward and backward pass. On two
cores, 170 x 4 heads with 12 keys of width 32 take 3.7 ms instead of 8.0, 85 x 4 heads with 24 keys 2.6 instead of
4.6."""

NEEDS = {
    "many": f"more than {FEW_QUERIES} queries (twice as many for transposed keys) or gradients over more than "
    f"{FEW_KEYS} keys, half precision without gradients, or another device than a CPU",
    "score": "a score that is not a dot product",
    "points": "points of feature maps",
    "hidden places": "points of feature maps with a mask",
    "pairs": "a mask of positions other than the causal one, or a bias of them, on a device that compiles attention",
    "selection": "a selection other than soft",
    "sums": "linear attention to many keys or from a state, without bias or dropout, its mask causal or of keys",
    "kept weights": "a selection with a state, or whose weights are wanted and do not follow from the scores",
    "sinks": "sinks in the softmax",
    "bias": "a bias",
    "bias gradient": "the gradient of a bias",
    "dropout": "dropout of the weights",
    "value width": "values of another width than the keys",
    "log-sum-exp": "the log-sum-exp on a CPU",
    "log-sum-exp elsewhere": "the log-sum-exp on another device",
    "log-sum-exp gradient": "the gradient of the log-sum-exp",
    "large": "more than 2**22 scores, more than the numbers of its input",
}


def _requires_grad(tensor: Tensor) -> bool:  # no attrgetter, which torch cannot compile
    return tensor.requires_grad


@dataclass(frozen=True)
class Kernel:
    """An implementation of attention, and the needs that it serves."""

    name: str
    attend: Callable[[Call], Attended]
    serves: frozenset[str]
    only: frozenset[str] = frozenset()
    """The needs without which a call is not for this kernel."""


TABLE = (
    Kernel("few", in_single_precision(eager.attend), frozenset({"bias", "value width", "log-sum-exp", "large"})),
    Kernel(
        "flex", flex.attend, frozenset({"pairs", "many", "bias", "value width", "large"}), only=frozenset({"pairs"})
    ),
    Kernel("sdpa", in_single_precision(sdpa.attend), frozenset({"many", "pairs", "bias", "log-sum-exp", "large"})),
    Kernel(
        "points",
        points.attend,
        frozenset({"points", "score", "many", "sinks", "dropout", "value width", "large"}),
        only=frozenset({"points"}),
    ),
    Kernel(
        "chunks",
        chunks.attend,
        frozenset({"sums", "selection", "kept weights", "score", "many", "value width", "large"}),
        only=frozenset({"sums"}),
    ),
    Kernel("eager", eager.attend, frozenset(NEEDS) - {"large"}),
    Kernel("blocked", blocked.attend, frozenset(NEEDS) - {"selection", "sums", "kept weights"}),
    Kernel("rows", rows.attend, frozenset(NEEDS) - {"points", "hidden places", "kept weights"}),
)


def needs(call: Call) -> set[str]:
    """The keys of `NEEDS` that a call has."""
    bias_tensors = () if call.bias is None else (*call.bias.tensors(), *(call.queries,) * call.bias.reads_queries)
    grad = torch.is_grad_enabled()
    of_others = (*call.score.tensors(), *bias_tensors)
    learning = grad and (call.queries.requires_grad or call.keys.requires_grad or any(map(_requires_grad, of_others)))
    on_cpu = call.queries.device.type == "cpu"
    few_keys = call.keys.shape[-2] <= FEW_KEYS and call.keys.shape[-2:].numel() < 1024
    most = 2 * FEW_QUERIES if call.keys.mT.is_contiguous() else FEW_QUERIES
    few = few_keys if learning else not in_half(call) and (few_keys or call.queries.shape[-2] <= most)
    other = not isinstance(call.select, Soft)
    full = call.full and call.state is None  # whoever passes a state wants the next one
    has = {
        "many": not few or not on_cpu,
        "points": isinstance(call.score, PointScore),
        "hidden places": isinstance(call.score, PointScore) and call.mask is not None,
        "score": call.score.scale(call.queries.shape[-1]) is None,
        "pairs": (call.mask is not None or call.bias is not None) and flex.serves(call),
        "selection": other,
        "kept weights": other and ((call.full and call.select.keeps_weights) or call.state is not None),
        "sums": other and (not few or call.state is not None) and chunks.serves(call),
        "sinks": call.select.sinks is not None,
        "bias": call.bias is not None,
        "bias gradient": grad and any(map(_requires_grad, bias_tensors)),
        "dropout": call.dropout > 0,
        "value width": call.values.shape[-1] != call.keys.shape[-1],
        "log-sum-exp": full and on_cpu,
        "log-sum-exp elsewhere": full and not on_cpu,
        "log-sum-exp gradient": full and learning,
        "large": call.numbers > max(LARGE, call.queries.numel() + call.keys.numel() + call.values.numel()),
    }
    return set(filter(has.get, has))


def choose(call: Call, name: str = "auto") -> Kernel:
    """The first kernel of the table that serves a call, or the named one. Raises ValueError if none does.

    The eager kernel, chosen by name, also serves large calls.
    """
    wanted = needs(call)
    if name == "auto":
        for kernel in TABLE:
            if kernel.only <= wanted <= kernel.serves:
                return kernel
        missing = _describe(wanted - {"many"})  # only the first kernel lacks "many"
        raise ValueError(
            f"no kernel of linear memory serves {missing}; kernel='eager' does, with {call.numbers:,} numbers"
        )
    for kernel in TABLE:
        if kernel.name == name:
            if lacking := {*kernel.only} - wanted:
                raise ValueError(f"the {name} kernel serves {_describe(lacking)} only; use kernel='auto'")
            unserved = wanted - kernel.serves - ({"large"} if name == "eager" else set())
            if unserved:
                raise ValueError(f"the {name} kernel does not serve {_describe(unserved)}; use kernel='auto'")
            return kernel
    raise ValueError(f"no kernel is named '{name}'; known: auto, {', '.join(kernel.name for kernel in TABLE)}")


def _describe(wanted: set[str]) -> str:
    return " together with ".join(text for need, text in NEEDS.items() if need in wanted)
