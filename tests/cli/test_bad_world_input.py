"""What a user may get wrong with questions, images of words, maps and episodes, and the one line that says so."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
import pytest

from foveate.cli import main
from foveate.data.worlds import grid_levels

Fails = Callable[..., str]
Failures = Callable[..., list[str]]
LITTLE = ["--steps", "1", "--threads", "1", "--average", "1"]
SMALL = ["--architecture.width", "16", *LITTLE]
MAP = """<map name="L"><node x="3" y="5" item=""/><node x="3" y="6" item="lamp"/>
<edge node1="3,5" node2="3,6" floor="brick" wall="fish"/></map>"""
ROUTE = {"instruction": "go to the lamp", "map": "l.xml", "path": [[3, 5, 270], [3, 5, 180], [3, 6, 180]]}

ROUTES = [ROUTE | {"instruction": f"go to the lamp {number}"} for number in range(22)]
"""Equal ones would be on one side of a split."""


def write_episode(path: Path, **arrays: object) -> None:
    usual = {
        "pixels": np.zeros((3, 56, 56, 3), np.uint8),
        "actions": np.array([0, 1, 0]),
        "instruction": np.array("go"),
    }
    np.savez(path, **(usual | arrays))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, a map with routes, episodes, and images that cannot be used."""
    folder = tmp_path_factory.mktemp("files")
    words, questions = [], []
    for number in range(22):
        word, colour = "abc"[number % 3] + "ab"[number % 2], ("red", "green")[number % 2]
        image = PIL.Image.new("L", (40, 16), 255)
        PIL.ImageDraw.Draw(image).text((3, 2), word, fill=0)
        image.save(folder / f"word{number}.png")
        coloured = PIL.Image.new("RGB", (32, 32), colour)
        coloured.putpixel((0, 0), (number, 0, 0))  # equal images are on one side
        coloured.save(folder / f"colour{number}.png")
        words.append(f"word{number}.png\t{word}\n")
        questions.append(f"colour{number}.png\twhat colour is it?\t{colour}\n")
    (folder / "words.tsv").write_text("".join(words))
    (folder / "questions.tsv").write_text("".join(questions))
    (folder / "l.xml").write_text(MAP)
    (folder / "routes.json").write_text(json.dumps(ROUTES))
    (folder / "episodes").mkdir()
    for number in range(22):
        write_episode(folder / "episodes" / f"{number}.npz", pixels=np.full((3, 56, 56, 3), number, np.uint8))
    PIL.Image.new("L", (4, 400), 255).save(folder / "tall.png")
    (folder / "broken.png").write_bytes((folder / "word0.png").read_bytes()[:60])
    (folder / "text.png").write_text("no image")
    return folder


