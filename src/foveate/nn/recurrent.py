"""Recurrent layers with one interface for all cells: the state is a tuple of (layers, B, C) tensors."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from foveate.attention.autocast import without_autocast
from foveate.errors import UserError, one_of
from foveate.nn.pooling import MeanPooling
from foveate.nn.precision import cpu_has_bfloat16_lstm

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "vanilla": nn.RNN}

RecurrentState = tuple[Tensor, ...]


class Recurrent(nn.Module):
    """A stack of LSTM, GRU or vanilla layers. Bidirectional layers give half of the width to each direction."""

    def __init__(
        self,
        cell: str,
        input_width: int,
        width: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        one_of("cell", cell, CELLS)
        if bidirectional and width % 2:
            raise UserError(f"a bidirectional layer needs an even width, not {width}")
        self.width = width
        self.layer = CELLS[cell](
            input_width,
            width // 2 if bidirectional else width,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )

    def forward(
        self,
        x: Float[Tensor, "B T E"],
        state: RecurrentState | None = None,
        lengths: Int[Tensor, "B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], RecurrentState]:
        """The outputs of all steps and the state after the last step, by `lengths` for each sequence."""
        if self._needs_float32(x):
            exact = None if state is None else tuple(part.float() for part in state)
            with without_autocast(x.device):
                return self(x.float(), exact, lengths)
        start = None if state is None else (state if isinstance(self.layer, nn.LSTM) else state[0])
        if lengths is None or lengths.device.type == "meta":  # which has no numbers: all steps count
            outputs, end = self.layer(x, start)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, end = self.layer(packed, start)
            outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        end = end if isinstance(end, tuple) else (end,)
        return outputs, tuple(self._concatenate(part) for part in end)

    def outputs(self, x: Float[Tensor, "B T E"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B T C"]:
        """The outputs of all steps from an empty state, zeros after the end of each sequence.

        The same numbers as those of `forward`, without the state. On a CPU an LSTM trains several times as fast: torch
        has a fast kernel for padded sequences but none for packed ones, whose backward pass is quadratic in the length.
        """
        if not isinstance(self.layer, nn.LSTM) or x.device.type != "cpu":
            return self(x, lengths=lengths)[0]
        if self._needs_float32(x):
            with without_autocast(x.device):
                return self.outputs(x.float(), lengths)
        steps = torch.arange(x.shape[1], device=x.device)
        inside = (steps < lengths[:, None])[..., None]
        last_first = torch.where(inside[..., 0], lengths[:, None] - 1 - steps, steps)[..., None]
        directions = 2 if self.layer.bidirectional else 1
        for number in range(self.layer.num_layers):
            if number and self.layer.dropout:
                x = nn.functional.dropout(x, self.layer.dropout, self.training)
            parts = []
            for direction in range(directions):
                weights: list[Tensor] = [*self.layer.all_weights[number * directions + direction]]
                seen = x if not direction else x.gather(1, last_first.expand_as(x))
                zeros = x.new_zeros(1, len(x), self.layer.hidden_size)
                part, _, _ = torch.lstm(seen, (zeros, zeros), weights, True, 1, 0.0, self.training, False, True)
                part = part * inside
                parts.append(part if not direction else part.gather(1, last_first.expand_as(part)))
            x = torch.cat(parts, -1)
        return x

    def _needs_float32(self, x: Tensor) -> bool:
        """Returns whether automatic precision asks for an LSTM in bfloat16 of a CPU that has none."""
        mixed = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        return mixed and isinstance(self.layer, nn.LSTM) and not cpu_has_bfloat16_lstm()

    def _concatenate(self, state: Float[Tensor, "L B D"]) -> Float[Tensor, "M B C"]:
        """Concatenate the states of both directions of a layer."""
        if not self.layer.bidirectional:
            return state
        return torch.cat([state[0::2], state[1::2]], -1)


class WordStates(nn.Module):
    """An encoder without layers: the word embeddings, and their mean as the state."""

    def __init__(self, width: int, states: int, layers: int) -> None:
        super().__init__()
        self.width, self.states, self.layers = width, states, layers
        self.mean = MeanPooling()

    def forward(
        self, x: Float[Tensor, "B S E"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B S E"], tuple[Tensor, ...]]:
        return x, (self.mean(x, lengths).expand(self.layers, -1, -1),) * self.states


def reverse_rows(x: Shaped[Tensor, "B S ..."], lengths: Int[Tensor, "B"]) -> Shaped[Tensor, "B S ..."]:
    """Each row from its last place to its first. Padding behind the end stays where it is."""
    places = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
    ends = lengths.to(x.device)[:, None]
    places = torch.where(places < ends, ends - 1 - places, places)
    return x.gather(1, places.view(*places.shape, *[1] * (x.ndim - 2)).expand_as(x))
