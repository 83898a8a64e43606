"""`foveate look`: the page that it writes, and the one line for what goes wrong."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from small import Trained

from foveate.cli import main
from foveate.sight.measured_look import MEASURES
from foveate.tasks.viewers import open_model
from foveate.viewer import Image, page
from foveate.viewer.head_figure import draw_heads
from foveate.viewer.protocol import LookResult

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

Fails = Callable[..., str]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folders.make("gpt2", tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def look(*arguments: object) -> None:
    main(["look", *map(str, arguments)])


def test_a_text(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    look(gpt2, "the keeper lit")
    *notes, last = capsys.readouterr().out.splitlines()
    assert notes == [f"GPT2LMHeadModel from {gpt2}"]
    assert last == f"wrote look.html: 6 heads at 3 sites, {Path('look.html').stat().st_size / 1e6:.1f} MB"
    found = page.read("look.html")
    assert found.title == "the keeper lit"
    assert [panel.name for panel in found.sites if not panel.rollout] == [
        f"transformer.h.{layer}.attn" for layer in range(3)
    ]
    assert list(found.sites[0].keys.labels) == ["the", "keeper", "lit"]
    assert np.allclose(found.sites[2].rows.weights.sum(2), 1, atol=1e-3)


def test_a_translator(trained: Trained, capsys: pytest.CaptureFixture) -> None:
    look(trained.folder, "red cat", "--out", "cat.html", "--title", "A <red> cat")
    assert "Output: " in capsys.readouterr().out
    found = page.read("cat.html")
    assert found.title == "A <red> cat"
    assert list(found.sites[0].keys.labels)[-1] == "¶"


def test_a_file_and_standard_input(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("poem.txt").write_text("the lamp\n", encoding="utf-8")
    look(gpt2, "poem.txt", "--out", "file.html", "--sites", "*.0.attn", "*.2.attn")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the lamp\n")))
    look(gpt2, "-", "--out", "input.html", "--sites=*.0.attn")
    file, given = page.read("file.html"), page.read("input.html")
    assert [panel.name for panel in file.sites] == ["transformer.h.0.attn", "transformer.h.2.attn"]
    assert [panel.name for panel in given.sites] == ["transformer.h.0.attn"]
    assert list(file.sites[0].keys.labels) == ["the", "lamp", "\n"]
    assert np.array_equal(file.sites[0].rows.weights, given.sites[0].rows.weights)


def test_an_image(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tiny_folders.make("vit", tmp_path_factory.mktemp("models"))
    Path("square.png").write_bytes(tiny_folders.picture().data)
    look(folder, "square.png")
    side = page.read("look.html").sites[0].keys
    assert isinstance(side.picture, Image)
    assert (side.picture.height, side.picture.width) == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MODEL"], "Missing from foveate look: INPUT"),
        (["missing", "x"], "there is no folder missing, nor trained weights of this name"),
        (
            ["MODEL", "x", "--sites", "decoder*"],
            "no module that attends has a path like decoder*; modules that attend: transformer.h.0.attn, tr",
        ),
        (["MODEL", "x", "--out", "missing/look.html"], "could not write missing/look.html: there is no folder missing"),
        (["MODEL", "x", "--out", "."], "could not write .: it is a folder"),
        (["MODEL", "the lamp", "--max-tokens", "1"], "the text has 2 tokens, but the limit is 1"),
        (["MODEL", "x", "--max-tokens", "0"], "max_tokens is 0, but must be at least 1"),
        (["MODEL", ""], "the text is empty: there is nothing to look at"),
        (["MODEL", "x", "--device", "cuda:77"], "device 'cuda:77' cannot be used on this machine"),
        (["MODEL", "x", "--tittle", "y"], "unknown option --tittle; did you mean --title?"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_mistakes(fails: Fails, gpt2: Path, arguments: list[str], message: str) -> None:
    assert fails("look", *(gpt2 if each == "MODEL" else each for each in arguments)).startswith(message)
    assert not list(Path().iterdir())


def test_a_full_disk(fails: Fails, gpt2: Path, full_disk: Callable) -> None:
    Path("look.html").write_text("older")
    with full_disk(3000):
        message = fails("look", gpt2, "x")
    assert message == "could not write look.html in .: File too large"
    assert Path("look.html").read_text() == "older"


def test_a_page_of_several_measures(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    """Each has its sites; those of weights are the page's first, and sizes are counted once."""
    look(gpt2, "the keeper lit the lamp", "--measure", *MEASURES)
    assert "6 heads at 3 sites" in capsys.readouterr().out
    found = page.read("look.html")
    assert [*dict.fromkeys(panel.shows for panel in found.sites)] == [*MEASURES]
    for measure in ("weights", "without-sinks", "values", "gradients"):
        own = [panel for panel in found.sites if panel.shows == measure and not panel.rollout]
        assert [panel.name for panel in own] == [f"transformer.h.{layer}.attn" for layer in range(3)]
    (relevance,) = [panel for panel in found.sites if panel.shows == "relevance"]
    assert relevance.name == "transformer.h.*.attn"
    assert relevance.heads == 1
    look(gpt2, "the keeper lit the lamp", "--measure", "gradients", "--out", "one.html")
    assert {panel.shows for panel in page.read("one.html").sites} == {"gradients"}