@pytest.fixture(scope="module")
def runs(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    for task, data, more in (
        ("read", "words.tsv", ["--batch", "8", *LITTLE]),
        ("answer", "questions.tsv", ["--batch", "8", *LITTLE]),
        ("walk", "routes.json", SMALL),
        ("control", "episodes", SMALL),
    ):
        main(["train", task, "--data", str(files / data), *more, "--out", str(out / task)])
    return out


def test_images_of_words(runs: Path, files: Path, tmp_path: Path, fails: Fails, capsys) -> None:
    tall, broken, good = (files / name for name in ("tall.png", "broken.png", "word1.png"))
    told = "is 4 x 400 pixels: too tall for a line of text"
    picture = tmp_path / "a.png"
    places = [str(place) for place in (tall, broken, tmp_path / "missing.png", good)]
    with pytest.raises(SystemExit) as ended:
        main(["run", str(runs / "read"), *places, "--json"])
    assert ended.value.code == 2
    errors = [json.loads(line).get("error") for line in capsys.readouterr().out.splitlines()]
    assert errors[0] == f"{tall} {told}"
    assert errors[1].startswith(f"{broken} cannot be read as an image: ")
    assert errors[2:] == [f"there is no file {tmp_path / 'missing.png'}", None]
    assert fails("run", runs / "read", tall, "--picture", picture) == f"{tall} {told}"
    assert fails("look", runs / "read", tall, "--out", tmp_path / "a.html") == f"tall.png {told}"


def test_tables_of_words(runs: Path, files: Path, tmp_path: Path, fails: Fails, capsys) -> None:
    good = (files / "words.tsv").read_text()
    command = ["train", "read", "--batch", "8", *LITTLE, "--out", tmp_path / "run", "--data"]
    table = files / "mixed.tsv"
    table.write_text(f"{good}tall.png\ta\ntext.png\ta\n")
    main([str(part) for part in (*command, table)])
    reason = f"{files / 'tall.png'} is 4 x 400 pixels: too tall for a line of text"
    assert f"(left out 2, the first because {reason}" in capsys.readouterr().err
    main(["eval", str(runs / "read"), "--data", str(table), "--decoding.width", "1"])
    assert f"(left out 2, the first because {reason}" in capsys.readouterr().err
    table.write_text("tall.png\ta\n")
    assert fails("eval", runs / "read", "--data", table) == reason
    table.write_text(f"{good}word1.png\t\n")
    told = fails(*command, table)
    assert told == f"{table}, line 23: the label is empty"
    table.write_text("word1.png\tñß\n")
    main(["eval", str(runs / "read"), "--data", str(table), "--decoding.width", "1"])
    assert "2 of 2 have characters that the model did not learn: ñ, ß" in capsys.readouterr().out


def test_questions(runs: Path, files: Path, tmp_path: Path, fails: Fails, capsys) -> None:
    good, broken, missing = files / "colour1.png", files / "broken.png", tmp_path / "missing.png"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(runs / "answer"), *map(str, (good, "zyx qqq?", "", broken, "what?", missing, "what?"))])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert err.splitlines() == [
        f"no question about {good}",
        f"{broken} cannot be read as an image: image file is truncated",
        f"foveate: there is no file {missing}",
    ]
    first, *others = out.splitlines()
    assert first.startswith(f"{good}\tzyx qqq?\t")
    assert others == [""] * 3
    main(["run", str(runs / "answer"), str(good), "red\nor green?"])
    assert capsys.readouterr().out.startswith(f"{good}\tred\\nor green?\t")
    told = 'no question: give an image and a question, such as photo.jpg "what is this?"'
    assert fails("run", runs / "answer", good) == told
    table, whole = files / "asked.tsv", (files / "questions.tsv").read_text()
    for line, wrong in (
        ("colour1.png\twhat?\t", "the answer is empty"),
        ("colour1.png\t\tred", "the question is empty"),
        ("colour1.png\twhat?", "1 tabs, but a line must be path<TAB>question<TAB>answer"),
    ):
        table.write_text(f"{whole}{line}\n")
        told = fails("train", "answer", "--data", table, *LITTLE, "--out", tmp_path / "run")
        assert told == f"{table}, line 23: {wrong}"
    table.write_text("colour1.png\twhat?\tpurple\n")
    main(["eval", str(runs / "answer"), "--data", str(table)])
    assert "1 of 1 have answers that the model did not learn: purple" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "at", "message"),
    [
        (MAP, None, "where to walk? Give a map and a first pose: --map FILE.xml --at X,Y,HEADING"),
        (MAP, "9,9,0", "the map L has no place 9,9"),
        (MAP, "3,5,45", "[3, 5, 45] is not x,y,heading, such as 3,5,180"),
        (MAP, "3,5", "[3, 5] is not x,y,heading, such as 3,5,180"),
        ("<map/>", "3,5,180", "{} is not a map: it has no <node x= y=>"),
        ("no map", "3,5,180", "{} is not a map: syntax error: line 1, column 0"),
        ('<map><node x="3"/></map>', "3,5,180", "{} is not a map: a node or an edge has no y"),
        ('<map><node x="a" y="1"/></map>', "3,5,180", "{} is not a map: invalid literal for int() with base 10: 'a'"),
        (MAP.replace('"3,6"', '"3,9"'), "3,5,180", "map L: there can be no hall from (3, 5) to (3, 9)"),
    ],
)
def test_maps(content: str, at: str | None, message: str, runs: Path, fails: Fails, tmp_path: Path) -> None:
    (path := tmp_path / "map.xml").write_text(content)
    start = [] if at is None else ["--at", at]
    assert fails("run", runs / "walk", "go", "--map", path, *start).startswith(message.format(path))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"path": [[3, 5, 270], [3, 9, 180]]}, "route 23: the map L has no place 3,9"),
        (
            {"path": [[3, 5, 270], [3, 6, 180]]},
            "route 23: no action leads from (3, 5, 270) to (3, 6, 180) on the map L",
        ),
        ({"path": [[3, 5, 180], [3, 6, 190]]}, "route 23: [3, 6, 190] is not x,y,heading"),
    ],
)
def test_invalid_paths_are_left_out(
    change: dict, reason: str, files: Path, tmp_path: Path, fails: Fails, capsys
) -> None:
    path = files / "invalid.json"
    path.write_text(json.dumps([*ROUTES, ROUTE | change]))
    main(["train", "walk", "--data", str(path), *SMALL, "--out", str(tmp_path / "run")])
    assert f"1 left out, the first because of {reason}" in capsys.readouterr().err
    path.write_text(json.dumps([ROUTE | change]))
    told = fails("train", "walk", "--data", path, *SMALL, "--out", tmp_path / "other")
    assert told.startswith(reason.replace("23", "1"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "{} has no routes"),
        ("{}", "{} has no routes: it is not a list"),
        ("[{", "{} is damaged: "),
        ([ROUTE | {"path": []}], "{} has no routes"),
        ([ROUTE | {"path": [["a", 5, 0]]}], "{} has no routes: route 1: path is "),
        ([ROUTE | {"map": "gone.xml"}], "{}, route 1: there is no file "),
        ([{"instruction": "go", "path": []}], '{} has no routes: route 1: missing value for field "map"'),
    ],
)
def test_files_of_routes(content: object, message: str, files: Path, tmp_path: Path, fails: Fails) -> None:
    path = files / "bad.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    told = fails("train", "walk", "--data", path, *SMALL, "--out", tmp_path / "run")
    assert told.startswith(message.format(path))


