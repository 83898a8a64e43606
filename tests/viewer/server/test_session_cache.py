"""What is kept of sights and of their measures, and what is let go."""

import json
from concurrent.futures import Future

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from served_model import FakeViewer
from torch import nn

from foveate import look
from foveate.errors import UserError
from foveate.sight import Sight, Windows
from foveate.sight.measured_look import RelevanceMap
from foveate.viewer.protocol import LookResult
from foveate.viewer.server.session_cache import AnswerCache, Session, SessionCache
from foveate.viewer.server.worker import Busy, Worker


def test_a_cache_lets_go_of_what_was_asked_for_longest_ago() -> None:
    cache, made = AnswerCache(11), []

    def answer(name: str, size: int) -> bytes:
        return cache.get(name, lambda: made.append(name) or bytes(size))  # type: ignore[func-returns-value]

    for name in ("a", "b", "a", "c", "a", "b"):
        assert len(answer(name, 5)) == 5
    assert made == ["a", "b", "c", "b"]
    assert len(answer("large", 12)) == 12
    assert len(answer("large", 12)) == 12
    assert made[-2:] == ["large", "large"]


def test_the_size_of_a_sight_is_that_of_its_queries_and_keys() -> None:
    """Two sites of three heads of width three, for 13 queries and 13 keys, in numbers of four bytes."""
    shown = Session(FakeViewer().look(" ".join("x" * 13), 13))
    assert shown.size == 2 * 3 * 3 * (13 + 13) * 4


def test_a_mask_counts_once() -> None:
    """Two layers that share one of 13 x 13 booleans."""

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = torch.rand(13, 13) < 0.7
            for _ in range(2):
                x = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
            return x

    with look(model := Masked()) as sight:
        model(torch.randn(1, 1, 13, 3))
    assert len(sight.sites) == 2
    assert Session(LookResult(sight, {}, "masked")).size == 2 * (13 + 13) * 3 * 4 + 13 * 13


def test_the_size_of_whole_maps() -> None:
    """Relevance is kept whole, and has no calls."""
    whole = RelevanceMap("layers.*", torch.rand(1, 1, 13, 11))
    assert Session(LookResult(Sight({whole.name: whole}, []), {}, "relevance")).size == 13 * 11 * 4


@pytest.mark.parametrize(("size", "kept"), [(7, 49), (12, 16)])
def test_windows_are_sent_in_their_places(size: int, kept: int) -> None:
    """The whole of small windows, the top of large ones; maps and tiles of the whole picture."""

    class InWindows(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    layout = Windows(20, 17, (size, size), (3, 2))
    apart = -100.0 * (torch.arange(size * size) < 9)[None]  # as some models mask
    with look(model := InWindows()) as sight:
        model(torch.randn(len(layout.patches), 3, size * size, 5), apart)
    shown = Session(LookResult(sight.merge_windows({"*": layout}), {}, "windows"))
    weights = shown.site(0).weights()[0].numpy()
    assert ((weights > 0) & (weights < 1e-30)).any()
    weights = np.where(weights < 1e-30, 0, weights)
    (head,) = json.loads(shown.head())["sites"]
    windows = {"height": 20, "width": 17, "window": [size, size], "shift": [3, 2]}
    assert (head["kept"], head["windows"]) == (kept, [windows, windows])
    rows = np.frombuffer(shown.rows(0, 1, (100, 110)), np.float32)
    keys = rows[: 10 * kept].view(np.int32).reshape(10, kept)
    assert np.array_equal((keys >= 0).sum(1), np.minimum(kept, (weights[1, 100:110] > 0).sum(1)))
    best = -np.sort(-weights[1, 100:110], 1)[:, :kept]
    assert np.allclose(-np.sort(-rows[10 * kept : 20 * kept].reshape(10, kept), 1), best)
    assert np.allclose(rows[20 * kept :], weights[1, 100:110].sum(1) - best.sum(1), atol=1e-6)
    tile = np.frombuffer(shown.tile(0, 2, (5, 205), (50, 90), (200, 40)), np.float32)
    assert np.allclose(tile.reshape(200, 40), weights[2, 5:205, 50:90])
    maps = np.frombuffer(shown.maps(0), np.float32)
    assert np.allclose(maps[3:].reshape(3, 64, 64), shown.site(0).pooled(64, 64)[0])
    assert np.allclose(maps[:3], shown.site(0).entropy()[0].mean(-1))
    assert head["step"] == 1


def test_names_are_not_guessed() -> None:
    names = {SessionCache.new_name() for _ in range(97)}
    assert len(names) == 97
    assert min(map(len, names)) >= 20


def test_a_sight_without_sites_is_told() -> None:
    with look(nn.Linear(1, 1)) as sight:
        pass
    shown = Session(LookResult(sight, {}, "nothing", []))
    with pytest.raises(UserError, match=r"^there is no site to show: nothing attended during the look$"):
        shown.head()


def test_a_worker_keeps_nothing_of_what_failed(capsys: pytest.CaptureFixture) -> None:
    """The frames of a traceback hold all that a model had computed."""
    worker = Worker(3)

    def fail() -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer") from error

    error = worker.submit(fail).exception(30)
    assert isinstance(error, RuntimeError)
    assert error.__cause__ is error.__context__ is None
    assert not isinstance(error, Busy)
    assert "RuntimeError: outer" in capsys.readouterr().err
    done: Future = worker.submit(lambda: 7)
    assert done.result(30) == 7


def test_weights_that_are_no_numbers_are_told() -> None:
    viewer = FakeViewer()
    shown = Session(viewer.look("x " * 13, 13))
    site = shown.site(1)
    weights = site.weights().clone()
    weights[0, 2, 7, 3] = torch.nan
    site.weights = lambda heads, queries, keys: weights[:, heads][:, :, queries][..., keys]  # type: ignore
    shown.rows(1, 1, (0, 13))
    for asked in (
        lambda: shown.maps(1),
        lambda: shown.rows(1, 2, (5, 9)),
        lambda: shown.tile(1, 2, (7, 8), (0, 9), (1, 3)),
    ):
        with pytest.raises(UserError, match=r"^layers\.1: some weights are NaN"):
            asked()
