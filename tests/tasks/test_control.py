"""Control from end to end: recorded episodes of a user's own, and levels of BabyAI to act in."""

import io
import zipfile
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.worlds.episodes import Level, read_recordings
from foveate.data.worlds.grid_levels import ACTIONS, GridLevel, channels_of, draw_views, encode_views
from foveate.data.worlds.views import scale_pixels
from foveate.errors import UserError
from foveate.forms.actions import ActOptions, WorldOptions
from foveate.forms.world import LevelName
from foveate.models.multimodal.darqn import DARQN, DARQNConfig
from foveate.sight import look
from foveate.tasks.acting.episodes import same_views, watch_episode
from foveate.tasks.acting.replay import ReplayBatches
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.viewers import open_model
from foveate.training import Training

CONSOLE = Console(file=StringIO())

NEEDS_MINIGRID = pytest.mark.skipif(find_spec("minigrid") is None, reason="minigrid is not installed")


def write_episodes(folder: Path, count: int, seed: int) -> Path:
    """Views of 7 x 7 tiles, one of them lit: action 0 where it is red, 1 where it is green."""
    generator = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(count):
        steps = int(generator.integers(1, 4))
        pixels = np.zeros((steps, 56, 56, 3), np.uint8)
        actions = generator.integers(0, 2, steps)
        for step, action in enumerate(actions):
            row, column = 8 * generator.integers(7, size=2)
            pixels[step, row : row + 8, column : column + 8, action] = 255
        np.savez(folder / f"{number:03}.npz", pixels=pixels, actions=actions, instruction=np.array("go to the light"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("control")
    training = Training(steps=40, learning_rate=0.01, warmup=3, validate_every=40, precision="float32")
    data = (write_episodes(place / "train", 80, 1),)
    small = {"widths": (8, 8, 8), "width": 16}
    recipe = make_recipe(
        "control", data=data, batch=64, architecture=small, out=place / "run", training=training, label_smoothing=0.1
    )
    learn(recipe, console=CONSOLE)
    return place / "run"


def test_it_imitates_recorded_episodes(folder: Path, tmp_path: Path) -> None:
    agent = foveate.load(folder)
    found = agent.evaluate([write_episodes(tmp_path / "new", 20, 2)], WorldOptions(), CONSOLE)
    assert found.figures["ways"]["darqn-tiny"]["action_accuracy"] >= 90
    assert agent.processor.reads.words == ("go", "light", "the", "to")
    assert agent.processor.writes.count == 2


def test_recordings_of_another_world_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "grey").mkdir()
    pixels = np.zeros((2, 56, 56, 1), np.uint8)
    np.savez(tmp_path / "grey" / "0.npz", pixels=pixels, actions=np.array([0, 4]))
    with pytest.raises(UserError, match=r"^0\.npz has 5 actions, but this agent has 2 actions"):
        foveate.load(folder).evaluate([tmp_path / "grey"], WorldOptions(), CONSOLE)
    np.savez(tmp_path / "grey" / "0.npz", pixels=pixels, actions=np.array([0, 1]))
    wrong = r"^0\.npz has images of 1 channels, but this agent reads 3 channels"
    with pytest.raises(UserError, match=wrong):
        foveate.load(folder).evaluate([tmp_path / "grey"], WorldOptions(), CONSOLE)
    grey = tmp_path / "grey"
    with pytest.raises(UserError, match=wrong):
        learn(make_recipe("control", data=grey, validation=grey, start=folder, out=tmp_path / "run"), console=CONSOLE)


@NEEDS_MINIGRID
def test_it_acts_in_levels_and_is_drawn(folder: Path, tmp_path: Path, capsys) -> None:
    gif, picture = tmp_path / "episode.gif", tmp_path / "episode.png"
    flags = ["--world", "babyai/GoToLocal", "--episodes", "1", "--picture", str(gif), "--json"]
    main(["eval", str(folder), *flags])
    out = capsys.readouterr().out
    assert '"levels": 1' in out
    assert "random actions" in out
    with PIL.Image.open(gif) as animation:
        assert animation.n_frames > 1
    main(["run", str(folder), "babyai/GoToLocal", "--seed", "5", "--picture", str(picture)])
    instruction, actions, end = capsys.readouterr().out.rstrip("\n").split("\t")
    assert instruction.startswith("go to ")
    assert set(actions.split(", ")) <= {"left", "right"}
    assert end in ("reached", "not reached")
    assert picture.stat().st_size > 5_000


@NEEDS_MINIGRID
def test_the_attention_that_is_drawn_is_that_of_the_episode(folder: Path) -> None:
    agent = foveate.load(folder)
    acted = agent.run("babyai/GoToLocal")
    _, views, weights = watch_episode(agent, acted)
    pixels = torch.from_numpy(scale_pixels(views[:3]))
    inputs = agent.processor.reads.inputs([acted.instruction])
    with torch.inference_mode(), look(agent.model) as sight:
        agent.model(**inputs, pixels=pixels[None, :1])
    torch.testing.assert_close(sight[sight.sites[0]].weights()[0, 0, 0], torch.from_numpy(weights[0]).flatten())
    # the third step, as the state before it attends
    with torch.inference_mode():
        state = agent.model.start(**inputs)
        for step in range(2):
            agent.model.step({"pixels": pixels[step : step + 1]}, state)
        query = torch.cat([state.hidden[0][-1], state.instruction], -1)
        score = agent.model.score
        scores = score.block(
            score.queries(query), score.keys(agent.model._flat_grid(pixels[2:3])[0, agent.model.fixed :])
        )
    torch.testing.assert_close(scores[0].softmax(0), torch.from_numpy(weights[2]).flatten(), atol=1e-5, rtol=0)


@NEEDS_MINIGRID
def test_actions_are_drawn_or_the_likeliest(folder: Path) -> None:
    agent = foveate.load(folder)
    drawn, again, likeliest = (
        agent.answer(["babyai/GoToLocal"], ActOptions(likeliest=likeliest))[0].actions
        for likeliest in (False, False, True)
    )
    assert drawn == again
    assert len(set(drawn)) == 2
    world, state = GridLevel("babyai/GoToLocal", 1), None
    with torch.inference_mode():
        state = agent.model.start(**agent.processor.reads.inputs([world.instruction]))
        for action in likeliest[:5]:
            seen = torch.from_numpy(world.observe()["pixels"])[None]
            assert int(agent.model.step({"pixels": seen}, state).argmax()) == action
            world.act(action)


@NEEDS_MINIGRID
def test_a_look_has_a_map_for_each_view(folder: Path, tmp_path: Path, capsys) -> None:
    agent = foveate.load(folder)
    found = open_model(folder).look("babyai/GoToLocal 3", 100)
    acted = agent.answer(["babyai/GoToLocal"], ActOptions(3))[0]
    _, _, weights = watch_episode(agent, acted)
    assert sum(found.sight[site].shape[2] for site in found.sight.sites) == len(acted.actions)
    names, view = found.tokens[found.sight.sites[0]]
    assert names[0] == f"1. {ACTIONS[acted.actions[0]]}"
    assert (view.height, view.width) == weights.shape[1:] == (7, 7)
    page = tmp_path / "look.html"
    main(["look", str(folder), "babyai/GoToLocal 3", "--out", str(page)])
    assert f"at {len(found.sight.sites)} site" in capsys.readouterr().out
    with pytest.raises(UserError, match="is not a level: the input is a world and a seed"):
        agent.look("go to the lamp", 100)


def test_views_that_are_seen_again() -> None:
    views = np.array([3, 5, 3, 3, 7])[:, None, None, None]
    assert same_views(views) == [(0, 0), (1, 0), (0, 1), (0, 2), (2, 0)]


@NEEDS_MINIGRID
@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--world", "babyai/Nowhere"], "unknown world 'babyai/Nowhere'"),
        (["--world", "babyai/GoToLocal", "--picture", "episode.png"], "an episode is written as .gif"),
    ],
)
def test_bad_input(folder: Path, flags, complaint, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", str(folder), *flags])
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_agent_of_another_world(folder: Path) -> None:
    agent = foveate.load(folder)
    agent.processor.writes.count = 9
    with pytest.raises(UserError, match=r"this agent has 9 actions .* but babyai/GoToLocal has 7 actions"):
        agent.run("babyai/GoToLocal")


EPISODE = {"pixels": np.zeros((2, 8, 8, 3), np.uint8), "actions": np.zeros(2, int)}


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"pixels": np.zeros((2, 8, 8, 3), np.uint8)}, "is not an episode: .*actions"),
        ({"pixels": np.zeros((2, 8, 8, 3)), "actions": np.zeros(2, int)}, r"not float64 \(2, 8, 8, 3\)"),
        ({"pixels": np.zeros((2, 8, 8, 3), np.uint8), "actions": np.zeros(3, int)}, r"and \(3,\)"),
        ({"pixels": np.zeros((2, 8, 8, 3), np.uint8), "actions": np.array([0, -1])}, "numbers from 0 to 999"),
        ({"pixels": np.array([{}], object), "actions": np.zeros(1, int)}, "is not an episode"),
        ({**EPISODE, "actions": np.array([0, 10**9])}, "actions must be whole numbers from 0 to 999"),
        ({"pixels": np.zeros((2, 0, 8, 3), np.uint8), "actions": np.zeros(2, int)}, r"not uint8 \(2, 0, 8, 3\)"),
        (
            {"pixels": np.zeros((100_001, 1, 1, 1), np.uint8), "actions": np.zeros(100_001, np.uint8)},
            "has 100,001 steps; an episode has at most 100,000",
        ),
        ({**EPISODE, "pixels": np.zeros((2, 8, 8, 65), np.uint8)}, "has images of 65 channels; at most 64 are read"),
        ({**EPISODE, "instruction": np.arange(3)}, "the instruction must be one text of at most 10,000 characters"),
        ({**EPISODE, "instruction": np.array("go " * 4_000)}, "the instruction must be one text"),
    ],
)
def test_damaged_episodes(tmp_path: Path, arrays, complaint) -> None:
    np.savez(tmp_path / "1.npz", **arrays)
    with pytest.raises(UserError, match=complaint):
        read_recordings([tmp_path])