def test_measures_of_two_texts(gpt2: Path) -> None:
    look(gpt2, "the keeper lit", "--beside", "the lamp", "--measure", "weights", "values", "--sites", "*.1.attn")
    found = [(panel.name, panel.shows) for panel in page.read("look.html").sites]
    assert found == [(f"{each}.transformer.h.1.attn", shows) for shows in ("weights", "values") for each in "AB"]


def test_the_difference_of_two_texts(fails: Fails, gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    look(gpt2, "the keeper lit the lamp", "--beside", "the keeper saw the lamp", "--measure", "weights", "difference")
    assert "Difference: the weights of B less those of A" in capsys.readouterr().out
    found = [panel for panel in page.read("look.html").sites if panel.shows == "difference"]
    assert [panel.name for panel in found] == [f"transformer.h.{layer}.attn" for layer in range(3)]
    assert np.allclose(found[0].rows.weights.sum(-1), 0, atol=1e-3)
    assert (found[0].rows.weights < 0).any()
    assert fails("look", gpt2, "x", "--measure", "difference").startswith("--measure difference needs --beside")


def test_two_texts_beside_each_other(gpt2: Path, capsys: pytest.CaptureFixture) -> None:
    """Each has its sites and its tokens; what is said of both is said once."""
    look(gpt2, "the keeper lit", "--beside", "the lamp")
    *notes, last = capsys.readouterr().out.splitlines()
    assert notes == [f"GPT2LMHeadModel from {gpt2}"]
    assert last.startswith("wrote look.html: 12 heads at 6 sites")
    found = page.read("look.html")
    assert found.title == "A: the keeper lit · B: the lamp"
    sites = {panel.name: panel for panel in found.sites if not panel.rollout}
    assert list(sites) == [f"{each}.transformer.h.{layer}.attn" for each in "AB" for layer in range(3)]
    assert list(sites["A.transformer.h.1.attn"].keys.labels) == ["the", "keeper", "lit"]
    look(gpt2, "the lamp", "--out", "alone.html")
    alone = page.read("alone.html").sites[1]
    beside = sites["B.transformer.h.1.attn"]
    assert list(beside.keys.labels) == list(alone.keys.labels) == ["the", "lamp"]
    assert np.array_equal(beside.rows.weights, alone.rows.weights)


def test_two_models_beside_each_other(
    gpt2: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture
) -> None:
    other = tiny_folders.make("bert", tmp_path_factory.mktemp("models"))
    look(gpt2, "the lamp", "--beside", other, "--title", "Two")
    told = capsys.readouterr().out
    assert f"A: GPT2LMHeadModel from {gpt2}" in told
    assert re.search(rf"^B: Bert\w+ from {other}", told, re.M)
    found = page.read("look.html")
    assert found.title == "Two"
    assert {panel.name[0] for panel in found.sites} == {"A", "B"}


def test_mistakes_with_two(fails: Fails, gpt2: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    vit = tiny_folders.make("vit", tmp_path_factory.mktemp("models"))
    told = fails("look", gpt2, "the lamp", "--beside", vit)
    assert told == f"{vit} reads another kind of input (image) than the first (text)"
    assert fails("look", gpt2, "the lamp", "--beside", "").startswith("the text is empty")
    assert fails("look", gpt2, "the lamp", "--beside", "lamp " * 5000).endswith("has positions for 83")
    Path("lamp.txt").write_text("the lamp", encoding="utf-8")
    told = fails("look", gpt2, "the lamp", "--beside", "lamp.txt", "--out", "lamp.txt")
    assert told == "lamp.txt is what the model is to read: name another --out"
    assert [path.name for path in Path().iterdir()] == ["lamp.txt"]


VISION = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
VISION |= {"image_size": 24, "patch_size": 8}
WORDS = {**VISION, "vocab_size": 53, "max_position_embeddings": 16, "eos_token_id": 2}
PAIR = {"text_config": WORDS, "vision_config": VISION}
GPT = {"vocab_size": 53, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("kind", "config", "given", "sites"),
    [
        ("OpenAIGPTLMHead", GPT, ["5 17 9"], ["transformer.h.0.attn", "transformer.h.1.attn"]),
        ("CLIP", PAIR, ["square.png", "5 17 9"], ["text_model", "text_model", "vision_model", "vision_model"]),
        ("Siglip", PAIR, ["square.png", "5 17 9"], ["text_model"] * 2 + ["vision_model"] * 3),
        ("DINOv3ViT", VISION, ["square.png"], ["model.layer.0.attention", "model.layer.1.attention"]),
    ],
)
def test_public_folders(kind: str, config: dict, given: list[str], sites: list[str]) -> None:
    transformers = pytest.importorskip("transformers")
    made = getattr(transformers, f"{kind.removesuffix('LMHead')}Config")(**config)
    getattr(transformers, f"{kind}Model")(made).save_pretrained("folder")
    Path("square.png").write_bytes(tiny_folders.picture().data)
    look("folder", *given)
    shown = [panel for panel in page.read("look.html").sites if not panel.rollout]
    names = sorted(panel.name for panel in shown)
    assert all(name.startswith(site) for name, site in zip(names, sites, strict=True))
    assert all(len(panel.rows.weights) for panel in shown)
    for panel in shown:
        if panel.name.startswith("text_model"):
            assert list(panel.keys.labels) == ["5", "17", "9"]


TEXT, PICTURE, SOUND = "the lamp", "square.png", "sound.wav"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("gpt2", TEXT),
        ("bert", TEXT),
        ("t5", TEXT),
        ("bart-classifier", TEXT),
        ("vit", PICTURE),
        ("swin", PICTURE),
        ("sam-64", PICTURE),
        ("detr", PICTURE),
        ("whisper", SOUND),
        ("wav2vec2-bert", SOUND),
    ],
)
def test_a_picture_for_every_kind_of_model(kind: str, given: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tiny_folders.make(kind, tmp_path_factory.mktemp("models"))
    Path(PICTURE).write_bytes(tiny_folders.picture().data)
    Path(SOUND).write_bytes(tiny_folders.sound().data)
    look(folder, given, "--picture", "mean.png", "--title", "A title")
    look(folder, given, "--picture", "heads.pdf", "--heads", "0")
    assert Path("mean.png").read_bytes().startswith(b"\x89PNG")
    assert Path("heads.pdf").read_bytes().startswith(b"%PDF")


def test_heads_of_two_looks_are_one_figure(gpt2: Path) -> None:
    """Two heads of each of two texts, with texts that stay texts."""
    look(gpt2, "the lamp", "--beside", "the moon", "--picture", "four.svg", "--heads", "0", "1", "--sites", "*.1.attn")
    drawn = Path("four.svg").read_text(encoding="utf-8")
    for head in (0, 1):
        for text in ("the lamp", "the moon"):
            assert f"transformer.h.1.attn, head {head}, {text}" in drawn


def test_heads_as_running_text(gpt2: Path) -> None:
    """A line for each token that looks; the darkest place of each is that of the largest weight."""
    look(gpt2, "the lamp the moon", "--picture", "text.svg", "--running-text", "--sites", "*.1.attn")
    drawn = Path("text.svg").read_text(encoding="utf-8")
    viewed = open_model(gpt2).look("the lamp the moon", 99, ["*.1.attn"])
    figure = draw_heads([viewed], running_text=True)
    (axes,) = figure.axes  # type: ignore[attr-defined]
    weights = viewed.sight["transformer.h.1.attn"].weights()[0].mean(0)
    boxes: list[Any] = [*axes.patches]
    assert len(boxes) == weights.numel()
    assert "transformer.h.1.attn" in drawn
    lightness = np.array([sum(patch.get_facecolor()[:3]) for patch in boxes]).reshape(weights.shape)
    darkest = np.take_along_axis(lightness, weights.argmax(1, keepdim=True).numpy(), 1)[:, 0]
    assert (darkest == lightness.min(1)).all()
    assert (darkest < lightness.max(1)).sum() >= len(weights) - 1  # the first token sees itself alone
    lines = [round(patch.get_y(), 3) for patch in boxes]
    assert len(set(lines)) == len(weights)
    assert lines == sorted(lines)


def test_a_marian_is_drawn_as_running_text(tmp_path: Path) -> None:
    folder = tmp_path / "marian"
    pytest.importorskip("translators").TRANSLATORS["marian"].write(folder)
    look(folder, "the lamp", "--picture", "text.svg", "--running-text", "--heads", "0", "1")
    drawn = Path("text.svg").read_text(encoding="utf-8")
    assert drawn.count("head 0") == drawn.count("head 1") == 1


def test_pictures_that_cannot_be(fails: Fails, gpt2: Path) -> None:
    assert fails("look", gpt2, "x", "--heads", "1").startswith("--heads are drawn by --picture: name a file for it")
    assert fails("look", gpt2, "x", "--running-text").startswith("--running-text is drawn by --picture: name a file")
    given = (gpt2, "x", "--picture", "a.png")
    assert "there is no head 7 among" in fails("look", *given, "--heads", "7")
    beside = ("--beside", "y", "--measure", "difference")
    assert fails("look", *given, *beside).startswith("--picture draws no difference, which the page shows")


def test_heads_of_two_images_are_over_their_own_image(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tiny_folders.make("vit", tmp_path_factory.mktemp("models"))
    model, files = open_model(folder), [tiny_folders.picture(), tiny_folders.picture(90, 30)]
    looks = [model.look(file, 4096) for file in files]
    figure = draw_heads(looks, [0])
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    side = [page_image(look) for look in looks]
    assert [np.array_equal(shown[place], side[row]) for row, place in enumerate((0, len(shown) // 2))] == [True, True]
    assert not np.array_equal(*side)


def page_image(look: LookResult) -> np.ndarray:
    """The image of a look's page."""
    picture = look.document().sites[-1].keys.picture
    assert isinstance(picture, Image)
    return np.asarray(PIL.Image.open(io.BytesIO(picture.data)).convert("RGB"))


def test_a_file_is_what_its_name_says(gpt2: Path, fails: Fails) -> None:
    """A page, or the picture that --picture draws, or one clear error: never a page in a file called .png."""
    given = (gpt2, "the keeper lit the lamp")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}
    for ending, begin in begins.items():
        for verb in ("look", "effect"):
            main([verb, *map(str, given), "--out", f"{verb}.{ending}"])
            assert Path(f"{verb}.{ending}").read_bytes().startswith(begin)
    main(["look", *map(str, given), "--out", "page.html", "--picture", "heads.png"])
    assert Path("heads.png").read_bytes() == Path("look.png").read_bytes()
    for verb in ("look", "effect"):
        message = fails(verb, *given, "--out", "look.jpeg2")
        assert message == "look.jpeg2 must end in .html for a page, or in .png, .svg, .pdf or .gif for a picture"
    assert "leave out --picture" in fails("look", *given, "--out", "a.png", "--picture", "b.png")
    assert fails("size", "--out", "sizes.png") == "sizes.png must end in .md"
    assert not [*Path().glob("sizes*"), *Path().glob("a.png"), *Path().glob("*.jpeg2")]
