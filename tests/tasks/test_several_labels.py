"""Examples with several labels: how tables say so, what is learned, measured, answered and written back, of every task
of labels."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import foveate
from foveate.baselines.word_counts import labels_by_counting
from foveate.cli import main
from foveate.contracts import Batch, Output
from foveate.data.sounds.wav import write_wave
from foveate.data.table import LABEL, TEXT, DataTable, naming_columns
from foveate.errors import UserError
from foveate.forms.balance import several_weights
from foveate.forms.label_details import DecidedSeveral
from foveate.metrics.several_labels import several_label_metrics
from foveate.tasks import TASKS, find_task
from foveate.training import CrossEntropy
from foveate.training.mixup import MixedCrossEntropy

ROWS = [("rude|loud", "one"), ("", "two"), ("loud", "three")]


def texts(count: int) -> list[tuple[str, str]]:
    """Labels that a word each gives away, and texts; some have none, some both."""
    generator, found = random.Random(count), []
    for _ in range(count):
        labels = [label for label in ("rude", "loud") if generator.random() < 0.5]
        words = [{"rude": "stupid", "loud": "hey"}[label] for label in labels]
        others = generator.choices(["the", "film", "was", "long", "dogs", "cats"], k=4)
        found.append(("|".join(labels), " ".join(generator.sample(words + others, len(words) + 4))))
    return found


# -- tables


def test_labels_in_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in ROWS), encoding="utf-8")
    with naming_columns([], several=True):
        assert [row and row.cells for row in DataTable(path, (LABEL, TEXT))] == ROWS
    with pytest.raises(UserError, match="line 2: the label is empty"):
        list(DataTable(path, (LABEL, TEXT)))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_column_for_each_label(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    marks = [(1, 1), (0, 0), (0, 1)]
    rows = [{"id": 7, "body": text, "rude": r, "loud": o} for (_, text), (r, o) in zip(ROWS, marks, strict=True)]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    written = lines if ending == "csv" else map(json.dumps, rows)
    path.write_text("\n".join(written) + "\n", encoding="utf-8")
    with naming_columns(["label=rude,loud", "text=body"], several=True):
        assert [row and row.cells for row in DataTable(path, (LABEL, TEXT))] == ROWS
    with naming_columns(["label=rude,late"], several=True), pytest.raises(UserError, match=r"no (column )?late"):
        list(DataTable(path, (LABEL, TEXT)))
    with naming_columns(["label=rude,loud"]), pytest.raises(UserError, match=r"no (column )?rude,loud \(--several"):
        list(DataTable(path, (LABEL, TEXT)))
    with naming_columns(["label=rude,id"], several=True), pytest.raises(UserError, match="the column id says '7'"):
        list(DataTable(path, (LABEL, TEXT)))


def test_lists_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": text, "label": [*filter(None, label.split("|"))]}) for label, text in ROWS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with naming_columns([], several=True):
        assert [row and row.cells for row in DataTable(path, (LABEL, TEXT))] == ROWS
    with pytest.raises(UserError, match="line 1: the label is a list; --several reads more than one label"):
        list(DataTable(path, (LABEL, TEXT)))
    path.write_text(json.dumps({"text": "a", "label": ["x|y"]}), encoding="utf-8")
    with naming_columns([], several=True), pytest.raises(UserError, match="must be a text without"):
        list(DataTable(path, (LABEL, TEXT)))


# -- what is minimised and measured


def test_the_loss_is_that_of_torch() -> None:
    logits, holds = torch.randn(3, 5, requires_grad=True), torch.randint(0, 2, (3, 5)).float()
    weights = several_weights(dict(zip("abcde", (1, 2, 3, 4, 5), strict=True)), holds)
    targets = {"labels": holds.long(), "holds": holds, "label_weights": weights}
    loss = CrossEntropy()(Output(logits), Batch({}, targets, torch.full((3,), 5), "here"))
    positive = torch.tensor([3.0 / count for count in (1, 2, 3, 4, 5)])
    same = torch.nn.BCEWithLogitsLoss(pos_weight=positive, reduction="sum")(logits, holds)
    torch.testing.assert_close(loss.total, same)
    assert loss.log["accuracy"] == ((logits > 0) == holds.bool()).sum()


def test_mixed_examples_have_the_labels_of_both() -> None:
    logits, own, other = torch.randn(3, 5), *torch.randint(0, 2, (2, 3, 5)).float()
    targets = {"labels": own.long(), "holds": own, "mixed_labels": other.long(), "mixed_holds": other}
    batch = Batch({}, {**targets, "mixed_share": torch.full((3,), 0.3)}, torch.full((3,), 5), "here")
    same = torch.nn.BCEWithLogitsLoss(reduction="sum")(logits, 0.7 * own + 0.3 * other)
    torch.testing.assert_close(MixedCrossEntropy()(Output(logits), batch).total, same)


def f1(found: np.ndarray, right: np.ndarray) -> float:
    """The harmonic mean of precision and recall of decisions."""
    hits = (found & right).sum()
    return 2 / (found.sum() / hits + right.sum() / hits)


def test_metrics_by_precision_and_recall() -> None:
    generator, names = np.random.default_rng(1), np.array([*"abcd"])
    hot = generator.random((2, 40, 4)) < 0.4
    found, right = ([names[row].tolist() for row in side] for side in hot)
    metrics = several_label_metrics(found, right)
    assert metrics["micro_f1"] == pytest.approx(100 * f1(*hot))
    assert metrics["macro_f1"] == pytest.approx(100 * np.mean([f1(*hot[..., label]) for label in range(4)]))
    assert metrics["all_labels_right"] == pytest.approx(100 * (hot[0] == hot[1]).all(1).mean())


def test_details_and_picture(tmp_path: Path) -> None:
    shares = [{"a": 0.9, "b": 0.6}, {"a": 0.2, "b": 0.1}]
    decided = DecidedSeveral([("a", "b"), ()], [("a",), ("a",)], ["one", "two"], probabilities=shares)
    found = decided.details()
    assert [row["answered"] for row in found.figures["worst"]] == ["not a", "b"]
    assert found.figures["classes"]["a"]["recall"] == 50
    decided.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_counting_finds_several_labels() -> None:
    rows = texts(200)
    labels = [[*filter(None, label.split("|"))] for label, _ in rows]
    found = labels_by_counting([text for _, text in rows], labels, ["hey you stupid dogs", "the cats"], several=True)
    assert [*found.values()] == [[["loud", "rude"], []]]


# -- tasks


def text_table(folder: Path) -> list[str]:
    (folder / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in texts(120)), encoding="utf-8")
    return ["hey stupid film"]


def pair_table(folder: Path) -> list[str]:
    rows = "".join(f"{label}\t{text}\tthe dogs {number}\n" for number, (label, text) in enumerate(texts(120)))
    (folder / "a.tsv").write_text(rows, encoding="utf-8")
    return ["hey stupid film\tthe dogs"]


def image_table(folder: Path) -> list[str]:
    """Rude ones are red, loud ones are blue."""
    lines = []
    for number, (label, _) in enumerate(texts(60)):
        colour = (255 * ("rude" in label), number % 50, 255 * ("loud" in label))
        Image.new("RGB", (16, 16), colour).save(folder / f"{number}.png")
        lines.append(f"{number}.png\t{label}\n")
    (folder / "a.tsv").write_text("".join(lines), encoding="utf-8")
    return [str(folder / "0.png")]


def sound_table(folder: Path) -> list[str]:
    lines, seconds = [], np.arange(4000) / 8000
    for number, (label, _) in enumerate(texts(60)):
        tones = [
            (150 + number, 0.1),
            *((900, 0.3) for _ in "x" if "rude" in label),
            *((2000, 0.3) for _ in "x" if "loud" in label),
        ]
        wave = sum(size * np.sin(2 * np.pi * pitch * seconds) for pitch, size in tones)
        write_wave(folder / f"{number}.wav", wave.astype(np.float32), 8000)
        lines.append(f"{number}.wav\t{label}\n")
    (folder / "a.tsv").write_text("".join(lines), encoding="utf-8")
    return [str(folder / "0.wav")]


MADE: dict[str, tuple[Callable[[Path], list[str]], dict[str, Any]]] = {
    "classify": (text_table, {"model": "rnn-attentive-classifier", "steps": 40}),
    "pair": (pair_table, {"model": "bert-tiny", "steps": 2}),
    "classify-image": (image_table, {"model": "resnet20", "steps": 2, "size": 16}),
    "classify-sound": (sound_table, {"steps": 2}),
}


def test_every_task_of_labels_is_here() -> None:
    having = {name for name in TASKS if "several" in find_task(name).recipe().as_json()["writes"]}
    assert having == MADE.keys()


@pytest.mark.parametrize("name", MADE)
def test_every_task(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, settings = MADE[name]
    given = make(tmp_path)
    settings = {"validate_every": 20, "save_every": 20, "balance": True, **settings}
    recipe = foveate.recipe(name, data=tmp_path / "a.tsv", several=True, out=tmp_path / "run", **settings)
    skill = foveate.train(recipe)
    assert "macro_f1" in (tmp_path / "run" / "metrics.jsonl").read_text()
    capsys.readouterr()
    main(["run", str(tmp_path / "run"), *given, "--json"])
    answer = json.loads(capsys.readouterr().out.splitlines()[0])
    assert answer["labels"] == [label for label, share in skill.run(*given).probabilities.items() if share >= 0.5]
    main(["eval", str(tmp_path / "run"), "--data", str(tmp_path / "a.tsv"), "--json", "--details"])
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert all({"macro_f1", "micro_f1", "all_labels_right"} <= metrics.keys() for metrics in ways.values())
    if name == "classify":
        assert ways["rnn-attentive-classifier"]["macro_f1"] > ways["always loud"]["macro_f1"] + 10
        assert "TF-IDF of words and pairs, logistic regression" in ways


def test_written_for_transformers_and_read_back(tmp_path: Path) -> None:
    text_table(tmp_path)
    recipe = foveate.recipe(
        "classify", data=tmp_path / "a.tsv", several=True, model="bert-tiny", steps=1, out=tmp_path / "run"
    )
    skill = foveate.train(recipe)
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "public")])
    config = transformers.AutoConfig.from_pretrained(tmp_path / "public")
    assert config.problem_type == "multi_label_classification"
    pipe = transformers.pipeline("text-classification", str(tmp_path / "public"), top_k=None, device="cpu")
    shares = {row["label"]: row["score"] for row in pipe("hey stupid film")[0]}
    assert shares == pytest.approx(skill.run("hey stupid film").probabilities, abs=5e-5)
    public = foveate.load(tmp_path / "public")
    assert public.run("hey stupid film").probabilities == pytest.approx(shares, abs=5e-5)
    assert "micro_f1" in public.evaluate([tmp_path / "a.tsv"]).figures["ways"]["bert"]
