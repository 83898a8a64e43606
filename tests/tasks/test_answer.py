"""Answers to questions about images: training, the folder, `foveate run`'s arguments, measures, baselines, glimpses."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.images.questions import ImageQuestion
from foveate.data.sources.splits import Splits
from foveate.errors import UserError
from foveate.forms.answers import Failure
from foveate.forms.label import ShowLabels
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.loading import recipe as make_recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import add_question, open_model, read_input
from foveate.training import Training

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}


def question(left: str, right: str, side: str, number: int) -> ImageQuestion:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[4:12, 1:7], pixels[4:12, 9:15] = COLOURS[left], COLOURS[right]
    at = 1 / 16 if side == "left" else 9 / 16
    return ImageQuestion(
        f"image {number}",
        f"what is {side}?",
        left if side == "left" else right,
        lambda: PIL.Image.fromarray(pixels),
        str(number),
        kind=side,
        box=(at, 4 / 16, at + 6 / 16, 12 / 16),
        composed=True,
    )


def questions(name: str, count: int, seed: int) -> Dataset[ImageQuestion]:
    generator, names = np.random.default_rng(seed), [*COLOURS]
    drawn = generator.integers(0, [3, 3, 2], size=(count, 3)).tolist()
    found = [question(names[a], names[b], ["left", "right"][c], number) for number, (a, b, c) in enumerate(drawn)]
    return Dataset(name, found, "questions")


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "answer"
    chosen = make_recipe(
        "answer",
        out=out,
        model="show-ask-tiny",
        batch=16,
        validation_examples=8,
        training=Training(steps=90, learning_rate=1e-2, schedule="constant", warmup=5, validate_every=90, average=1),
        architecture={"width": 16, "embedding": 16, "hidden": 16, "classifier": 32, "dropout": 0.0},
    )
    learn(chosen, Splits(questions("train", 64, 1), questions("dev", 8, 2), questions("test", 8, 3)))
    return foveate.load(out)


def test_it_has_learned_where_to_look(skill: Skill) -> None:
    """Without an image, a third is right."""
    examples = [*questions("test", 40, 4)]
    _, metrics = skill.measure(examples, ShowLabels())
    assert metrics["accuracy"] > 66
    assert min(metrics["left"], metrics["right"]) > 50
    assert metrics["uniform_in_box"] == pytest.approx(100 * 48 / 256)
    assert "attention_in_box" in metrics


def test_images_and_questions_of_the_command_line(
    skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    asked = skill.expand([str(place), "what is left?", "what is right?", "none.png\twhat is left?"])
    assert asked == [f"{place}\twhat is left?", f"{place}\twhat is right?", "none.png\twhat is left?"]
    answers = skill.answer(asked)
    assert answers[0].line == f"{place}\twhat is left?\t{answers[0].label}\t{answers[0].probability:.3f}"
    assert answers[0].label in COLOURS
    assert answers[2].line == ""
    assert answers[2].reason == "there is no file none.png"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(skill.folder), *asked, "--picture", str(tmp_path / "look.png")])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == f"{answers[0].line}\n{answers[1].line}\n\n"
    assert "there is no file none.png" in err
    assert (tmp_path / "look.png").stat().st_size > 1000
    titles = [axes.get_title() for axes in skill.picture(answers[0]).axes]
    assert titles == ["", "glimpse 1", "glimpse 2"]
    with pytest.raises(UserError, match="no question: give an image and a question"):
        skill.expand([str(place)])


def test_baselines_by_hand(skill: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training has "left" with red, green, red and "right" with blue; "what is up?" is new, so that red is said."""
    learn = [question(*one, number) for number, one in enumerate([("red", "red", "left"), ("green", "red", "left")])]
    learn += [question("red", "red", "left", 2), question("red", "blue", "right", 3)]
    monkeypatch.setattr(Skill, "train_examples", lambda self: Dataset("learn", learn))
    monkeypatch.setattr(skill.processor.writes, "labels", {"blue": 1, "green": 1, "red": 2})
    asked = [question("red", "red", "left", 4), question("red", "red", "right", 5), question("red", "blue", "right", 6)]
    found = skill.baselines(asked, ShowLabels())
    assert found["the most frequent answer"] == pytest.approx({"accuracy": 200 / 3, "left": 100, "right": 50})
    assert found["the question alone"] == pytest.approx({"accuracy": 200 / 3, "left": 100, "right": 50})


def test_a_look_shows_the_question_over_the_places(skill: Skill, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    viewer = open_model(skill.folder)
    assert viewer.takes == "question"
    given = add_question(read_input(str(place), viewer.takes), "what is left?", viewer.takes)
    result = viewer.look(given, 4096)
    assert result.sight.sites == ["glimpses.0", "glimpses.1"]
    assert len(result.document().sites) == 2
    assert result.title == "image.png: what is left?"
    assert result.notes[1].startswith("Answer: ")
    assert result.tokens["glimpses.0"][0] == ["what is left?"]


def test_a_look_needs_a_question(skill: Skill, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    given = read_input(str(place), "question")
    with pytest.raises(UserError, match="no question: give one after the image"):
        add_question(given, None, "question")
    with pytest.raises(UserError, match="no question is asked about the image"):
        open_model(skill.folder).look(given, 4096)
    with pytest.raises(UserError, match="reads one input, but 'more' follows it"):
        add_question("some text", "more", "text")


def test_a_training_begins_with_the_image_encoder_of_another_run(skill: Skill) -> None:
    lesson = Lesson(find_task("answer"), make_recipe("answer", model="smem-vqa-tiny", start=skill.folder))
    model = lesson.build(vocabulary=5, classes=3, channels=3, image_size=16)
    wanted, found = (one.places.encoder.state_dict() for one in (skill.model, model))
    assert all(torch.equal(wanted[name], tensor) for name, tensor in found.items())
    assert lesson.identity()["start"] == str(skill.folder)


def test_an_image_without_a_question_is_reported_and_the_others_are_answered(
    skill: Skill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    found = skill.answer([f"{place}\t ", f"{place}\twhat is left?"])
    assert isinstance(found[0], Failure)
    assert (found[0].line, found[1].label in COLOURS) == ("", True)
    assert found[0].reason == f"no question about {place}"


def test_questions_about_one_image_are_on_one_side() -> None:
    task, (one, other) = find_task("answer"), (question("red", "blue", side, 3) for side in ("left", "right"))
    assert task.reads.ties(one)["image"] == task.reads.ties(other)["image"]
