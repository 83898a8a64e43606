"""The recurrent decoders: what each joins to a step, one step after the other against all at once, and reordering.

Their numbers are compared with the papers' equations in `tests/parity`.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import Additive, Hard, Monotonic, Soft
from foveate.nn import BahdanauDecoder, FixedVectorDecoder, LuongDecoder, Recurrent, RecurrentDecoderState
from foveate.nn.local_windows import AdvancingWindow, DiagonalWindow, PredictedWindow

B, T, S, E, C, V = 2, 5, 7, 3, 6, 4
LENGTHS = torch.tensor([7, 4])

DECODERS: dict[str, Callable[..., nn.Module]] = {
    "fixed, first": lambda cell, **_: FixedVectorDecoder(cell, C, every_step=False),
    "fixed, every": lambda cell, **_: FixedVectorDecoder(cell, C, every_step=True),
    "bahdanau": lambda cell, **how: BahdanauDecoder(cell, C, V, Additive(C, V, 5), **how),
    "luong": lambda cell, **how: LuongDecoder(cell, C, V, Additive(C, V, 5), **how),
    "luong, fed": lambda cell, **how: LuongDecoder(cell, C, V, Additive(C, V, 5), **how, input_feeding=True),
}
ATTENTIVE = ["bahdanau", "luong", "luong, fed"]


WAYS: dict[str, Callable[[], dict]] = {
    "soft": lambda: {"select": Soft()},
    "hard": lambda: {"select": Hard()},
    "monotonic": lambda: {"select": Monotonic(offset=0.5)},
    "local-m": lambda: {"select": Soft(), "window": DiagonalWindow(1)},
    "local-p": lambda: {"select": Soft(), "window": PredictedWindow(C, 1)},
    "advancing": lambda: {"select": Soft(), "window": AdvancingWindow(C, 1)},
    "local-p, hard": lambda: {"select": Hard(), "window": PredictedWindow(C, 2)},
    "local-m, monotonic": lambda: {"select": Monotonic(offset=0.5), "window": DiagonalWindow(2)},
}
"""What attentive decoders may look at, and take."""


def decoder(name: str, cell: str = "gru", layers: int = 1, way: str = "soft") -> nn.Module:
    def recurrent(further_width: int) -> Recurrent:
        return Recurrent(cell, E + further_width, C, layers)

    return DECODERS[name](recurrent, **WAYS[way]())


def started(layer: nn.Module, cell: str = "gru", layers: int = 1) -> Callable[[], RecurrentDecoderState]:
    """Makes the same first state again and again."""
    hidden = tuple(torch.randn(layers, B, C) for _ in range(2 if cell == "lstm" else 1))
    return partial(layer.start, hidden, torch.randn(B, S, V), LENGTHS)


@pytest.mark.parametrize("cell", ["lstm", "gru", "vanilla"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", DECODERS)
def test_step_by_step_equals_all_at_once(name: str, layers: int, cell: str) -> None:
    layer = decoder(name, cell, layers)
    start, x = started(layer, cell, layers), torch.randn(B, T, E)
    whole, state = layer(x, at_the_end := start())[0], start()
    steps = [layer(one, state)[0] for one in x.split(1, 1)]
    assert whole.shape == (B, T, C)
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    torch.testing.assert_close(state.hidden, at_the_end.hidden)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ATTENTIVE)
def test_steps_of_every_way_equal_all_at_once(name: str, way: str) -> None:
    layer = decoder(name, way=way).eval()
    start, x = started(layer), torch.randn(B, T, E)
    whole, state = layer(x, start())[0], start()
    parts = [layer(part, state)[0] for part in x.split([1, 2, 1, 1], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole)


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "soft") for name in DECODERS), *((name, way) for name in ATTENTIVE for way in WAYS)]
)
def test_rows_that_change_places(name: str, way: str) -> None:
    """A row named twice, one left out: each goes on as if it had been alone."""
    layer = decoder(name, way=way).eval()
    start, x = started(layer), torch.randn(B, T, E)
    state = start()
    layer(x[:, :2], state)
    rows = torch.tensor([1, 0, 1])
    state.reorder(rows)
    continued, _ = layer(x[rows, 2:], state)
    torch.testing.assert_close(continued, layer(x, start())[0][rows, 2:])


@pytest.mark.parametrize("name", ATTENTIVE)
def test_a_monotonic_decoder_goes_on_from_where_it_stopped(name: str) -> None:
    """Each row's own place comes along when rows change theirs."""
    layer = decoder(name, way="monotonic").eval()
    state = started(layer)()
    layer(torch.randn(B, 3, E), state)
    before = state.place.clone()
    assert before.sum(-1).tolist() == [1, 1]
    rows = torch.tensor([1, 0, 1])
    state.reorder(rows)
    assert torch.equal(state.place, before[rows])
    layer(torch.randn(3, 1, E), state)
    assert (state.place.argmax(-1) >= before[rows].argmax(-1)).all()


def depends(layer: nn.Module, x: Tensor, state: RecurrentDecoderState, on: Tensor) -> list[bool]:
    """Whether each step's output depends on a tensor."""
    outputs, _ = layer(x, state)
    gradients = [torch.autograd.grad(step.sum(), on, retain_graph=True)[0] for step in outputs.unbind(1)]
    return [bool(gradient.any()) for gradient in gradients]


