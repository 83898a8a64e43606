"""Walking from end to end: trained, saved, loaded, used, measured."""

import json
import math
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.worlds.maps import make_map
from foveate.data.worlds.routes import Route
from foveate.errors import UserError
from foveate.forms.walks import MapActions, MapOptions, WalkOptions
from foveate.metrics.acting import arrivals
from foveate.tasks.learning import learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model
from foveate.training import Training

CONSOLE = Console(file=StringIO())

PLACES = [(x, y) for x in range(3) for y in range(3)]
EDGES = [((x, y), (x + 1, y), "wood", "fish") for x in range(2) for y in range(3)]
EDGES += [((x, y), (x, y + 1), "grass", "fish") for x in range(3) for y in range(2)]
SQUARE = make_map("square", dict.fromkeys(PLACES, "") | {(0, 0): "lamp", (2, 2): "chair"}, EDGES)

XML = "<map name='square'>{}{}</map>".format(
    "".join(f"<node x='{x}' y='{y}' item='{item}'/>" for (x, y), item in SQUARE.items.items()),
    "".join(f"<edge node1='{a},{b}' node2='{c},{d}' floor='{f}' wall='{w}'/>" for (a, b), (c, d), f, w in EDGES),
)


def routes(name: str, words: dict[str, int]) -> Dataset[Route]:
    """From every pose: turn as one word says and stop."""
    poses = [(x, y, heading) for x, y in PLACES for heading in (0, 90, 180, 270)]
    found = [
        Route(f"{word} {pose}", word, SQUARE, (pose, (*pose[:2], (pose[2] + turn) % 360)))
        for pose in poses
        for word, turn in words.items()
    ]
    return Dataset(name, found, "routes")


