"""Recurrent layers: every cell, both ways, and sentences of different lengths."""

import pytest
import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.nn import Recurrent, recurrent
from foveate.nn.recurrent import CELLS

B, T, E, C = 3, 5, 4, 6
LENGTHS = torch.tensor([3, 5, 1])
EVERY_CELL = pytest.mark.parametrize("cell", CELLS)
BOTH = pytest.mark.parametrize("bidirectional", [False, True])


def states(cell: str) -> int:
    return 2 if cell == "lstm" else 1


@EVERY_CELL
@BOTH
@pytest.mark.parametrize("layers", [1, 2])
def test_shapes(cell: str, bidirectional: bool, layers: int) -> None:
    """Both directions share the width: the output is C wide, and so is each state."""
    outputs, state = Recurrent(cell, E, C, layers, bidirectional)(torch.randn(B, T, E))
    assert outputs.shape == (B, T, C)
    assert [part.shape for part in state] == [(layers, B, C)] * states(cell)


@EVERY_CELL
def test_the_state_is_that_after_the_last_step(cell: str) -> None:
    layer, x = Recurrent(cell, E, C, layers=2), torch.randn(B, T, E)
    outputs, state = layer(x)
    assert torch.equal(state[0][-1], outputs[:, -1])
    first, between = layer(x[:, :2])
    second, end = layer(x[:, 2:], between)
    torch.testing.assert_close(torch.cat([first, second], 1), outputs)
    torch.testing.assert_close(end, state)


@EVERY_CELL
@BOTH
def test_padding_changes_nothing(cell: str, bidirectional: bool) -> None:
    """A padded batch gives what each sentence gives alone, outputs and final state, and zeros behind its end."""
    layer, x = Recurrent(cell, E, C, 2, bidirectional), torch.randn(B, T, E)
    outputs, state = layer(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        own, end = layer(x[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], own[0])
        assert not outputs[row, length:].any()
        torch.testing.assert_close([part[:, row] for part in state], [part[:, 0] for part in end])


@EVERY_CELL
@BOTH
def test_what_stands_in_the_padding_never_leaks(cell: str, bidirectional: bool) -> None:
    layer, x = Recurrent(cell, E, C, 2, bidirectional), torch.randn(B, T, E)
    junk = x.clone()
    junk[torch.arange(T) >= LENGTHS[:, None]] = torch.nan
    torch.testing.assert_close(layer(junk, lengths=LENGTHS), layer(x, lengths=LENGTHS))


def test_no_row_needs_to_fill_the_width_of_the_batch() -> None:
    layer = Recurrent("gru", E, C)
    outputs, _ = layer(torch.randn(B, T + 2, E), lengths=LENGTHS)
    assert outputs.shape == (B, T + 2, C)


def ends(layer: Recurrent, x: Tensor) -> tuple[Tensor, Tensor]:
    """What a bidirectional layer knows of x at the ends of its two readings."""
    outputs, _ = layer(x)
    return outputs[:, -1, : C // 2], outputs[:, 0, C // 2 :]


@EVERY_CELL
def test_the_second_half_reads_backwards(cell: str) -> None:
    """Both halves of the state are the ends of both readings; the first output knows of the last word, and so on."""
    layer, x = Recurrent(cell, E, C, bidirectional=True), torch.randn(B, T, E)
    _, state = layer(x)
    assert torch.equal(state[0][0], torch.cat(ends(layer, x), -1))
    other = x.clone()
    other[:, -1] += 1
    changed = (layer(other)[0] - layer(x)[0]).abs().amax((0, 2)) > 1e-6
    assert changed.all()
    one_way = Recurrent(cell, E, C)
    changed = (one_way(other)[0] - one_way(x)[0]).abs().amax((0, 2)) > 0
    assert changed.tolist() == [False] * (T - 1) + [True]


@EVERY_CELL
def test_the_halves_of_each_layer_are_joined(cell: str) -> None:
    """PyTorch gives the states as layer 0 forth, layer 0 back, layer 1 forth, layer 1 back."""
    layer, x = Recurrent(cell, E, C, 2, bidirectional=True), torch.randn(B, T, E)
    _, raw = layer.layer(x)
    raw = raw if isinstance(raw, tuple) else (raw,)
    _, state = layer(x)
    for joined, parts in zip(state, raw, strict=True):
        assert torch.equal(joined[1], torch.cat([parts[2], parts[3]], -1))


def test_dropout_is_between_layers() -> None:
    for layers, varies in [(1, False), (2, True)]:
        layer, x = Recurrent("gru", E, C, layers, dropout=0.5), torch.randn(B, T, E)
        assert torch.equal(layer(x)[0], layer(x)[0]) != varies


def test_two_directions_need_an_even_width() -> None:
    with pytest.raises(UserError, match="a bidirectional layer needs an even width, not 7"):
        Recurrent("gru", E, 7, bidirectional=True)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_outputs_of_padded_sequences_are_those_of_packed_ones(bidirectional: bool) -> None:
    torch.manual_seed(3)
    recurrent = Recurrent("lstm", 5, 6, 2, bidirectional)
    x, lengths = torch.randn(3, 11, 5, requires_grad=True), torch.tensor([7, 11, 1])
    packed, _ = recurrent(x, lengths=lengths)
    padded = recurrent.outputs(x, lengths)
    torch.testing.assert_close(padded, packed, atol=1e-6, rtol=0)
    found, expected = (
        torch.autograd.grad(one.square().sum(), [x, *recurrent.parameters()]) for one in (padded, packed)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@EVERY_CELL
def test_mixed_precision(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every CPU, also on one without an LSTM in bfloat16, where it computes in float32."""
    layer, x = Recurrent(cell, E, C, layers=2, bidirectional=True), torch.randn(B, T, E)
    exact, state = layer(x, lengths=LENGTHS)
    for there in (recurrent.cpu_has_bfloat16_lstm(), False):
        monkeypatch.setattr(recurrent, "cpu_has_bfloat16_lstm", lambda there=there: there)
        with torch.autocast("cpu", torch.bfloat16):
            outputs, begun = layer(x.bfloat16(), lengths=LENGTHS)
            alone = layer.outputs(x.bfloat16(), LENGTHS)
        for found, expected in zip((outputs, alone, *begun), (exact, exact, *state), strict=True):
            torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.02)
    assert cell != "lstm" or outputs.dtype == alone.dtype == torch.float32