def test_the_fixed_vector_reaches_every_step() -> None:
    """Through the state or, with the state cut off, through the input of every step."""
    layer = decoder("fixed, every")
    hidden, x = (torch.randn(1, B, C),), torch.randn(B, T, E)
    state = layer.start(hidden, torch.randn(B, S, V), LENGTHS)
    state.joined = state.joined.detach().requires_grad_()
    assert depends(layer, x, state, state.joined) == [True] * T
    projected = layer.start(hidden, torch.randn(B, S, V), LENGTHS).joined
    torch.testing.assert_close(projected, layer.fixed(hidden[0][-1]))


def test_without_it_a_fixed_vector_is_the_first_state_only() -> None:
    layer, x = decoder("fixed, first"), torch.randn(B, T, E)
    state = started(layer)()
    expected, _ = layer.recurrent(x, state.hidden)
    assert torch.equal(layer(x, state)[0], expected)


@pytest.mark.parametrize("name", ["fixed, first", "fixed, every"])
def test_a_fixed_vector_decoder_sees_nothing_else_of_the_source(name: str) -> None:
    layer, hidden, x = decoder(name), (torch.randn(1, B, C),), torch.randn(B, T, E)
    one, other = (layer(x, layer.start(hidden, torch.randn(B, S, V), LENGTHS))[0] for _ in range(2))
    assert torch.equal(one, other)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_keys_are_prepared_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, calls = decoder(name), []
    prepare = layer.score.keys
    monkeypatch.setattr(layer.score, "keys", lambda k: calls.append(1) or prepare(k))
    state = started(layer)()
    for one in torch.randn(B, T, E).split(1, 1):
        layer(one, state)
    assert len(calls) == 1


@pytest.mark.parametrize("name", ATTENTIVE)
def test_padding_of_the_source_is_never_seen(name: str) -> None:
    layer, hidden, x = decoder(name), (torch.randn(1, B, C),), torch.randn(B, T, E)
    source = torch.randn(B, S, V)
    other = source.clone()
    other[1, 4:] = torch.randn(3, V)
    one, other = (layer(x, layer.start(hidden, each, LENGTHS))[0] for each in (source, other))
    assert torch.equal(one, other)


def test_when_the_query_is_taken() -> None:
    """Before the step (Bahdanau) the first weights know nothing of the first input; after it (Luong) they do."""
    for name, knows in [("bahdanau", False), ("luong", True)]:
        layer, queries = decoder(name), []
        attend = layer.attend
        layer.attend = lambda q, state, attend=attend, queries=queries: queries.append(q) or attend(q, state)
        x = torch.randn(B, 1, E, requires_grad=True)
        layer(x, started(layer)())
        assert (queries[0].grad_fn is not None and bool(torch.autograd.grad(queries[0].sum(), x)[0].any())) == knows


def test_input_feeding_joins_the_last_answer_to_the_next_input() -> None:
    layer, fed = decoder("luong, fed"), []
    advance = layer.recurrent.forward
    layer.recurrent.forward = lambda x, state: fed.append(x) or advance(x, state)
    x = torch.randn(B, T, E)
    outputs, _ = layer(x, started(layer)())
    before = torch.cat([torch.zeros(B, 1, C), outputs[:, :-1]], 1)
    torch.testing.assert_close(torch.cat(fed, 1), torch.cat([x, before], -1))


@pytest.mark.parametrize("name", ATTENTIVE)
def test_hard_attention_tells_of_its_choices(name: str) -> None:
    layer = decoder(name, way="hard")
    start, x = started(layer), torch.randn(B, T, E)
    outputs, choices = layer(x, start())
    assert choices.log_prob.shape == choices.entropy.shape == choices.baseline.shape == (B, T)
    assert bool((choices.log_prob < 0).all())
    assert choices.affects_later_steps == (name != "luong")
    assert not torch.equal(layer(x, start())[0], outputs)
    for told in (choices.log_prob, choices.entropy):
        (gradient,) = torch.autograd.grad(told.sum(), layer.score.direction, retain_graph=True)
        assert gradient.any()
    layer.eval()
    assert torch.equal(layer(x, start())[0], layer(x, start())[0])
    assert decoder(name)(x, start())[1] is None


@pytest.mark.parametrize("name", ATTENTIVE)
def test_what_it_expected_changes_nothing_else(name: str) -> None:
    """The baseline's gradient reaches the layer that makes it, and no other."""
    layer = decoder(name, way="hard")
    layer(torch.randn(B, T, E), started(layer)())[1].baseline.square().sum().backward()
    reached = {part for part, parameter in layer.named_parameters() if parameter.grad is not None}
    assert reached == {"expected_reward.weight", "expected_reward.bias"}


@pytest.mark.parametrize(("name", "reaches"), [("bahdanau", True), ("luong", False), ("luong, fed", True)])
def test_choices_are_lasting_where_later_steps_depend_on_them(name: str, reaches: bool) -> None:
    """Of what the first step attends to, or not, the last output knows."""
    layer = decoder(name)
    state, attend, contexts = started(layer)(), layer.attend, []

    def watched(queries: Tensor, state: RecurrentDecoderState) -> object:
        attended = attend(queries, state)
        contexts.append(attended.output)
        return attended

    layer.attend = watched
    outputs, _ = layer(torch.randn(B, T, E), state)
    (gradient,) = torch.autograd.grad(outputs[:, -1].sum(), contexts[0])
    assert bool(gradient[:, 0].any()) == reaches == layer.affects_later_steps
