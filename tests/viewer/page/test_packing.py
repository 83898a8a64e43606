"""Numbers as few bytes, and back."""

import zlib

import numpy as np
import pytest
import torch
from demo_pages import points_sight, sight_of, text_model

from foveate.errors import UserError
from foveate.viewer.document import Panel, TopWeights, make_document
from foveate.viewer.page import base85
from foveate.viewer.page.packing import (
    _code,
    _decode,
    pack,
    pack_points,
    panel_shape,
    precision,
    unpack,
    unpack_points,
)
from foveate.viewer.point_panel import kept_points, point_panel
from foveate.viewer.sides import Side


def compare(panel: Panel) -> None:
    """What comes back is what went in, within what the page promises."""
    shape = panel_shape(panel)
    rows, maps = unpack(shape, pack(panel))
    np.testing.assert_array_equal(rows.keys, panel.rows.keys)
    within(rows.weights, panel.rows.weights, precision(shape.bits))
    within(rows.rest, panel.rows.rest, precision(shape.bits))
    within(maps, panel.maps, precision(shape.bits if shape.exact else 8))


def within(found: np.ndarray, wanted: np.ndarray, part: float) -> None:
    np.testing.assert_array_equal(found == 0, wanted == 0)
    large = wanted >= 2**-20
    np.testing.assert_allclose(found[large], wanted[large], rtol=part * 1.001)
    assert (found[~large & (wanted > 0)] == np.float32(2**-20)).all()


@pytest.mark.parametrize(("tokens", "bits"), [(37, 16), (173, 12), (2053, 10)])
def test_there_and_back(tokens: int, bits: int) -> None:
    (panel,) = make_document(text_model(1, "pd" if tokens > 2000 else "pfnbcdur", tokens)).sites
    assert panel_shape(panel).bits == bits
    compare(panel)


def test_points_there_and_back() -> None:
    points = point_panel(points_sight().sum_points()[""])
    found = unpack_points(pack_points(points), points.weights.shape, points.grids)
    inside = np.abs(points.places - 0.5).max(-1) <= 1
    np.testing.assert_allclose(found.places[inside], points.places[inside], atol=2e-5)
    within(found.weights, points.weights, precision(16))
    with pytest.raises(UserError, match="the page is damaged"):
        unpack_points(pack_points(points), (2, 5, 7), points.grids)


def test_a_page_has_the_points_of_the_smallest_sites() -> None:
    assert kept_points({"large": 70, "small": 10, "medium": 30}, 50) == {"small", "medium"}
    assert kept_points({"large": 70}, 70) == {"large"}
    assert kept_points({"large": 70}, 69) == set()


@pytest.mark.parametrize("keys", [300, 65_537, 70_001])
def test_gaps_of_one_two_and_three_bytes(keys: int) -> None:
    """Keys anywhere, the first and the last among them."""
    places = np.sort(np.random.default_rng(0).choice(np.arange(1, keys - 1), (2, 3, 6), replace=False), 2)
    places[..., 0], places[..., -1] = 0, keys - 1
    weights = np.random.default_rng(1).random((2, 3, 6), np.float32) / 7
    rows = TopWeights(places.astype(np.int32), weights, 1 - weights.sum(2))
    compare(Panel("attn", Side(3), Side(keys), rows, np.full((2, 3, 64), 1 / 64, np.float32), np.zeros(2, np.float32)))


def test_weights_of_all_sizes() -> None:
    weights = np.array([0, 1e-30, 2**-21, 2**-20, 1e-5, 0.1, 0.5, 0.999999, 1, 1.0000001], np.float32)
    for bits in (8, 10, 12, 16):
        found = _decode(_code(weights, bits), bits)
        assert found[0] == 0
        assert (found[1:] > 0).all()
        assert (found[8:] == 1).all()
        np.testing.assert_allclose(found[3:], weights[3:], rtol=precision(bits) * 1.001)


def test_the_precision_that_is_promised() -> None:
    """Half a step of 20 octaves separated into this many steps."""
    assert precision(8) == pytest.approx(2 ** (20 / 254 / 2) - 1)
    assert (
        f"{precision(8):.1%} {precision(10):.2%} {precision(12):.2%} {precision(16):.3%}" == "2.8% 0.68% 0.17% 0.011%"
    )


def test_hidden_keys_weigh_little() -> None:
    """Causal maps are half zeros, which take almost no room."""
    full = make_document(sight_of({"attn": torch.randn(1, 4, 61, 61).softmax(-1)})).sites[0]
    causal = make_document(text_model(1, "uuuu", 61)).sites[0]
    assert len(pack(causal)["rows"]) < 0.65 * len(pack(full)["rows"])


def test_a_damaged_block() -> None:
    (panel,) = make_document(text_model(1, "pf", 173)).sites
    shape, blocks = panel_shape(panel), pack(panel)
    with pytest.raises(UserError, match="damaged: Error -3"):
        unpack(shape, {**blocks, "rows": b"nothing" * 9})
    with pytest.raises(UserError, match="damaged: a block holds 17 bytes or more where"):
        unpack(shape, {**blocks, "rows": zlib.compress(bytes(17))})


def test_a_block_that_would_fill_the_memory() -> None:
    (panel,) = make_document(text_model(1, "pfnbcdur", 173)).sites
    bomb = zlib.compress(bytes(200_000_000), 1)
    with pytest.raises(UserError, match="holds 32769 bytes or more where 32768 must be"):  # 8 heads of 64 x 64
        unpack(panel_shape(panel), {**pack(panel), "maps": bomb})


def test_bytes_as_text() -> None:
    for length in range(23):
        data = bytes(range(233, 233 + length)) if length < 20 else b"\xff" * length
        text = base85.encode(data)
        assert len(text) == -(-length * 5 // 4)
        assert base85.decode(text) == data
    # 255 * 256^3 = 81 * 85^4 + 81 * 85^3 + ..., and letter 81 is '_'
    assert base85.encode(b"\x00\x00\x00\x00\xff") == "00000__"


@pytest.mark.parametrize("text", ["0<000", "000é0", "0", "}}}}}", "|||||"])
def test_text_that_is_no_bytes(text: str) -> None:
    with pytest.raises(UserError, match="damaged"):
        base85.decode(text)