@pytest.mark.parametrize("number", [0xD800, 0x110000])
def test_an_instruction_of_what_is_no_character(tmp_path: Path, number: int) -> None:
    np.savez(tmp_path / "1.npz", **EPISODE, instruction=np.array("go zz"))
    content = (tmp_path / "1.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "1.npz", "w") as made, zipfile.ZipFile(io.BytesIO(content)) as whole:
        for name in whole.namelist():
            part = whole.read(name)
            made.writestr(name, part.replace("zz".encode("utf-32-le"), np.array([number] * 2, "<u4").tobytes()))
    with pytest.raises(UserError, match=r"is not Unicode|is not UTF-8"):
        read_recordings([tmp_path])


def test_a_header_without_end(tmp_path: Path) -> None:
    """It is compressed to a thousandth, and would be read before it is looked at."""
    with zipfile.ZipFile(tmp_path / "1.npz", "w", zipfile.ZIP_DEFLATED) as made, made.open("pixels.npy", "w") as file:
        file.write(b"\x93NUMPY\x02\x00" + (2**27).to_bytes(4, "little"))
        for _ in range(2**7):
            file.write(bytes(2**20))
    with pytest.raises(UserError, match=r"pixels\.npy takes more than 128 MiB, the limit"):
        read_recordings([tmp_path])


def test_folders_without_episodes_and_images_of_two_sizes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no \.npz files"):
        read_recordings([tmp_path])
    for number, side in enumerate((8, 16)):
        pixels = np.zeros((1, side, side, 3), np.uint8)
        np.savez(tmp_path / f"{number}.npz", pixels=pixels, actions=np.zeros(1, int))
    with pytest.raises(UserError, match="all images must have one size"):
        read_recordings([tmp_path])


Q = {"objective": "q", "world": "minigrid/Empty-5x5", "batch": 32, "validation_examples": 2}


@NEEDS_MINIGRID
def test_q_learning_in_levels(tmp_path: Path, capsys) -> None:
    training = Training(steps=3, warmup=1, validate_every=3, precision="float32")
    small = {"widths": (8, 8, 8), "width": 16}
    recipe = make_recipe("control", **Q, actions=3, architecture=small, out=tmp_path / "run", training=training)
    learn(recipe, console=CONSOLE)
    agent = foveate.load(tmp_path / "run")
    assert agent.processor.writes.count == 3
    assert "goal" in agent.processor.reads.words
    assert len(agent.test_examples([], WorldOptions())) == 500
    main(["run", str(tmp_path / "run"), "minigrid/Empty-5x5"])
    assert capsys.readouterr().out.startswith("get to the green goal square\t")


@NEEDS_MINIGRID
def test_replayed_parts_of_episodes() -> None:
    torch.manual_seed(0)
    model = DARQN(DARQNConfig(5, 3, 3, (8,), (8,), (8,), width=8))
    levels = [Level("minigrid/Empty-5x5", seed) for seed in range(4)]
    batches = ReplayBatches(model, LevelName(words=("goal",)), 3, levels, 64, 10, 0.9, 1)
    (first, second), again = batches.epoch(0), next(batches.epoch(0))
    assert len(batches) == 2
    assert first.inputs["pixels"].shape == (4, 16, 3, 56, 56)
    assert second.targets["values"].shape == (4, 16)
    torch.testing.assert_close(first.targets["labels"][0], again.targets["labels"][0])
    done = batches.kept[0]
    assert len(done.codes) == len(done.actions) + 1 == len(done.rewards) + 1
    assert (done.rewards[-1] > 0) <= done.ended


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"objective": "q"}, "Q-learning takes a world"),
        ({"world": "minigrid/Empty-5x5"}, "Q-learning takes a world"),
        ({"objective": "q", "world": "minigrid/Empty-5x5", "source": "babyai-go-to-local"}, "and no recordings"),
        ({"actions": 8}, "actions is 8, but must be from 1 to 7"),
        ({"discount": 2.0}, "discount is 2, but must be from 0 to 1"),
    ],
)
def test_settings_of_q_learning(tmp_path: Path, settings, complaint) -> None:
    with pytest.raises(UserError, match=complaint):
        learn(make_recipe("control", **settings, out=tmp_path / "run"), console=CONSOLE)


