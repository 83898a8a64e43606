"""Answers to questions about images: training, the folder, `foveate run`'s arguments, measures, baselines, glimpses."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate import tasks
from foveate.data.dataset import Dataset
from foveate.data.images.questions import ImageQuestion
from foveate.data.sources import Splits
from foveate.errors import UserError
from foveate.tasks.answer import AnswerTask, Questions
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training
from foveate.tasks.looking import add_question, open_model, read_input
from foveate.tasks.protocols import NoOptions

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
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "answer"
    task = AnswerTask(
        out=out,
        model="show-ask-tiny",
        examples=Questions(batch=16, validation_examples=8),
        training=Training(steps=90, learning_rate=1e-2, schedule="constant", warmup=5, validate_every=90, average=1),
        architecture={"width": 16, "embedding": 16, "hidden": 16, "classifier": 32, "dropout": 0.0},
    )
    task.learn(Splits(questions("train", 64, 1), questions("dev", 8, 2), questions("test", 8, 3)))
    return tasks.load(out)


def test_it_has_learned_where_to_look(predictor: Predictor) -> None:
    """Without an image, a third is right."""
    examples = [*questions("test", 40, 4)]
    measured = predictor.task.measure(predictor, examples, NoOptions())
    assert measured.metrics["accuracy"] > 66
    assert min(measured.metrics["left"], measured.metrics["right"]) > 50
    assert measured.metrics["uniform_in_box"] == pytest.approx(100 * 48 / 256)
    assert "attention_in_box" in measured.metrics


def test_images_and_questions_of_the_command_line(
    predictor: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    asked = predictor.expand([str(place), "what is left?", "what is right?", "none.png\twhat is left?"])
    assert asked == [f"{place}\twhat is left?", f"{place}\twhat is right?", "none.png\twhat is left?"]
    answers = predictor.answer(asked, NoOptions())
    assert answers[0].line == f"{place}\twhat is left?\t{answers[0].text}\t{answers[0].probability:.3f}"
    assert answers[0].text in COLOURS
    assert answers[2].line == ""
    assert "there is no file none.png" in capsys.readouterr().err
    titles = [axes.get_title() for axes in predictor.picture(answers[0]).axes]
    assert titles == ["", "glimpse 1", "glimpse 2"]
    with pytest.raises(UserError, match="no question: give an image and a question"):
        predictor.expand([str(place)])


def test_baselines_by_hand(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training has "left" with red, green, red and "right" with blue; "what is up?" is new, so that red is said."""
    learn = [question(*one, number) for number, one in enumerate([("red", "red", "left"), ("green", "red", "left")])]
    learn += [question("red", "red", "left", 2), question("red", "blue", "right", 3)]
    monkeypatch.setattr(AnswerTask, "open", lambda self: (learn, learn))
    monkeypatch.setattr(predictor.processor, "answers", {"blue": 1, "green": 1, "red": 2})
    asked = [question("red", "red", "left", 4), question("red", "red", "right", 5), question("red", "blue", "right", 6)]
    found = predictor.task.baselines(predictor, asked, NoOptions())
    assert found["the most frequent answer"] == pytest.approx({"accuracy": 200 / 3, "left": 100, "right": 50})
    assert found["the question alone"] == pytest.approx({"accuracy": 200 / 3, "left": 100, "right": 50})


def test_a_look_shows_the_question_over_the_places(predictor: Predictor, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    viewer = open_model(predictor.task.out)
    assert viewer.takes == "question"
    given = add_question(read_input(str(place), viewer.takes), "what is left?", viewer.takes)
    result = viewer.look(given, 4096)
    assert result.sight.sites == ["glimpses.0", "glimpses.1"]
    assert len(result.document().sites) == 2
    assert result.title == "image.png: what is left?"
    assert result.notes[1].startswith("Answer: ")
    assert result.tokens["glimpses.0"][0] == ["what is left?"]


def test_a_look_needs_a_question(predictor: Predictor, tmp_path: Path) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    given = read_input(str(place), "question")
    with pytest.raises(UserError, match="no question: give one after the image"):
        add_question(given, None, "question")
    with pytest.raises(UserError, match="no question is asked about the image"):
        open_model(predictor.task.out).look(given, 4096)
    with pytest.raises(UserError, match="reads one input, but 'more' follows it"):
        add_question("some text", "more", "text")


def test_a_training_begins_with_the_image_encoder_of_another_run(predictor: Predictor) -> None:
    task = AnswerTask(model="smem-vqa-tiny", start=predictor.task.out)
    model = task.build(vocabulary=5, classes=3, channels=3, image_size=16)
    wanted, found = (one.places.encoder.state_dict() for one in (predictor.model, model))
    assert all(torch.equal(wanted[name], tensor) for name, tensor in found.items())
    assert task.identity()["start"] == str(predictor.task.out)


def test_an_image_without_a_question_is_reported_and_the_others_are_answered(
    predictor: Predictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "image.png"
    question("red", "blue", "left", 0).read().save(place)
    found = predictor.answer([f"{place}\t ", f"{place}\twhat is left?"], NoOptions())
    assert (found[0].line, found[1].text in COLOURS) == ("", True)
    assert f"no question about {place}" in capsys.readouterr().err
