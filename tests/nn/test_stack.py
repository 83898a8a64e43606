"""The stack of blocks: positions, parts against formulas by hand, padding on either side, and steps with a past."""

from itertools import count

import pytest
import torch

import foveate
from foveate.attention import causal, padding
from foveate.errors import UserError
from foveate.nn import StackConfig, TooManyWeightsError, TransformerStack, initialize, skip_init

SIZES = {"width": 6, "heads": 3, "feedforward": 5, "layers": 2, "dropout": 0.0}


def stack(**changes: object) -> TransformerStack:
    made = TransformerStack(StackConfig(**{**SIZES, **changes})).eval()
    initialize(made, 6)
    return made


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_changes_nothing(norm: str) -> None:
    made, x = stack(norm=norm), torch.randn(2, 7, 6)
    lengths = torch.tensor([7, 3])
    alone = made(x[1:, :3])
    torch.testing.assert_close(made(x, padding(lengths))[1:, :3], alone)
    torch.testing.assert_close(alone.mean(-1), torch.zeros(1, 3), atol=1e-5, rtol=0)  # the last thing is a norm


def test_a_token_knows_where_it_stands_and_what_stands_around_it() -> None:
    made = stack()
    same = torch.randn(1, 1, 6).expand(-1, 5, -1)
    encoded = made(same)
    assert bool((encoded[0, 1:] - encoded[0, :-1]).abs().amax(-1).gt(1e-4).all())
    other = same.clone()
    other[0, 4] += torch.arange(6)
    assert bool((made(other) - encoded).abs().amax(-1).gt(1e-4).all())


def test_its_sites_are_its_layers() -> None:
    made = stack()
    with foveate.look(made) as sight:
        made(torch.randn(1, 5, 6))
    assert sight.sites == ["blocks.0.self", "blocks.1.self"]


def test_a_learned_table_of_positions_has_an_end() -> None:
    made = stack(positions="learned", max_length=5)
    assert made(torch.randn(1, 5, 6)).shape == (1, 5, 6)
    with pytest.raises(UserError, match="a sequence has 6 positions, but only 5 were learned"):
        made(torch.randn(1, 6, 6))


def test_relative_positions_tell_distances_only() -> None:
    """In the middle of a long row of equal vectors but one, each place sees that one at its own distance."""
    made, x = stack(positions="relative"), torch.zeros(1, 9, 6)
    torch.nn.init.normal_(made.distances.table)
    x[:, 4] = torch.arange(6.0)
    encoded = made(x)[0].detach()
    assert float((encoded[3] - encoded[5]).abs().max()) > 1e-3
    assert torch.equal(made.positions(x), x)
    made.distances.table.data.zero_()
    encoded = made(x)[0]
    torch.testing.assert_close(encoded[3], encoded[5])


CHANGES = [
    {"norm": "pre"},
    {"norm_kind": "rms", "norm": "pre", "gated": True, "activation": "silu", "bias": False},
    {"parallel": True, "norm": "pre", "positions": "rotary", "rotary_width": 2, "head_width": 5},
    {"key_value_heads": 1, "positions": "rotary", "head_width": 4},
    {"positions": "relative"},
    {"positions": "learned", "position_join": "concatenate"},
    {"positions": "none", "input_norm": True},
    {"window": 1},
    {"window": 1, "window_every": 2, "layer_scale": 0.5, "depth_dropout": 0.3},
]
"""Configurations that differ in their parts."""


def scrambled(**changes: object) -> TransformerStack:
    """With random numbers in all parameters: scales that start at 1 and tables at 0 would hide mistakes."""
    made = stack(**changes)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_parts_of_a_sequence_with_a_past_equal_the_whole(changes: dict[str, object]) -> None:
    made, x = scrambled(**changes), torch.randn(2, 7, 6)
    with torch.no_grad():
        whole, past = made(x, causal()), made.memories(x, expected=5)
        parts = [
            made(x[:, :3], causal(), past=past),
            made(x[:, 3:5], causal(3), past=past),
            made(x[:, 5:6], past=past),
            made(x[:, 6:], past=past),
        ]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_padding_on_the_left_changes_nothing(changes: dict[str, object]) -> None:
    made, x, lengths = scrambled(**changes), torch.randn(2, 7, 6), torch.tensor([7, 4])
    places = (torch.arange(7) - (7 - lengths)[:, None]).clamp(min=0)
    real = (torch.arange(7) >= (7 - lengths)[:, None])[:, None, None]
    padded = made(x, causal() & real, places)
    torch.testing.assert_close(padded[:1], made(x[:1], causal()), atol=1e-5, rtol=0)
    torch.testing.assert_close(padded[1:, 3:], made(x[1:, 3:], causal()), atol=1e-5, rtol=0)