WORDS = {"left": 270, "right": 90, "stay": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("walk") / "run"
    training = Training(steps=60, learning_rate=0.02, warmup=3, validate_every=60, precision="float32")
    recipe = make_recipe(
        "walk",
        source="halls",
        batch=200,
        model="walker-tiny",
        architecture={"width": 24},
        out=out,
        training=training,
        label_smoothing=0.1,
    )
    learn(recipe, Splits(*[routes(part, WORDS) for part in ("train", "dev", "test")]), CONSOLE)
    return out


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    (tmp_path / "square.xml").write_text(XML)
    return tmp_path / "square.xml"


def test_it_follows_instructions_on_a_map(folder: Path, map_file: Path, capsys) -> None:
    main(["run", str(folder), "left", "right", "stay", "--map", str(map_file), "--at", "1,1,180"])
    lines = [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [["left stop", "1,1,90"], ["right stop", "1,1,270"], ["stop", "1,1,180"]]


def test_an_empty_instruction_has_an_empty_line(folder: Path, map_file: Path, tmp_path: Path, capsys) -> None:
    picture = tmp_path / "walk.png"
    where = ["--map", str(map_file), "--at", "1,1,180", "--picture", str(picture), "--json"]
    main(["run", str(folder), "", "left", *where])
    empty, found = map(json.loads, capsys.readouterr().out.splitlines())
    assert empty == {"input": ""}
    assert found["actions"] == ["left", "stop"]
    assert found["path"] == [[1, 1, 180], [1, 1, 90]]
    assert picture.stat().st_size > 5_000


def test_a_look_shows_words_at_each_action(folder: Path, map_file: Path) -> None:
    viewer = open_model(folder)
    found = viewer.look(f"{map_file} 1,1,180 stay left", 10)
    assert found.title == "stay left"
    assert found.picture is not None
    assert found.picture() is not None
    (site,) = found.sight.sites
    actions, words = found.tokens[site]
    assert words == ["stay", "left"]
    assert actions[-1] == "stop"
    assert found.sight[site].shape == (1, 1, len(actions), 2)
    assert found.document().sites
    with pytest.raises(UserError, match="where to walk"):
        viewer.look("stay", 10)
    with pytest.raises(UserError, match="the instruction has 11 words, but the limit is 10"):
        viewer.look(f"{map_file} 1,1,180 {'left ' * 11}", 10)


def test_beams_find_the_same_and_are_as_probable(folder: Path, map_file: Path) -> None:
    walker = foveate.load(folder)
    greedy, beam = (walker.answer(["left"], WalkOptions(map=map_file, at="0,1,0", width=width))[0] for width in (1, 4))
    assert greedy.actions == beam.actions
    assert greedy.probability == pytest.approx(beam.probability, abs=1e-5)


def test_a_paragraph_is_followed_sentence_by_sentence(folder: Path, map_file: Path, tmp_path: Path, capsys) -> None:
    """What learned from single words follows several as it does each from where the last one ended."""
    walker = foveate.load(folder)
    assert not walker.processor.writes.paragraphs
    where = WalkOptions(map=map_file, at="1,1,0")
    (walk,) = walker.answer(["Left. Left! stay; right."], where)
    assert walk.names == ["left", "stop", "left", "stop", "stop", "right", "stop"]
    assert [pose[2] for pose in walk.path] == [0, 270, 180, 270]
    assert [one.words for one in walk.sentences] == [["left"], ["left"], ["stay"], ["right"]]
    assert walk.probability == pytest.approx(math.prod(one.probability for one in walk.sentences))
    _, heat = walker.picture(walk).axes
    weights = heat.images[0].get_array()
    assert weights.shape == (7, 4)
    assert weights.tolist() == [[float(word == own) for word in range(4)] for own in (0, 0, 1, 1, 2, 3, 3)]
    (whole,) = walker.answer(["Left. Left! stay; right."], replace(where, follow="whole"))
    assert whole.sentences == []
    assert walker.answer(["..."], where)[0].words == list("...")
    main(["run", str(folder), "left. left.", "--map", str(map_file), "--at", "1,1,0", "--width", "3"])
    assert capsys.readouterr().out.split("\t")[:2] == ["left stop left stop", "1,1,180"]


def test_instructions_of_several_sentences_are_learned_as_a_whole() -> None:
    rows = [Route("", text, SQUARE, ((0, 0, 0), (0, 0, 90))) for text in ("left.", "go. left", "left")]
    assert MapActions().learn(Dataset("routes", rows, "routes"), None, None).paragraphs
    assert not MapActions().learn(Dataset("routes", rows[::2], "routes"), None, None).paragraphs


def test_it_is_measured_beside_doing_nothing(folder: Path, monkeypatch) -> None:
    walker = foveate.load(folder)
    splits = Splits(*[routes("train", WORDS)] * 3)
    monkeypatch.setattr(Skill, "train_examples", lambda self: splits.train)
    examples = list(routes("test", WORDS))
    assert walker.measure(examples, MapOptions())[1] == {"success": 100, "right_place": 100}
    ways = walker.baselines(examples, MapOptions())
    assert ways["staying"]["success"] == pytest.approx(100 / 3)
    assert ways["always left stop"]["success"] == pytest.approx(100 / 3)


def test_a_users_routes_are_measured_on_the_maps_that_were_left_out(folder: Path, map_file: Path) -> None:
    other = map_file.with_name("other.xml")
    other.write_text(XML.replace("'square'", "'other'"))
    path = [[1, 1, 0], [1, 1, 270]]
    some = [{"instruction": "left", "map": name, "path": path} for name in ("square.xml", "other.xml", "other.xml")]
    file = map_file.with_name("routes.json")
    file.write_text(json.dumps(some))
    walker = foveate.load(folder)
    assert len(walker.test_examples([file], MapOptions())) == 3
    assert len(walker.test_examples([file], MapOptions(only=("square",)))) == 1
    walker.recipe.examples.leave_out = ("other",)
    assert len(walker.task.read([file], walker.recipe)) == 1
    assert len(walker.test_examples([file], MapOptions())) == 2
    found = walker.evaluate([file], MapOptions(), CONSOLE)
    assert found.figures["ways"]["walker-tiny"]["success"] == 100


def test_arrivals_by_hand() -> None:
    some = list(routes("test", {"left": 270}))[:3]  # from (0, 0) with headings 0, 90, 180: ends 270, 0, 90
    found = arrivals([(0, 0, 270), (0, 0, 90), (1, 0, 90)], [route.path[-1] for route in some])
    assert found == {"success": pytest.approx(100 / 3), "right_place": pytest.approx(200 / 3)}


def test_a_picture_of_the_walk(folder: Path, map_file: Path) -> None:
    walker = foveate.load(folder)
    (walk,) = walker.answer(["right left"], WalkOptions(map=map_file, at="1,1,0"))
    figure = walker.picture(walk)
    _, heat = figure.axes
    assert [label.get_text() for label in heat.get_xticklabels()] == ["right", "left"]
    assert heat.images[0].get_array().shape == (len(walk.actions), 2)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ([], "where to walk? Give a map and a first pose"),
        (["--map", "MAP"], "where to walk?"),
        (["--map", "MAP", "--at", "north"], "--at is north, but must be x,y,heading"),
        (["--map", "MAP", "--at", "7,1,0"], "the map square has no place 7,1"),
        (["--map", "missing.xml", "--at", "1,1,0"], "there is no map missing.xml"),
    ],
)
def test_bad_input(folder: Path, map_file: Path, flags, complaint, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(folder), "left", *(str(map_file) if flag == "MAP" else flag for flag in flags)])
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_ensemble_gives_actions_their_mean_probability(folder: Path, map_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    walker = foveate.load(folder)
    changed = foveate.load(other)
    with torch.no_grad():
        changed.model.output.weight.mul_(0.1)  # so that it is less sure
    changed.save(other)

    def probability(own: Path, *others: Path) -> float:
        options = WalkOptions(map=map_file, at="0,1,0", ensemble=others)
        (answer,) = foveate.load(own).answer(["stay"], options)
        assert answer.names == ["stop"]
        return answer.probability

    together = probability(folder, other)
    assert together == pytest.approx((probability(folder) + probability(other)) / 2, abs=1e-5)
    assert probability(other, folder) == pytest.approx(together, abs=1e-5)
    changed.processor.reads.words = ("another", *walker.processor.reads.words[1:])
    changed.save(other)
    with pytest.raises(UserError, match="did not learn from the same routes"):
        probability(folder, other)
