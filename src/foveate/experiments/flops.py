"""Counting floating-point operations: a multiplication and an addition are two."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count


def _forward(query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_flop_count(query, key, value)


def _backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_backward_flop_count(gradient, query, key, value)


WRITTEN = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _forward,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _backward,
}
"""Formulas for what torch's counter does not know: fused attention on a CPU, all pairs that the kernel visits."""


def flops(run: Callable[[], Any]) -> int:
    """The operations of all matrix products, convolutions and attention of a run, as torch sees them go by.

    Elementwise functions and softmax are not counted, nor is what hides in fused recurrent kernels (an LSTM's on a
    CPU; a GRU's is matrix products, which are seen).
    """
    with FlopCounterMode(display=False, custom_mapping=WRITTEN) as counter:
        run()
    return counter.get_total_flops()