def test_which_blocks_have_the_window() -> None:
    """A token changes what is at most two places away in a block with window 1 and one that follows it."""
    for every, reached in ((1, [1, 2, 3, 4, 5]), (2, [0, 1, 2, 3, 4, 5, 6]), (3, [0, 1, 2, 3, 4, 5, 6])):
        made, x = scrambled(window=1, window_every=every, positions="none"), torch.randn(1, 7, 6)
        other = x.clone()
        other[0, 3] += torch.arange(6)
        changed = (made(other) - made(x)).abs().amax(-1)[0] > 1e-6
        assert changed.nonzero().flatten().tolist() == reached
        seen: list[bool] = []
        for block in made.blocks:
            block.register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[1] == causal()))
        made(x, causal())
        assert seen == {1: [False, False], 2: [True, False], 3: [True, True]}[every]


def test_a_parallel_block_by_hand() -> None:
    made, x = scrambled(parallel=True, norm="pre", positions="none", layers=1), torch.randn(2, 5, 6)
    block = made.blocks[0]
    expected = x + block.self(block.around_self.norm(x)) + block.feedforward(block.around_feedforward.norm(x))
    torch.testing.assert_close(made(x), made.norm(expected))


def test_a_gated_feed_forward_layer_and_rms_norm_by_hand() -> None:
    made, x = scrambled(gated=True, activation="silu", norm_kind="rms", epsilon=0.1), torch.randn(2, 5, 6)
    block = made.blocks[0]
    layer, norm = block.feedforward, block.around_self.norm
    gate = layer.gate(x)
    torch.testing.assert_close(layer(x), layer.outer(gate * gate.sigmoid() * layer.inner(x)))
    torch.testing.assert_close(norm(x), norm.weight * x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt())
    assert {name.split(".")[-1] for name, _ in norm.named_parameters()} == {"weight"}


def test_layer_scale_and_stochastic_depth() -> None:
    made, x = stack(layer_scale=0.0, norm="pre", positions="none", depth_dropout=0.5), torch.randn(1009, 2, 6)
    torch.testing.assert_close(made(x), made.norm(x))
    residual = made.blocks[1].around_self.train()
    with torch.no_grad():
        residual.scale.fill_(3.0)
    change = (residual(x, torch.ones_like) - x).round(decimals=3)
    torch.testing.assert_close(change.unique(), torch.tensor([0.0, 6.0]))
    assert torch.equal(change.amax((1, 2)), change.amin((1, 2)))  # an example is skipped whole
    assert float(change.detach().mean()) == pytest.approx(3, rel=0.1)


def test_without_biases_there_is_none() -> None:
    names = {name.split(".")[-1] for name, _ in stack(bias=False, norm_kind="rms").named_parameters()}
    assert names == {"weight"}


def test_positions_concatenated_are_projected() -> None:
    made, x = scrambled(positions="learned", position_join="concatenate", layers=1), torch.randn(2, 5, 6)
    joined = torch.cat([made.positions.positions.table[:5].expand(2, -1, -1), x], -1)
    torch.testing.assert_close(made(x), made.norm(made.blocks[0](made.project(joined))))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parallel": True}, "parallel attention and feed-forward layers need norm='pre'"),
        (
            {"positions": "relative-projected", "key_value_heads": 1},
            "a stack of relative-projected positions cannot have key_value_heads=1",
        ),
        ({"key_value_heads": 2}, "3 heads are not a multiple of 2 key_value_heads"),
        ({"positions": "rotary", "rotary_width": 4}, "rotary_width is 4, but a head has a width of 2 only"),
        ({"positions": "rotary", "head_width": 5}, "rotary positions turn pairs of numbers, so their width must be"),
    ],
)
def test_errors(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        stack(**changes)


def test_initial_weights() -> None:
    model = torch.nn.ModuleList([torch.nn.Embedding(503, 64), torch.nn.Linear(97, 83), torch.nn.LayerNorm(7)])
    initialize(model, 64)
    embedding, linear, norm = model
    assert float(embedding.weight.detach().std()) == pytest.approx(1 / 8, rel=0.03)
    assert float(linear.weight.detach().abs().max()) == pytest.approx((6 / 180) ** 0.5, rel=0.01)
    assert not linear.bias.any()
    assert bool((norm.weight == 1).all())


def test_weights_that_are_too_many() -> None:
    """A list of layers without end is no longer than what was to be expected."""
    made = []
    layers = (made.append(torch.nn.Linear(3, 5)) for _ in count())
    with pytest.raises(TooManyWeightsError), skip_init(at_most=100):
        any(layers)
    assert len(made) == 5
    torch.nn.Linear(30, 50)


def test_undrawn_weights_draw_nothing() -> None:
    before = torch.get_rng_state()
    with skip_init():
        initialize(torch.nn.ModuleList([torch.nn.Embedding(503, 64), torch.nn.GRU(97, 83)]), 64)
        table = torch.nn.init.normal_(tensor=torch.zeros(3))
    assert torch.equal(torch.get_rng_state(), before)
    assert not table.any()
    initialize(torch.nn.Linear(2, 2), 2)
    assert not torch.equal(torch.get_rng_state(), before)