def test_unknown_words_of_instructions(runs: Path, files: Path, capsys) -> None:
    main(["run", str(runs / "walk"), "xyzzy ñ", "--map", str(files / "l.xml"), "--at", "3,5,180"])
    actions, pose, _ = capsys.readouterr().out.split("\t")
    assert set(actions.split()) <= {"forward", "left", "right", "stop"}
    assert pose.startswith("3,")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"actions": np.array([0, 9, 0])}, "more.npz has 10 actions, but this agent has 2 actions"),
        ({"actions": np.array([0, -1, 0])}, "{}: actions must be whole numbers from 0 to 999"),
        ({"actions": np.array([0, 10**9, 0])}, "{}: actions must be whole numbers from 0 to 999"),
        ({"actions": np.array([0, 1.5, 0])}, "{}: actions must be whole numbers from 0 to 999"),
        ({"actions": np.array([0, 1])}, "{}: pixels must be (steps, height, width, channels) in 8 bits"),
        ({"pixels": np.full((3, 56, 56, 3), np.nan)}, "{}: pixels must be (steps, height, width, channels) in 8 bits"),
        ({"pixels": np.zeros((3, 56, 56, 1), np.uint8)}, "{folder}: all images must have one size"),
    ],
)
def test_episodes(arrays: dict, message: str, runs: Path, files: Path, tmp_path: Path, fails: Fails) -> None:
    for number in range(2):
        write_episode(tmp_path / f"{number}.npz")
    write_episode(tmp_path / "more.npz", **arrays)
    told = fails("eval", runs / "control", "--data", tmp_path)
    assert told.startswith(message.format(tmp_path / "more.npz", folder=tmp_path))


@pytest.mark.skipif(find_spec("minigrid") is None, reason="minigrid is not installed")
def test_worlds(runs: Path, fails: Fails, failures: Failures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = fails("run", runs / "control", "babyai/GoToLocal", "--width", "100000000")
    assert wide == "the width of a beam can be at most 1,000, not 100,000,000"
    eval_in = ["eval", runs / "control", "--world", "babyai/GoToLocal"]
    many = fails(*eval_in, "--episodes", "100000000000")
    assert many == "episodes is 100,000,000,000, but can be at most 1,000,000"
    assert fails(*eval_in, "--picture", "none/a.gif") == "could not write none/a.gif: there is no folder none"
    (told,) = failures("run", runs / "control", "nowhere")
    assert told.startswith("foveate: unknown world 'nowhere'; known: babyai/")
    q = ["train", "control", "--objective", "q", *SMALL, "--out", tmp_path / "run"]
    assert fails(*q).startswith("Q-learning takes a world and no recordings: --objective q --world")
    assert fails(*q, "--world", "nowhere").startswith("unknown world 'nowhere'; known: babyai/")
    monkeypatch.setitem(sys.modules, "minigrid", None)
    grid_levels._gymnasium.cache_clear()
    told = "worlds of minigrid and BabyAI need minigrid: pip install 'foveate[worlds]'"
    assert failures("run", runs / "control", "babyai/GoToLocal") == [f"foveate: babyai/GoToLocal: {told}"]
    assert fails(*q, "--world", "minigrid/Empty-5x5") == told
    grid_levels._gymnasium.cache_clear()
