"""Control of a robot from end to end: movements of several numbers, in worlds and as a user's own episodes."""

from io import StringIO
from pathlib import Path

import fake_robot
import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.contracts import Output
from foveate.data.worlds.episodes import read_recordings
from foveate.errors import UserError
from foveate.forms.actions import ActOptions, WorldActions, WorldOptions
from foveate.forms.processor import Processor
from foveate.forms.world import LevelName
from foveate.tasks.acting.episodes import watch_episode
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.upgrade import upgrade_processor
from foveate.training import Training
from foveate.training.objectives.imitation import Imitation

CONSOLE = Console(file=StringIO())


@pytest.fixture(autouse=True)
def _robot(monkeypatch) -> None:
    fake_robot.install(monkeypatch)


def write_episodes(folder: Path, count: int, seed: int, numbers: int = 3) -> Path:
    """Steps towards a light: each is in which of nine places it stands, as -1, 0 and 1."""
    generator = np.random.default_rng(seed)
    folder.mkdir()
    for name in range(count):
        steps = int(generator.integers(1, 4))
        pixels, actions = np.zeros((steps, 84, 84, 4), np.uint8), np.zeros((steps, numbers), np.float32)
        for step in range(steps):
            row, column = generator.integers(3, size=2)
            pixels[step, 28 * row : 28 * row + 28, 28 * column : 28 * column + 28] = 255
            actions[step, :2] = row - 1, column - 1
        np.savez(folder / f"{name:03}.npz", pixels=pixels, actions=actions, instruction=np.array("reach"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("robot")
    training = Training(steps=100, learning_rate=0.01, warmup=3, validate_every=100, precision="float32")
    data = (write_episodes(place / "train", 80, 1),)
    small = {"widths": (8, 8, 8), "width": 16}
    recipe = make_recipe("control", data=data, batch=64, architecture=small, out=place / "run", training=training)
    learn(recipe, console=CONSOLE)
    return place / "run"


def test_it_imitates_recorded_movements(folder: Path, tmp_path: Path) -> None:
    agent = foveate.load(folder)
    found = agent.evaluate([write_episodes(tmp_path / "new", 20, 2)], WorldOptions(), CONSOLE).figures["ways"]
    assert found["darqn-tiny"]["action_error"] < 0.7 * found["the mean action"]["action_error"]
    assert (agent.processor.writes.kind, agent.processor.writes.count) == ("numbers", 3)


def test_it_moves_in_worlds_and_is_drawn(folder: Path, tmp_path: Path, capsys) -> None:
    gif, picture, page = (tmp_path / name for name in ("episode.gif", "steps.png", "look.html"))
    flags = ["--world", "panda/Reach", "--episodes", "2", "--picture", str(gif), "--json"]
    main(["eval", str(folder), *flags])
    out = capsys.readouterr().out
    assert '"levels": 2' in out
    assert "random actions" in out
    with PIL.Image.open(gif) as animation:
        assert animation.n_frames > 1
    main(["run", str(folder), "panda/Reach", "--seed", "5", "--picture", str(picture)])
    instruction, actions, end = capsys.readouterr().out.rstrip("\n").split("\t")
    assert instruction == "reach"
    assert all(len(one.split(" ")) == 3 for one in actions.split(", "))
    assert end in ("reached", "not reached")
    assert picture.stat().st_size > 5_000
    main(["look", str(folder), "panda/Reach 5", "--out", str(page)])
    assert actions.split(", ")[0] in page.read_text()


def test_an_action_is_what_the_model_gives_for_what_was_seen(folder: Path) -> None:
    agent = foveate.load(folder)
    acted = agent.answer(["panda/Reach"], ActOptions(4))[0]
    _, views, weights = watch_episode(agent, acted)
    assert views.shape[1:] == (80, 80, 3)  # ten windows of 8 pixels each way
    assert weights.shape[1:] == (10, 10)
    assert len(acted.actions) == len(views) == len(weights)
    world = fake_robot.panda_worlds.PandaWorld("panda/Reach", 4)
    seen = []
    for action in acted.actions:
        seen.append(world.observe()["pixels"])
        world.act(action)
    inputs = agent.processor.reads.inputs(["reach"])
    numbers = agent.forward({**inputs, "pixels": torch.from_numpy(np.stack(seen))[None]}).logits[0].clamp(-1, 1)
    torch.testing.assert_close(torch.tensor(acted.actions), numbers, atol=1e-5, rtol=0)


def test_the_squared_error_counts_what_was_recorded(tmp_path: Path) -> None:
    """Two steps and one: 3 of 4 places of the batch."""
    for name, actions in (("a", [[0.5, -1.0], [0.0, 1.0]]), ("b", [[1.0, 0.25]])):
        np.savez(tmp_path / f"{name}.npz", pixels=np.zeros((len(actions), 2, 2, 1), np.uint8), actions=actions)
    recordings = read_recordings([tmp_path])
    reads = LevelName().learn(recordings, None)
    processor = Processor(reads, WorldActions().learn(recordings, reads, None))
    batch = processor.batch(list(processor.prepare(recordings)), None)
    assert batch.weight.tolist() == [2, 1]
    assert processor.sizes()["actions"] == 2
    loss = Imitation()(Output(torch.full((2, 2, 2), 0.5)), batch)
    assert loss.total.item() == pytest.approx((0 + 2.25) + (0.25 + 0.25) + (0.25 + 0.0625))
    assert loss.log["squared_error"] == loss.total


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        (np.array([[0.5, np.nan, 0], [0, 0, 0]]), "1.npz: the numbers of an action must be floating-point and from -1"),
        (np.array([[0.5, 1.5, 0], [0, 0, 0]]), "floating-point and from -1 to 1"),
        (np.zeros((2, 3), int), "floating-point and from -1 to 1"),
        (np.zeros((2, 0)), r"or \(steps, numbers\), not uint8 \(2, 8, 8, 3\) and \(2, 0\)"),
        (np.zeros((3, 2)), r"and \(3, 2\)"),
        (np.zeros((2, 1001)), "has actions of 1,001 numbers; at most 1000 are read"),
        (np.array([0.0, 1.0]), "actions must be whole numbers from 0 to 999"),
    ],
)
def test_damaged_movements(tmp_path: Path, actions, complaint) -> None:
    np.savez(tmp_path / "1.npz", pixels=np.zeros((2, 8, 8, 3), np.uint8), actions=actions)
    with pytest.raises(UserError, match=complaint):
        read_recordings([tmp_path])


