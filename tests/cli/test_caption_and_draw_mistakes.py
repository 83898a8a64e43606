"""What a user may get wrong with captions and drawings: status 2 and one line; other files are answered."""

import json
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest

from foveate.cli import main

Fails = Callable[..., str]

STEPS = ["--steps", "2", "--batch", "4", "--average", "1", "--threads", "1", "--validation-examples", "2"]

SMALL = ["--architecture.width", "8", "--architecture.embedding", "8"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty images of 8 x 8 pixels, red or blue, with captions."""
    folder = tmp_path_factory.mktemp("captions")
    lines = []
    for number in range(40):
        colour = ("red", "blue")[number % 2]
        image = PIL.Image.new("RGB", (8, 8), colour)
        image.putpixel((0, 0), (number, 0, 0))  # equal images are on one side
        image.save(folder / f"{number}.png")
        lines.append(f"{number}.png\ta {colour} square\n")
    (folder / "captions.tsv").write_text("".join(lines))
    return folder / "captions.tsv"


@pytest.fixture(scope="module")
def captioner(table: Path) -> Path:
    folder = table.parent / "captioner"
    main(["train", "caption", "--data", str(table), "--out", str(folder), *STEPS, *SMALL])
    return folder


@pytest.fixture(scope="module")
def drawer(table: Path) -> Path:
    folder = table.parent / "drawer"
    layers = ["--architecture.layers", "1", "--architecture.heads", "2", "--architecture.feedforward", "8"]
    main(["train", "draw", "--data", str(table), "--out", str(folder), *STEPS, *SMALL, *layers])
    return folder


@pytest.mark.parametrize("task", ["caption", "draw"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gone.png\ta dog", "line 41: there is no file "),
        ("0.png\t", "line 41: the caption is empty"),
        ("0.png\t" + 500 * "dogs ", "line 41: a caption of 2,499 characters; at most 2,000 are read"),
        ("0.png a dog", "line 41: 0 tabs, but a line must be path<TAB>caption"),
    ],
)
def test_lines_of_a_table(fails: Fails, table: Path, task: str, line: str, message: str) -> None:
    bad = table.with_name("bad.tsv")
    bad.write_text(table.read_text() + line + "\n")
    out = table.with_name("out")
    assert fails("train", task, "--data", bad, "--out", out).startswith(f"{bad}, {message}")
    assert not out.exists()


def test_captions_of_coco(fails: Fails, table: Path) -> None:
    file = table.with_name("coco.json")
    file.write_text("[")
    assert "coco.json" in fails("train", "caption", "--data", file)
    file.write_text('{"annotations": []}')
    assert "is not a file of COCO captions: it has no images" in fails("train", "caption", "--data", file)
    annotations = [{"image_id": 1, "caption": "a dog"}]
    file.write_text(json.dumps({"images": [{"id": 1, "file_name": "gone.png"}], "annotations": annotations}))
    assert fails("train", "caption", "--data", file).startswith(f"{file} lists the image gone.png, which is ")
    file.write_text(json.dumps({"images": [], "annotations": []}))
    assert fails("train", "caption", "--data", file) == f"{file}: there is no captioned image in it"


def test_images_to_describe(fails: Fails, captioner: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(captioner), str(tmp_path / "gone.png")])
    assert (ended.value.code, capsys.readouterr().err) == (2, f"foveate: there is no file {tmp_path / 'gone.png'}\n")
    assert fails("run", captioner, tmp_path) == f"{tmp_path} has no images"
    (tmp_path / "a.png").write_text("no image")
    PIL.Image.new("RGB", (9, 5)).save(tmp_path / "b.png")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(captioner), str(tmp_path)])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert "a.png cannot be read as an image" in err
    assert "b.png" in out + err


def test_captions_in_a_script_that_the_model_lacks(captioner: Path, table: Path, capsys: pytest.CaptureFixture) -> None:
    greek = table.with_name("greek.tsv")
    greek.write_text("0.png\tκόκκινο μήλο\n", encoding="utf-8")
    main(["eval", str(captioner), "--data", str(greek)])
    out, err = capsys.readouterr()
    assert "the model has no word for 100 % of the tokens of these captions, which it cannot write" in out + err


@pytest.mark.parametrize(
    ("caption", "message"),
    [
        ("a reed square", "the model never saw the word 'reed' in a caption; did you mean red"),
        ("κόκκινο", "the model never saw the word 'κόκκινο' in a caption"),
        (300 * "red ", "takes 302 positions, but the model learned only"),
    ],
)
def test_captions_to_draw(
    drawer: Path, tmp_path: Path, caption: str, message: str, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "drawing.png"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(drawer), caption, "--out", str(out)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_an_empty_caption_stays_empty(drawer: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    main(["run", str(drawer), "", "--out", str(tmp_path / "drawing.png")])
    out, err = capsys.readouterr()
    assert (out, err) == ("\n", "1 empty line stays empty\n")
    assert not (tmp_path / "drawing.png").exists()
