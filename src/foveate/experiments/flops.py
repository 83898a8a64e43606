"""Counting floating-point operations. A multiplication and an addition are two."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count


def _forward(query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_flop_count(query, key, value)


def _backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_backward_flop_count(gradient, query, key, value)


FORMULAS = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _forward,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _backward,
}
"""Formulas for operations that torch does not count: fused attention on a CPU, all pairs that the kernel visits."""


def flops(run: Callable[[], Any]) -> int:
    """The number of operations of all matrix products, convolutions and attention in a run.

    Elementwise functions and softmax are not counted, nor are fused recurrent kernels (of an LSTM on a CPU; a GRU
    consists of matrix products).
    """
    with FlopCounterMode(display=False, custom_mapping=FORMULAS) as counter:
        run()
    return counter.get_total_flops()
