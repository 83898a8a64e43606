"""The Transformer: its parameters by hand, what is tied, and its state. Numbers of others: see `tests/parity`."""

import pytest
import torch
from torch import nn

from foveate import create
from foveate.decoding.beam_sources import BeamSources
from foveate.errors import UserError
from foveate.nn.positions import RADIUS

SMALL = {
    "src_vocab": 17,
    "tgt_vocab": 17,
    "width": 12,
    "heads": 3,
    "feedforward": 11,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "dropout": 0.0,
}


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def blocks(width: int, feedforward: int, layers: int) -> int:
    """The parameters of as many encoder as decoder blocks."""
    attention = 4 * (width * width + width)
    feed = width * feedforward + feedforward + feedforward * width + width
    norm = 2 * width
    encoder = attention + feed + 2 * norm
    decoder = 2 * attention + feed + 3 * norm
    return layers * (encoder + decoder)


@pytest.mark.parametrize(
    ("name", "width", "feedforward", "expected", "published"),
    [("transformer-base", 512, 2048, 63_082_496, 65e6), ("transformer-large", 1024, 4096, 214_245_376, 213e6)],
)
def test_the_papers_sizes(name: str, width: int, feedforward: int, expected: int, published: float) -> None:
    """With one vocabulary of 37,000 for source, target and output, as published; waves have no parameters."""
    model = create(name, device="meta", src_vocab=37_000, tgt_vocab=37_000)
    assert 37_000 * width + blocks(width, feedforward, layers=6) == expected
    assert parameters(model) == expected
    assert expected == pytest.approx(published, rel=0.03)


def test_the_tiny_size() -> None:
    """Two embeddings, the target's tied to the output, and pre-norm's two last norms."""
    model = create("transformer-tiny", device="meta", src_vocab=8000, tgt_vocab=7000)
    assert parameters(model) == (8000 + 7000) * 128 + blocks(128, 256, layers=4) + 2 * (2 * 128)


@pytest.mark.parametrize(("tie", "tables"), [("none", 3), ("output", 2), ("all", 1)])
def test_what_is_tied(tie: str, tables: int) -> None:
    model = create("transformer-base", tie=tie, **SMALL)
    assert parameters(model) == tables * 17 * 12 + blocks(12, 11, layers=2)
    shared = (model.output.weight is model.target_embedding.weight, model.source_embedding is model.target_embedding)
    assert shared == (tie != "none", tie == "all")


def test_learned_positions_are_tables_of_their_own() -> None:
    waves, learned = (
        create("transformer-base", positions=kind, max_length=7, **SMALL) for kind in ("sinusoidal", "learned")
    )
    assert parameters(learned) - parameters(waves) == 2 * 7 * 12


def test_a_text_longer_than_the_learned_positions() -> None:
    model = create("transformer-base", positions="learned", max_length=7, **SMALL)
    inputs = {"source_lengths": torch.tensor([3]), "target": torch.tensor([[1, 4]])}
    model(source=torch.tensor([[4, 5, 6, 7, 8, 9, 2]]), **inputs)
    with pytest.raises(UserError, match="a sequence has 8 positions, but only 7 were learned"):
        model(source=torch.tensor([[4, 5, 6, 7, 8, 9, 10, 2]]), **inputs)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_only_pre_norm_ends_with_norms_of_its_own(norm: str) -> None:
    model = create("transformer-base", norm=norm, **SMALL)
    for last in (model.encoder_norm, model.decoder_norm):
        assert isinstance(last, nn.LayerNorm) == (norm == "pre")


def test_order_is_known_by_positions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, target = create("transformer-base", **SMALL).eval(), torch.tensor([[1, 4]])

    def differ() -> bool:
        one, other = (
            model(torch.tensor([words]), torch.tensor([3]), target).logits for words in ([4, 5, 2], [5, 4, 2])
        )
        return not torch.allclose(one, other, atol=1e-6)

    assert differ()
    monkeypatch.setattr("foveate.nn.SinusoidalPositions.forward", lambda _, length, *__: torch.zeros(length, 12))
    assert not differ()