def test_actions_of_several_kinds(tmp_path: Path) -> None:
    pixels = np.zeros((2, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "1.npz", pixels=pixels, actions=np.zeros((2, 3)))
    np.savez(tmp_path / "2.npz", pixels=pixels, actions=np.zeros((2, 4)))
    with pytest.raises(UserError, match="all actions must be choices or have one number of numbers"):
        read_recordings([tmp_path])
    np.savez(tmp_path / "2.npz", pixels=pixels, actions=np.zeros(2, int))
    with pytest.raises(UserError, match="all actions must be choices or have one number of numbers"):
        read_recordings([tmp_path])


def test_what_an_agent_of_movements_cannot_do(folder: Path, tmp_path: Path, monkeypatch) -> None:
    agent = foveate.load(folder)
    with pytest.raises(UserError, match="a beam search takes actions that are choices"):
        agent.answer(["panda/Reach"], ActOptions(width=2))
    other = write_episodes(tmp_path / "other", 2, 1, numbers=2)
    wrong = r"000\.npz has actions of 2 numbers, but this agent has actions of 3 numbers"
    with pytest.raises(UserError, match=wrong):
        agent.evaluate([other], WorldOptions(), CONSOLE)
    recipe = make_recipe("control", data=other, validation=other, start=folder, out=tmp_path / "run")
    with pytest.raises(UserError, match=wrong):
        learn(recipe, console=CONSOLE)
    fake_robot.install(monkeypatch, 4)
    with pytest.raises(UserError, match=r"this agent has actions of 3 numbers .* panda/Reach has actions of 4 numbers"):
        agent.run("panda/Reach")
    with pytest.raises(UserError, match="Q-learning chooses actions from a list, and those of panda/Reach are numbers"):
        learn(make_recipe("control", objective="q", world="panda/Reach", out=tmp_path / "q"), console=CONSOLE)


def test_earlier_processors_are_read(tmp_path: Path) -> None:
    (tmp_path / "processor.json").write_text('{"words": ["go"], "actions": 7, "channels": 3, "views": "pixels"}')
    found = upgrade_processor("control", tmp_path)
    assert found["reads"] == {"words": ["go"], "channels": 3, "views": "pixels"}
    assert found["writes"] == {"count": 7, "kind": "choices"}
