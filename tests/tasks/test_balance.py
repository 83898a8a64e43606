"""Classes that are not equally frequent: what chooses checkpoints, how classes are weighed, and what is said."""

from io import StringIO
from pathlib import Path

import made_examples
import numpy as np
import pytest
import torch
import verdicts
from rich.console import Console

import foveate
from foveate.contracts import IGNORE, Batch, Output
from foveate.forms.balance import Balanced, class_metric, label_weights
from foveate.forms.form import Changes
from foveate.forms.label import Label
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import learn
from foveate.training import CrossEntropy

BALANCING = [name for name in TASKS if isinstance(find_task(name).writes, Balanced)]
"""Tasks of labels."""

SAYS_NOTHING = {"answer"}
"""Tasks whose made examples a simple way cannot tell apart: the question is the same for all images."""


@pytest.mark.parametrize(
    ("counts", "metric"),
    [
        ({}, "accuracy"),
        ({"a": 50, "b": 51}, "accuracy"),
        ({"a": 19, "b": 10, "never": 0}, "accuracy"),
        ({"a": 20, "b": 10}, "macro_f1"),
        ({"a": 950, "b": 50}, "macro_f1"),
    ],
)
def test_uneven_classes_are_measured_by_macro_f1(counts: dict[str, int], metric: str) -> None:
    assert class_metric(counts) == metric
    assert Label(labels=counts).metric == metric


def test_weights_of_classes() -> None:
    """Of 12 examples each of three classes weighs 4; what is no label weighs nothing."""
    weights = label_weights({"a": 8, "b": 1, "never": 0, "c": 3}, torch.tensor([[0, 1, 3, IGNORE]]))
    assert weights.tolist() == [[pytest.approx(4 / 8), 4.0, pytest.approx(4 / 3), 0.0]]


def test_the_loss_is_that_of_repeated_examples() -> None:
    """A weight of 3 is the same as the example three times, in the loss and in its gradient."""
    logits, labels = torch.randn(2, 1, 5), torch.tensor([[4], [1]])
    repeated = torch.cat([logits, logits[1:], logits[1:]]).requires_grad_()
    more = Batch({}, {"labels": torch.cat([labels, labels[1:], labels[1:]])}, torch.ones(4, dtype=torch.long), "")
    weighed = logits.clone().requires_grad_()
    targets = {"labels": labels, "label_weights": torch.tensor([[1.0], [3.0]])}
    losses = [
        CrossEntropy(label_smoothing=0.1)(Output(repeated), more).total,
        CrossEntropy(label_smoothing=0.1)(Output(weighed), Batch({}, targets, torch.ones(2).long(), "")).total,
    ]
    for loss in losses:
        loss.backward()
    assert losses[0].item() == pytest.approx(losses[1].item())
    assert repeated.grad is not None
    assert weighed.grad is not None
    torch.testing.assert_close(weighed.grad[1], repeated.grad[1:].sum(0))


def test_tasks_of_labels() -> None:
    assert sorted(BALANCING) == ["answer", "ask", "classify", "classify-image", "classify-sound", "pair", "tag"]


@pytest.mark.parametrize("task", BALANCING)
def test_a_setting_of_every_task_of_labels(task: str) -> None:
    assert find_task(task).recipe(data="x", balance=True).writes.balance
    assert not find_task(task).recipe(data="x").writes.balance


def rare(path: Path, count: int, every: int) -> Path:
    """Of two labels only one example in `every` has the second."""
    rows = [(label, text) for label, text in verdicts.examples(20 * count, 1) if label == "blame"][:count]
    others = [(label, text) for label, text in verdicts.examples(20 * count, 2) if label == "praise"]
    rows = [others[number] if number % every == 0 else row for number, row in enumerate(rows)]
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    return path


def test_a_model_that_answers_one_class_says_so_while_it_trains(tmp_path: Path) -> None:
    """Untrained steps at a tiny rate change nothing: all answers are the same, or none of this is said."""
    told = StringIO()
    recipe = foveate.recipe(
        "classify",
        data=rare(tmp_path / "rare.tsv", 200, 10),
        model="rnn-acceptor",
        out=tmp_path / "run",
        steps=6,
        learning_rate=3e-2,
        validate_every=3,
        warmup=0,
    )
    skill = learn(recipe, console=Console(file=told, width=200))
    assert "the model answers 'blame' for all" in told.getvalue()
    assert "macro_f1" in told.getvalue()
    assert skill.processor.writes.metric == "macro_f1"


def test_weights_reach_the_loss() -> None:
    """Those of the labels, and those of the labels that are mixed in."""
    form = Label({"a": 3, "b": 1}, balance=True)
    _, targets, _ = form.tensors([(0,), (1,)], Changes(partners=np.array([1, 0]), share=0.25), None)
    assert targets["label_weights"].flatten().tolist() == pytest.approx([2 / 3, 2])
    assert targets["mixed_label_weights"].flatten().tolist() == pytest.approx([2, 2 / 3])
    assert "label_weights" not in Label({"a": 3, "b": 1}).tensors([(0,), (1,)], Changes(), None)[1]


@pytest.mark.parametrize("name", BALANCING)
def test_every_task_of_labels_is_compared_with_what_learns_them_simply(name: str, tmp_path: Path) -> None:
    """By `eval`, and at the end of a training: one that learned nothing says that it is not above the best of them."""
    task, told = find_task(name), StringIO()
    made = made_examples.examples_of(task, tmp_path / "examples")
    recipe = task.recipe(
        data=made.data,
        validation=made.data,
        out=tmp_path / "run",
        **made.settings,
        model=min(task.presets().values(), key=lambda preset: preset.parameters).name,
        steps=1,
        epochs=None,
        learning_rate=1e-9,
        warmup=0,
        average=1,
    )
    skill = learn(recipe, console=Console(file=told, width=200))
    ways = skill.evaluate(made.data).figures["ways"]
    trivial = [way for way in ways if way.startswith(("always ", "the most frequent answer"))]
    simple = [way for way in ways if way not in (recipe.model, *trivial)]
    assert len(trivial) == 1
    assert simple
    metric = skill.processor.writes.metric
    beaten = any(ways[way][metric] > ways[trivial[0]][metric] for way in simple)
    assert beaten or name in SAYS_NOTHING
    best = max((way for way in ways if way != recipe.model), key=lambda way: ways[way][metric])
    (line,) = [line for line in told.getvalue().splitlines() if "on validation: " in line]
    assert f"not above {ways[best][metric]:.1f}, {best}" in line