@NEEDS_MINIGRID
def test_symbols_say_what_stands_on_each_tile(tmp_path: Path) -> None:
    """A red ball two tiles ahead of the agent, whose own place is the middle of the lowest row."""
    world = GridLevel("babyai/GoToLocal", 3, "symbols")
    codes = world.codes.copy()
    codes[3, 4] = 6, 0, 0
    (seen,) = encode_views(codes[None], "symbols")
    assert seen.shape == world.observe()["pixels"].shape == (channels_of("symbols"), 7, 7)
    assert seen[:, 4, 3].nonzero()[0].tolist() == [6, 11, 17]
    assert (seen.sum(0) == 3).all()
    reads = LevelName(words=("go",), views="symbols", channels=channels_of("symbols"))
    images = read_recordings([write_episodes(tmp_path / "images", 1, 1)])
    with pytest.raises(UserError, match="has images alone: learn from them with --views pixels"):
        reads.tensors([images[0]])


@NEEDS_MINIGRID
def test_depth_says_how_near_things_are() -> None:
    """A red ball two tiles ahead of the agent is two of nine steps away."""
    codes = np.ones((1, 7, 7, 3), np.uint8)
    codes[0, 3, 4] = 6, 0, 0
    ((grey, depth),) = encode_views(codes, "grey-depth")
    assert channels_of("grey-depth") == 2
    tile = depth[32:40, 24:32]
    assert np.allclose(tile, 1 - 2 / 9)
    assert (depth == -1).sum() == depth.size - tile.size
    colour = scale_pixels(draw_views(codes))[0, :, 36, 28]
    assert grey[36, 28] == pytest.approx(colour @ [0.299, 0.587, 0.114], abs=1e-6)


@NEEDS_MINIGRID
def test_an_agent_of_two_streams_learns_and_is_drawn(tmp_path: Path, capsys) -> None:
    training = Training(steps=2, warmup=1, validate_every=2, precision="float32")
    small = {"widths": (8, 8, 8), "width": 16}
    settings = {**Q, "actions": 3, "views": "grey-depth", "model": "mdarqn-tiny", "architecture": small}
    learn(make_recipe("control", **settings, out=tmp_path / "run", training=training), console=CONSOLE)
    agent = foveate.load(tmp_path / "run")
    acted = agent.run("minigrid/Empty-5x5")
    levels, views, weights = watch_episode(agent, acted)
    assert len(levels) == len(views) == len(weights) == len(acted.actions)
    assert np.allclose(weights.sum((1, 2)), 1, atol=1e-5)
    found = agent.look("minigrid/Empty-5x5", 100)
    for stream in (0, 1):
        sites = [site for site in found.sight.sites if site.startswith(f"streams.{stream}")]
        assert sum(found.sight[site].shape[2] for site in sites) == len(acted.actions)
