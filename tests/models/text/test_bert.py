"""BERT and RoBERTa: their sizes, what each head gives, and where they look."""

import pytest
import torch

import foveate
from foveate.errors import UserError

SMALL = {"vocabulary": 17, "classes": 5, "width": 12, "heads": 3, "feedforward": 11, "layers": 2, "max_length": 7}

TOKENS = torch.tensor([[4, 5, 6, 7, 8], [9, 16, 5, 0, 0]])


@pytest.mark.parametrize(
    ("name", "vocabulary", "head", "parameters"),
    [
        ("bert-base", 30_522, "words", 109_514_298),
        ("bert-large", 30_522, "words", 335_174_458),
        ("roberta-base", 50_265, "words", 124_697_433),
        ("roberta-large", 50_265, "words", 355_412_057),
        ("minilm-l6", 30_522, "none", 22_713_216 - 384 * 385),  # without the pooler, which embeddings do not use
    ],
)
def test_the_parameters_of_published_models(name: str, vocabulary: int, head: str, parameters: int) -> None:
    model = foveate.create(name, device="meta", vocabulary=vocabulary, head=head)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(
    ("head", "shape"),
    [("words", (2, 5, 17)), ("tokens", (2, 5, 5)), ("text", (2, 1, 5)), ("pair", (2, 1, 5)), ("none", (2, 5, 12))],
)
def test_heads(head: str, shape: tuple[int, ...]) -> None:
    model = foveate.create("bert-tiny", **SMALL, head=head).eval()
    assert model(TOKENS, torch.tensor([5, 3])).logits.shape == shape


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_vector_of_a_text(side: str) -> None:
    """The first token's, or the mean of the tokens without padding."""
    tokens, lengths = (TOKENS if side == "right" else TOKENS.flip(1)), torch.tensor([5, 3])
    real = [slice(0, 5), slice(0, 3) if side == "right" else slice(2, 5)]
    for pooling in ("first", "mean"):
        model = foveate.create("bert-tiny", **SMALL, head="vector", pooling=pooling).eval()
        found = model.vector(tokens, lengths, padding_side=side)
        for row, span in enumerate(real):
            alone = model.encode(tokens[row : row + 1, span])[0]
            expected = alone[0] if pooling == "first" else alone.mean(0)
            torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=0)
            torch.testing.assert_close(model.vector(tokens[row : row + 1, span])[0], expected, atol=1e-5, rtol=0)


def test_logits_at_some_places_are_those_of_all() -> None:
    model = foveate.create("bert-tiny", **SMALL).eval()
    places = torch.tensor([[3, 0], [2, 1]])
    whole, lengths = model(TOKENS, torch.tensor([5, 3])).logits, torch.tensor([5, 3])
    some = model(TOKENS, lengths, places=places).logits
    torch.testing.assert_close(some, torch.stack([whole[0, [3, 0]], whole[1, [2, 1]]]))


def test_the_type_of_a_token_counts() -> None:
    model = foveate.create("bert-tiny", **SMALL).eval()
    second = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    found = model(TOKENS, token_types=second).logits
    torch.testing.assert_close(model(TOKENS, token_types=torch.zeros_like(TOKENS)).logits, model(TOKENS).logits)
    assert not torch.allclose(found, model(TOKENS).logits)


def test_positions_of_roberta_begin_at_the_third_row() -> None:
    model = foveate.create("roberta-base", **SMALL).eval()
    table = model.stack.positions.positions.table
    assert table.shape == (9, 12)
    model(TOKENS).logits.square().sum().backward()
    assert table.grad.any(1).tolist() == [False] * 2 + [True] * 5 + [False] * 2
    with pytest.raises(UserError, match="a sequence has 8 positions, but only 7 were learned"):
        model(torch.ones(1, 8, dtype=torch.long))


def test_where_it_looks() -> None:
    model = foveate.create("bert-tiny", **SMALL).eval()
    with foveate.look(model) as sight:
        model(TOKENS, torch.tensor([5, 3]))
    assert sight.sites == ["stack.blocks.0.self", "stack.blocks.1.self"]
    weights = sight["stack.blocks.1.self"].weights()
    assert weights.shape == (2, 3, 5, 5)
    assert not weights[1, :, :, 3:].any()
