"""One vector of a sequence: what the query sees, of which the padding is no part."""

import math

import pytest
import torch

import foveate
from foveate.attention import Dot
from foveate.nn import SCORES, AttentionPooling, MeanPooling, make_score, pooling

ENCODED = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]], [[3.0, 1.0], [9.0, 9.0], [9.0, 9.0]]])
LENGTHS = torch.tensor([2, 1])


def test_a_given_query_weighs_the_places_that_are_no_padding() -> None:
    """By hand: scores 0 and 2 log 2 of the first row's two places, so weights 1/5 and 4/5."""
    asked = AttentionPooling(2, Dot(), learned=False)
    query = torch.tensor([[0.0, math.log(2)], [1.0, 1.0]])
    found = asked(ENCODED, LENGTHS, query)
    torch.testing.assert_close(found, torch.tensor([[0.2, 1.6], [3.0, 1.0]]))
    assert list(asked.parameters()) == []


def test_one_learned_query_is_asked_of_every_sequence() -> None:
    pooling = AttentionPooling(2, Dot())
    with torch.no_grad():
        pooling.query.copy_(torch.tensor([math.log(4), 0.0]))
    torch.testing.assert_close(pooling(ENCODED, LENGTHS), torch.tensor([[0.8, 0.4], [3.0, 1.0]]))
    with foveate.look(pooling) as sight:
        pooling(ENCODED, LENGTHS)
    weights = sight[sight.sites[0]].weights()
    torch.testing.assert_close(weights, torch.tensor([[[[0.8, 0.2, 0.0]]], [[[1.0, 0.0, 0.0]]]]))


@pytest.mark.parametrize("score", SCORES)
def test_every_score_pools(score: str) -> None:
    pooling = AttentionPooling(7, make_score(score, 7, 7))
    pooled = pooling(torch.randn(3, 5, 7), torch.tensor([5, 2, 1]))
    assert pooled.shape == (3, 7)
    pooled.square().sum().backward()
    assert bool(pooling.query.grad.any())


@pytest.mark.parametrize("g", ["tanh", "relu", "sigmoid"])
def test_the_activation_of_the_additive_score_is_a_choice(g: str) -> None:
    layer = pooling("attention", 5, activation=g)
    assert isinstance(layer, AttentionPooling)
    encoded, score = torch.randn(2, 7, 5), layer.score
    hidden = getattr(torch, g)(score.query(layer.query) + score.key(encoded))
    weights = (hidden @ score.direction).softmax(-1)
    pooled = layer(encoded, torch.tensor([7, 7]))
    torch.testing.assert_close(pooled, (weights[:, None] @ encoded)[:, 0])


def test_a_query_is_learned_or_the_last_state() -> None:
    last = torch.randn(2, 2)
    learned = AttentionPooling(2, Dot())
    torch.testing.assert_close(learned(ENCODED, LENGTHS, last), learned(ENCODED, LENGTHS))
    with pytest.raises(ValueError, match="a pooling without a learned query needs the last state of each row"):
        AttentionPooling(2, Dot(), learned=False)(ENCODED, LENGTHS)


@pytest.mark.parametrize("kind", ["first", "last", "mean", "attention"])
def test_all_poolings_have_one_face(kind: str) -> None:
    last = torch.randn(2, 2)
    found = pooling(kind, 2)(ENCODED, LENGTHS, last)
    assert found.shape == (2, 2)
    if kind in ("first", "last"):
        torch.testing.assert_close(found, {"first": ENCODED[:, 0], "last": last}[kind])


def test_the_mean_of_the_places_that_are_no_padding() -> None:
    torch.testing.assert_close(MeanPooling()(ENCODED, LENGTHS), torch.tensor([[0.5, 1.0], [3.0, 1.0]]))


def test_the_mean_of_no_places_is_zero() -> None:
    assert not MeanPooling()(ENCODED, torch.zeros_like(LENGTHS)).any()
