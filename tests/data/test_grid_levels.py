"""Levels of BabyAI as worlds."""

import numpy as np
import pytest

pytest.importorskip("minigrid")

from foveate.contracts import World
from foveate.data.sources import babyai, open_source
from foveate.data.worlds.grid_levels import GridLevel, bot_episode, draw_views
from foveate.errors import UserError

NAME = "babyai/GoToLocal"


def test_views_are_drawn_as_minigrid_draws_them() -> None:
    level = GridLevel("babyai/PickupLoc", 5)
    for action in np.random.default_rng(3).integers(0, 6, 30):  # picks up, drops
        seen = draw_views(level.codes[None])
        assert seen.shape == (1, 56, 56, 3)
        np.testing.assert_array_equal(seen[0], level.env.get_frame(tile_size=8, agent_pov=True).astype(np.uint8))
        level.act(int(action))


def test_a_level_is_a_world_that_its_seed_lays_out() -> None:
    level, same, other = (GridLevel(NAME, seed) for seed in (7, 7, 8))
    assert isinstance(level, World)
    assert level.instruction == same.instruction
    assert np.array_equal(level.observe()["pixels"], same.observe()["pixels"])
    assert not np.array_equal(level.observe()["pixels"], other.observe()["pixels"])
    assert level.observe()["pixels"].shape == (3, 56, 56)
    assert -1 <= level.observe()["pixels"].min() < level.observe()["pixels"].max() <= 1
    copied = level.copy()
    level.act(0)
    assert np.array_equal(copied.observe()["pixels"], same.observe()["pixels"])
    assert not np.array_equal(copied.observe()["pixels"], level.observe()["pixels"])


def test_the_bot_reaches_the_goal() -> None:
    instruction, views, actions = bot_episode(NAME, 4)
    assert instruction.startswith("go to ")
    assert views.shape == (len(actions), 7, 7, 3)
    level = GridLevel(NAME, 4)
    ends = []
    for view, action in zip(views, actions, strict=True):
        assert np.array_equal(level.codes, view)
        ends.append(level.act(action))
    assert ends == [False] * (len(actions) - 1) + [True]
    assert level.reward > 0


def test_names_that_are_no_levels() -> None:
    with pytest.raises(UserError, match="unknown world 'babyai/GotoLocal'; did you mean babyai/GoToLocal"):
        GridLevel("babyai/GotoLocal", 1)
    with pytest.raises(UserError, match="minigrid/Empty-5x5 has no bot"):
        bot_episode("minigrid/Empty-5x5", 1)


def test_the_source_records_the_bot(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(babyai, "EPISODES", 5)
    splits = open_source("babyai-go-to-local", task="control")
    assert [len(splits.train), len(splits.dev), len(splits.test)] == [5, 200, 500]
    instruction, views, actions = bot_episode(NAME, 3, babyai.NOISE)
    recording = splits.train[3]
    assert (recording.instruction, recording.actions) == (instruction, tuple(actions))
    assert np.array_equal(recording.read(), draw_views(views))
    assert len({level.seed for level in splits.test} & {level.seed for level in splits.dev}) == 0
