"""Small maps, finer ones and rows: equal to the exact weights, and never of too many of them."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from served_model import HEADS, Layers
from torch import nn

from foveate.attention import Soft, attend
from foveate.sight import Site, look
from foveate.viewer.document import make_document
from foveate.viewer.server import tiles

COUNT = 197


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    torch.manual_seed(7)
    model = Layers()
    with torch.inference_mode(), look(model) as sight:
        model(torch.randn(1, COUNT, 9))
    return sight["layers.1"]


@pytest.fixture
def computed(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many weights were computed: for each chosen query those on all keys."""
    found, weights = [], site.weights

    def counted(heads: slice | list[int], queries: list[int], keys: slice) -> torch.Tensor:
        found.append((HEADS if isinstance(heads, slice) else len(heads)) * len(queries) * COUNT)
        return weights(heads, queries, keys)

    monkeypatch.setattr(site, "weights", counted)
    return found


@pytest.mark.parametrize(
    ("count", "parts", "most", "expected"),
    [
        (7, 3, 100, [[0, 1], [2, 3], [4, 5, 6]]),
        (7, 3, 6, [[0, 1], [2, 3], [4, 6]]),
        (7, 3, 3, [[1], [3], [5]]),
        (7, 3, 1, [[1], [3], [5]]),
        (12, 2, 6, [[1, 3, 5], [7, 9, 11]]),
        (3, 3, 100, [[0], [1], [2]]),
    ],
)
def test_sampled(count: int, parts: int, most: int, expected: list[list[int]]) -> None:
    assert [part.tolist() for part in tiles.sample_queries(count, parts, most)] == expected


def test_small_maps_are_those_of_the_site(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "AT_ONCE", 10_007)
    assert tiles.sampling_step(site) == 1
    entropy, maps = tiles.compute_overview(site)
    assert np.allclose(entropy, site.entropy()[0].mean(1), rtol=1e-5)
    assert np.allclose(maps, site.pooled(64, 64)[0], atol=1e-6)


def test_small_maps_of_long_inputs_are_means_of_some_queries(
    site: Site, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 64 cells of 3 or 4 queries, one query each: 64 of 197."""
    monkeypatch.setattr(tiles, "MAX_WEIGHTS", 64 * HEADS * COUNT)
    assert tiles.sampling_step(site) == 3
    entropy, maps = tiles.compute_overview(site)
    assert sum(computed) == tiles.MAX_WEIGHTS
    chosen = [(2 * (cell * COUNT // 64) + (cell + 1) * COUNT // 64 - cell * COUNT // 64) // 2 for cell in range(64)]
    rows = site.weights(slice(None), chosen, slice(None))[0]
    assert np.allclose(maps.sum(2), 1, atol=1e-5)
    assert np.allclose(maps[:, :, 0], rows[:, :, :3].sum(-1), atol=1e-6)
    assert np.allclose(maps[:, 63, 63], rows[:, 63, 193:].sum(-1), atol=1e-6)
    sizes = np.diff(np.arange(65) * COUNT // 64)
    assert np.allclose(entropy, (torch.special.entr(rows).sum(2).numpy() * sizes).sum(1) / COUNT, rtol=1e-5)


def test_a_tile_near_by_is_the_weights(site: Site) -> None:
    exact = site.weights()[0]
    found = tiles.compute_tile(site, 2, (101, 112), (83, 100), (11, 17))
    assert np.allclose(found, exact[2, 101:112, 83:100], rtol=1e-5, atol=1e-8)
    assert np.allclose(tiles.compute_tile(site, 1, (0, 5), (0, 3), (400, 400)), exact[1, :5, :3], rtol=1e-5, atol=1e-8)


def test_a_tile_from_afar_is_pooled(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """13 x 7 cells over 100 queries and 50 keys: cells of unequal size, each the mean of its queries."""
    monkeypatch.setattr(tiles, "AT_ONCE", 2003)
    exact = site.weights()[0, 1, 90:190, 40:90].double().numpy()
    found = tiles.compute_tile(site, 1, (90, 190), (40, 90), (13, 7))
    for row in range(13):
        for column in range(7):
            over = exact[row * 100 // 13 : (row + 1) * 100 // 13, column * 50 // 7 : (column + 1) * 50 // 7]
            assert found[row, column] == pytest.approx(over.sum(1).mean(), abs=1e-6)


def test_a_tile_takes_a_bounded_number_of_weights(
    site: Site, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_WEIGHTS", 32 * COUNT)
    found = tiles.compute_tile(site, 0, (0, COUNT), (0, COUNT), (16, 16))
    assert sum(computed) == 32 * COUNT
    assert found.shape == (16, 16)
    assert np.allclose(found.sum(1), 1, atol=1e-5)


def test_the_top_keys_of_rows(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 3 of a causal map has four keys: the others are none."""
    monkeypatch.setattr(tiles, "AT_ONCE", 4 * COUNT)
    keys, weights, rest = tiles.compute_rows(site, 2, (3, 160), 7)
    exact = site.weights()[0, 2, 3:160]
    assert keys[0].tolist() == [0, 1, 2, 3, -1, -1, -1]
    assert weights[0, 4:].tolist() == [0, 0, 0]
    assert np.allclose(np.sort(weights, 1)[:, ::-1], exact.topk(7).values, rtol=1e-5, atol=1e-8)
    shown = np.where(keys < 0, COUNT, keys)
    assert (np.diff(shown, axis=1) >= 0).all()
    padded = np.concatenate([exact, np.zeros((157, 1), np.float32)], 1)
    assert np.allclose(np.take_along_axis(padded, shown, 1), weights, rtol=1e-5, atol=1e-8)
    assert np.allclose(rest, 1 - weights.sum(1), atol=1e-6)
    assert rest[0] == pytest.approx(0, abs=1e-6)


def test_too_many_rows_are_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MAX_WEIGHTS", 11 * COUNT)
    tiles.compute_rows(site, 0, (0, 11), 3)
    with pytest.raises(ValueError, match=r"^12 queries of 197 keys are too many at once; ask for 11$"):
        tiles.compute_rows(site, 0, (0, 12), 3)


def test_where_only_some_queries_are_taken_that_is_told(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    """Also where it is most of them."""
    monkeypatch.setattr(tiles, "MAX_WEIGHTS", 2 * 64 * HEADS * COUNT)
    assert tiles.sampling_step(site) == 2


def test_a_sink_is_one_more_place_of_the_entropy() -> None:
    class Attends(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return attend(x, x, x, select=Soft(torch.tensor([2.0, -1.0])))

    with torch.inference_mode(), look(model := Attends()) as sight:
        model(torch.randn(1, 2, 100, 5))
    found, _ = tiles.compute_overview(sight[""])
    assert np.allclose(found, sight[""].entropy()[0].mean(1), rtol=1e-5)
    assert np.allclose(make_document(sight).sites[0].entropy, found, rtol=1e-5)


def test_the_entropy_of_a_part_is_that_of_its_shares() -> None:
    """Also where the whole map has sinks, which are in no part."""

    class Sinks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return attend(x, x, x, select=Soft(torch.tensor([[0.5]])))

    with torch.inference_mode(), look(model := Sinks()) as sight:
        model(torch.randn(1, 1, 13, 3))
    for part in sight.part({"*": {"before": 6, "behind": 7}}):
        found, _ = tiles.compute_overview(part)
        np.testing.assert_allclose(found, part.entropy()[0].mean(-1), rtol=1e-5)
        assert found[0] > 1  # nats, of 6 or 7 keys