def relative() -> nn.Module:
    model = create("transformer-base", positions="relative", **SMALL).eval()
    nn.init.normal_(model.source_distances.table)
    nn.init.normal_(model.target_distances.table)
    return model


def test_relative_positions_are_a_number_for_each_head_and_distance() -> None:
    waves = create("transformer-base", **SMALL)
    assert parameters(relative()) - parameters(waves) == 2 * 3 * (2 * RADIUS + 1)


def test_distances_alone_tell_the_order() -> None:
    """Without them all orders are one; with them what stands at equal distances is seen alike."""
    model, lengths, target = relative(), torch.tensor([4]), torch.tensor([[1, 4, 5]])
    orders = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[5, 4, 6, 2]])
    with torch.no_grad():
        one, other = (model(order, lengths, target).logits for order in orders)
        assert not torch.allclose(one, other, atol=1e-4)
        model.source_distances.table.zero_()
        one, other = (model(order, lengths, target).logits for order in orders)
        torch.testing.assert_close(one, other)


def test_writing_step_by_step_keeps_relative_positions() -> None:
    model, target = relative(), torch.randint(4, 17, (2, 7))
    source, lengths = torch.tensor([[4, 5, 6, 2], [7, 8, 2, 0]]), torch.tensor([4, 3])
    with torch.no_grad():
        state = model.start(source, lengths)
        written = torch.stack([model.step(target[:, place], state) for place in range(7)], 1)
        torch.testing.assert_close(written, model(source, lengths, target).logits)


def test_beams_of_one_sentence_share_its_memory() -> None:
    """However many rows read a source, it is there once, and stays where it is while they change places."""
    model = create("transformer-base", **SMALL).eval()
    with torch.no_grad():
        state = model.start(torch.tensor([[4, 5, 2], [6, 7, 2]]), torch.tensor([3, 3]))
        state.share(BeamSources(torch.arange(2)))
        keys = state.source[0].keys.data_ptr()
        model.step(torch.tensor([1, 1]), state)
        state.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
        past = state.past[0].keys.clone()
        state.reorder(torch.tensor([1, 0, 0, 5, 3, 4]))
        assert state.source[0].keys.data_ptr() == keys
        assert torch.equal(state.past[0].keys, past[[1, 0, 0, 5, 3, 4]])
        state.reorder(torch.tensor([4, 3, 5]))
        assert state.source[0].keys.shape[0] == 1


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("rows", [[1, 1, 0, 0], [0, 0, 1], [0, 1, 0, 1], [1]])
def test_any_rows_of_any_sources_go_on(rows: list[int], shared: bool) -> None:
    model = create("transformer-base", **SMALL).eval()
    source, lengths = torch.tensor([[4, 5, 2], [6, 2, 0]]), torch.tensor([3, 2])
    first, second = torch.tensor([1, 1]), torch.tensor([4, 5, 6, 7])[: len(rows)]
    with torch.no_grad():
        state = model.start(source, lengths)
        if shared:
            state.share(BeamSources(torch.arange(2)))
        model.step(first, state)
        state.reorder(torch.tensor(rows))
        logits = model.step(second, state)
        for place, row in enumerate(rows):
            alone = model(source[[row]], lengths[[row]], torch.stack([first[row], second[place]])[None]).logits[0, -1]
            torch.testing.assert_close(logits[place], alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_drops_something(name: str) -> None:
    model = create("transformer-tiny", **{**SMALL, name: 0.5}).eval()
    inputs = torch.randint(4, 17, (2, 9)), torch.tensor([9, 6]), torch.randint(4, 17, (2, 7))
    assert torch.equal(model(*inputs).logits, model(*inputs).logits)
    model.train()
    assert not torch.equal(model(*inputs).logits, model(*inputs).logits)


def test_the_paper_drops_nothing_inside_the_feed_forward_layers() -> None:
    blocks = create("transformer-tiny", **SMALL | {"dropout": 0.5}).train().encoder
    x = torch.randn(3, 5, 12)
    assert all(torch.equal(block.feedforward(x), block.feedforward(x)) for block in blocks)
