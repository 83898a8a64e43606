"""What is seen of every way in which a recurrent translator looks at its source."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from foveate import create, look
from foveate.sight import Sight

WAYS = {
    "soft": {},
    "hard": {"select": "hard"},
    "monotonic": {"select": "monotonic"},
    "local-m": {"window": "local-m", "window_radius": 1},
    "local-p": {"window": "local-p", "window_radius": 1},
    "local-p, hard": {"window": "local-p", "window_radius": 1, "select": "hard"},
}
DECODERS = {"before": {"score_from": "before"}, "after": {}, "fed": {"input_feeding": True}}

LENGTHS = torch.tensor([7, 4])
SOURCE = {"source": torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 0, 0, 0]]), "source_lengths": LENGTHS}
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 9, 5]])


def translator(way: str, decoder: str = "after") -> nn.Module:
    """With weights that make it look decidedly."""
    sizes = {"src_vocab": 17, "tgt_vocab": 13, "width": 12, "dropout": 0.0}
    model = create("rnn-attentive", **{**sizes, "score": "additive", **WAYS[way], **DECODERS[decoder]}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


@torch.no_grad()
def at_once(model: nn.Module) -> Sight:
    with look(model) as sight:
        model(**SOURCE, target=TARGET)
    return sight


@torch.no_grad()
def by_steps(model: nn.Module) -> Sight:
    with look(model) as sight:
        state = model.start(**SOURCE)
        for tokens in TARGET.unbind(1):
            model.step(tokens, state)
    return sight


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("way", WAYS)
def test_steps_are_seen_like_a_known_target(way: str, decoder: str) -> None:
    model = translator(way, decoder)
    whole, steps = at_once(model)["decoder"], by_steps(model)["decoder"]
    assert whole.shape == steps.shape == (2, 1, 5, 7)
    torch.testing.assert_close(steps.weights(), whole.weights(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_seen_is_what_was_taken(way: str) -> None:
    """Weights (of a hard selection, the likeliest place) times values are what the decoder got."""
    model, contexts = translator(way), []
    join = model.decoder.join
    model.decoder.join = lambda outputs, context: contexts.append(context) or join(outputs, context)
    sight, values = at_once(model), encoded(model)
    weights = sight["decoder"].weights()[:, 0]
    if "hard" in way:
        weights = torch.zeros_like(weights).scatter(-1, weights.argmax(-1, keepdim=True), 1.0)
    torch.testing.assert_close(weights @ values, contexts[0], atol=1e-5, rtol=0)


@torch.no_grad()
def encoded(model: nn.Module) -> Tensor:
    return model.start(**SOURCE).source.values


@pytest.mark.parametrize("way", ["local-m", "local-p", "local-p, hard"])
def test_nothing_is_seen_outside_of_the_window(way: str) -> None:
    weights = at_once(translator(way))["decoder"].weights()[:, 0]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))
    assert (weights > 0).sum(-1).amax() <= 3
    if way == "local-m":
        places = torch.arange(7)
        centres = torch.minimum(torch.arange(5), LENGTHS[:, None] - 1)[..., None]
        assert torch.equal(weights > 0, ((places - centres).abs() <= 1) & (places < LENGTHS[:, None, None]))


def test_monotonic_attention_is_seen_to_go_from_left_to_right() -> None:
    weights = at_once(translator("monotonic"))["decoder"].weights()[:, 0]
    assert set(weights.unique().tolist()) <= {0.0, 1.0}
    stopped = weights.sum(-1) > 0
    assert stopped.any()
    for row, stops in zip(weights.argmax(-1), stopped, strict=True):
        places = row[stops].tolist()
        assert places == sorted(places)


def test_in_training_the_mean_is_seen_where_it_was_taken() -> None:
    """A hard selection that takes the mean of half of the queries: those have several places, the others one."""
    model = translator("hard").train()
    found = torch.cat([at_once(model)["decoder"].weights()[0, 0] for _ in range(20)])
    torch.testing.assert_close(found.sum(-1), torch.ones(100))
    one = found.amax(-1) > 1 - 1e-6
    assert 0.25 < one.float().mean() < 0.75
    several = partial(torch.count_nonzero, dim=-1)(found[~one])
    assert (several == 7).all()
