"""Torch's functions by their part in attention that a model computes itself: softmaxes, products, what is between."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ATEN = torch.ops.aten
"""The operators that programs of torch.export call; decomposed programs call only the core ones."""


def _operators(*names: str) -> list[Any]:
    """Torch's core operators of these names, with all their overloads."""
    packets = [getattr(ATEN, name) for name in names]
    return [*packets, *(getattr(packet, overload) for packet in packets for overload in packet.overloads())]


SOFTMAXES = {
    *(F.softmax, F.softmin, torch.softmax, torch.special.softmax, Tensor.softmax, F.gumbel_softmax),
    torch._softmax,
    *_operators("softmax", "_softmax", "_safe_softmax", "special_softmax"),
}

SIGMOIDS = {F.sigmoid, torch.sigmoid, Tensor.sigmoid, Tensor.sigmoid_, torch.special.expit, *_operators("sigmoid")}

RECTIFIERS = {
    *(F.relu, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_, F.relu6, F.softplus),
    *_operators("relu", "relu_", "softplus"),
}

LOG_SOFTMAXES = {
    *(F.log_softmax, torch.log_softmax, torch.special.log_softmax, Tensor.log_softmax),
    *_operators("log_softmax", "_log_softmax", "special_log_softmax"),
}

EXPONENTIALS = {
    *(torch.exp, Tensor.exp, Tensor.exp_, torch.exp2, Tensor.exp2, torch.special.exp2),
    *_operators("exp", "exp2", "special_exp2"),
}

LOG_SUMS = {torch.logsumexp, Tensor.logsumexp, torch.special.logsumexp, *_operators("logsumexp", "special_logsumexp")}

DIFFERENCES = {
    *(torch.sub, torch.subtract, Tensor.sub, Tensor.subtract, Tensor.__sub__, *_operators("sub")),
}

NORMALIZED = {F.normalize}
"""Divide by a norm, which is the sum of exponentials if it is the first one."""

QUOTIENTS = {
    *(torch.div, torch.divide, torch.true_divide, Tensor.div, Tensor.div_, Tensor.__truediv__, Tensor.__itruediv__),
    *_operators("div"),
}

MATMULS = {
    *(ATEN.matmul.default, ATEN.bmm.default, ATEN.mm.default),
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__, torch.bmm, Tensor.bmm, torch.mm, Tensor.mm),
}

EINSUMS = {torch.einsum, ATEN.einsum.default}

PRODUCTS = {
    *MATMULS,
    *EINSUMS,
    *(torch.baddbmm, Tensor.baddbmm, ATEN.baddbmm.default, torch.tensordot, torch.inner, Tensor.inner),
}

SPREADS = {
    *(torch.mul, Tensor.mul, Tensor.mul_, Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__, torch.multiply),
    ATEN.mul.Tensor,
}
"""Elementwise products of each weight with a mask, or with a whole value by broadcasting."""

SUMS = {torch.sum, Tensor.sum, ATEN.sum.dim_IntList}

CHANGES = {
    *(torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__),
    *(ATEN.add.Tensor, *QUOTIENTS),
}

DROPOUTS = {F.dropout, torch.dropout, torch.dropout_, F.alpha_dropout, F.dropout1d, F.dropout2d, ATEN.dropout.default}
