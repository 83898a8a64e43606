"""Recurrent cells that torch computes by one kernel on a GPU and by several on a CPU: what their kernels would give."""

from typing import Any

import torch
from torch import Tensor


def gru_cell(
    inputs: Tensor, hidden: Tensor, state: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The next state (B, H), and what the way back needs (B, 5 H)."""
    inputs = inputs if input_bias is None else inputs + input_bias
    hidden = hidden if hidden_bias is None else hidden + hidden_bias
    (reset_in, update_in, new_in), (reset_from, update_from, new_from) = inputs.chunk(3, 1), hidden.chunk(3, 1)
    reset, update = torch.sigmoid(reset_in + reset_from), torch.sigmoid(update_in + update_from)
    new = torch.tanh(new_in + reset * new_from)
    return new + update * (state - new), torch.cat([reset, update, new, state, new_from], 1)


def gru_cell_backward(gradient: Tensor, kept: Tensor, has_bias: bool) -> tuple[Any, ...]:
    reset, update, new, state, new_from = kept.chunk(5, 1)
    of_new = gradient * (1 - update) * (1 - new * new)
    of_update = gradient * (state - new) * update * (1 - update)
    of_reset = of_new * new_from * reset * (1 - reset)
    inputs = torch.cat([of_reset, of_update, of_new], 1)
    hidden = torch.cat([of_reset, of_update, of_new * reset], 1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, gradient * update, *biases


def lstm_cell(
    inputs: Tensor, hidden: Tensor, cell: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The next state and cell (B, H), and what the way back needs (B, 4 H)."""
    gates = inputs + hidden
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    let_in, forget, new, let_out = gates.chunk(4, 1)
    let_in, forget, let_out = (torch.sigmoid(one) for one in (let_in, forget, let_out))
    new = torch.tanh(new)
    after = forget * cell + let_in * new
    return let_out * torch.tanh(after), after, torch.cat([let_in, forget, new, let_out], 1)


def lstm_cell_backward(
    of_state: Tensor | None, of_cell: Tensor | None, cell: Tensor, after: Tensor, kept: Tensor, has_bias: bool
) -> tuple[Any, ...]:
    let_in, forget, new, let_out = kept.chunk(4, 1)
    squashed, nothing = torch.tanh(after), torch.zeros_like(after)
    of_state = nothing if of_state is None else of_state
    total = (nothing if of_cell is None else of_cell) + of_state * let_out * (1 - squashed * squashed)
    gates = torch.cat(
        [
            total * new * let_in * (1 - let_in),
            total * cell * forget * (1 - forget),
            total * let_in * (1 - new * new),
            of_state * squashed * let_out * (1 - let_out),
        ],
        1,
    )
    return gates, total * forget, gates.sum(0) if has_bias else None


CELLS = {
    "aten._thnn_fused_gru_cell.default": gru_cell,
    "aten._thnn_fused_gru_cell_backward.default": gru_cell_backward,
    "aten._thnn_fused_lstm_cell.default": lstm_cell,
    "aten._thnn_fused_lstm_cell_backward_impl.default": lstm_cell_backward,
}
"""What is computed in place of the kernels of a GPU, by the names of the operations."""
