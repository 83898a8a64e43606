"""The encoder of a Transformer alone: positions, blocks, and nothing that comes from padding."""

from itertools import count

import pytest
import torch

import foveate
from foveate.errors import UserError
from foveate.nn import EncoderConfig, TooManyWeightsError, TransformerEncoder, initialize, skip_init

SIZES = {"width": 6, "heads": 3, "feedforward": 5, "layers": 2, "dropout": 0.0}


def encoder(**changes: object) -> TransformerEncoder:
    made = TransformerEncoder(EncoderConfig(**{**SIZES, **changes})).eval()
    initialize(made, 6)
    return made


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_changes_nothing(norm: str) -> None:
    made, x = encoder(norm=norm), torch.randn(2, 7, 6)
    lengths = torch.tensor([7, 3])
    alone = made(x[1:, :3], lengths[1:])
    torch.testing.assert_close(made(x, lengths)[1:, :3], alone)
    torch.testing.assert_close(alone.mean(-1), torch.zeros(1, 3), atol=1e-5, rtol=0)  # the last thing is a norm


def test_a_token_knows_where_it_stands_and_what_stands_around_it() -> None:
    made, lengths = encoder(), torch.tensor([5])
    same = torch.randn(1, 1, 6).expand(-1, 5, -1)
    encoded = made(same, lengths)
    assert bool((encoded[0, 1:] - encoded[0, :-1]).abs().amax(-1).gt(1e-4).all())
    other = same.clone()
    other[0, 4] += torch.arange(6)
    assert bool((made(other, lengths) - encoded).abs().amax(-1).gt(1e-4).all())


def test_its_sites_are_its_layers() -> None:
    made = encoder()
    with foveate.look(made) as sight:
        made(torch.randn(1, 5, 6), torch.tensor([5]))
    assert sight.sites == ["blocks.0.self", "blocks.1.self"]


def test_a_learned_table_of_positions_has_an_end() -> None:
    made = encoder(positions="learned", max_length=5)
    assert made(torch.randn(1, 5, 6), torch.tensor([5])).shape == (1, 5, 6)
    with pytest.raises(UserError, match="a sequence has 6 positions, but only 5 were learned"):
        made(torch.randn(1, 6, 6), torch.tensor([6]))


def test_relative_positions_tell_distances_only() -> None:
    """In the middle of a long row of equal vectors but one, each place sees that one at its own distance."""
    made, x = encoder(positions="relative"), torch.zeros(1, 9, 6)
    torch.nn.init.normal_(made.distances.table)
    x[:, 4] = torch.arange(6.0)
    encoded = made(x, torch.tensor([9]))[0].detach()
    assert float((encoded[3] - encoded[5]).abs().max()) > 1e-3
    assert torch.equal(made.positions(x), x)
    made.distances.table.data.zero_()
    encoded = made(x, torch.tensor([9]))[0]
    torch.testing.assert_close(encoded[3], encoded[5])


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
