"""The page of `foveate report`."""

import contextlib
import json
from pathlib import Path

import pytest
from small import Trained

from foveate.cli import main
from foveate.cli.report_curves import attention_curves, chosen_curves, training_rows


def told(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[str, str]:
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main([str(argument) for argument in arguments])
    return capsys.readouterr()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A training that runs: without settings, with an incomplete last line."""
    rows = [
        {"step": 10, "epoch": 1, "seconds": 6.0, "loss": 3.5, "learning_rate": 0.1, "tokens_per_second": 12.5},
        {"step": 10, "epoch": 1, "seconds": 6.5, "validation": {"bleu": 1.25, "<b>": 2.0}},
        {"step": 20, "epoch": 1, "seconds": 12.0, "loss": 1.5, "learning_rate": 0.05, "tokens_per_second": None},
        {"step": 20, "epoch": 1, "seconds": 12.5, "validation": {"bleu": 41.75, "<b>": 3.0}},
    ]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 30, "lo']))
    return tmp_path


def test_a_training_that_runs(run: Path, capsys: pytest.CaptureFixture) -> None:
    out, err = told(capsys, "report", run, "--out", run / "report.html")
    assert (out.split(",")[0], err) == (f"wrote {run / 'report.html'}: 4 rows of metrics", "")
    page = (run / "report.html").read_text()
    assert "20 steps, 1 epochs, 0.2 minutes; not ended" in page
    assert page.count("<img") == 4, "loss, learning rate and two metrics; one point makes no curve"
    assert "<td>41.75</td>" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_attention_that_was_watched(run: Path, capsys: pytest.CaptureFixture) -> None:
    for step in (10, 20):
        seen = {"encoder.0.self": {"entropy": [1.0, 2.0], "sink_share": [0.5, step / 40]}, "strange": [1]}
        row = {"step": step, "epoch": 1, "seconds": 6.0, "attention": seen}
        lines = (run / "metrics.jsonl").read_text().splitlines()
        (run / "metrics.jsonl").write_text("\n".join([*lines[:-1], json.dumps(row), lines[-1]]))
    assert attention_curves(training_rows(run)) == {
        "attention: entropy": {"encoder.0.self": ([10, 20], [1.5, 1.5])},
        "attention: sink share": {"encoder.0.self": ([10, 20], [0.375, 0.5])},
    }
    told(capsys, "report", run, "--out", run / "report.html")
    assert (run / "report.html").read_text().count("<img") == 6


def test_a_training_that_ended_with_an_answer(trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    told(capsys, "report", trained.folder, "--input", "red cat", "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "; kept: " in page
    assert "<td>red cat</td><td>rouge chat</td>" in page
    assert "<td>training.seed</td>" in page


STRANGE = [
    {"step": 1, "seconds": "x", "epoch": [1], "loss": True},
    {"step": 2, "loss": 10**400, "validation": {"bleu": "high", "\ud800": None, "chrf": 10**400}},
    {"step": 3, "loss": float("inf"), "validation": [1], "final": [1]},
    {"step": 10**400, "loss": 1.0},
    {"step": 4, "final": {"compared": [3]}},
    {"step": 5, "final": {"kept": ["x"], "compared": {"a": 5, "b": {"bleu": 1.0}}}},
    {"step": 6, "validation": {f"metric {number}": number for number in range(500)}},
    {"step": 7, "validation": {f"metric {number}": number for number in range(500)}, "seconds": float("nan")},
]


def test_rows_with_something_else_in_them(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Of what is not a number, nothing is drawn; of very many metrics, the first ones."""
    deep = '{"step": 8, "loss": ' + "[" * 100_000 + "]" * 100_000 + "}"
    (tmp_path / "metrics.jsonl").write_text("\n".join([*map(json.dumps, STRANGE), deep]))
    out, err = told(capsys, "report", tmp_path, "--out", tmp_path / "report.html")
    assert (out.split(",")[0], err) == (f"wrote {tmp_path / 'report.html'}: 7 rows of metrics", "")
    page = (tmp_path / "report.html").read_text()
    assert "7 steps, ? epochs; kept: [&#x27;x&#x27;]" in page
    assert page.count("<img") == 37, "40 names of metrics, of which three have one value or none"


def test_a_file_of_metrics_that_is_sparse(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with (tmp_path / "metrics.jsonl").open("wb") as file:
        file.truncate(10 * 2**30)
    _, err = told(capsys, "report", tmp_path, "--out", tmp_path / "report.html")
    assert err == f"foveate: {tmp_path / 'metrics.jsonl'} has 10,240 MiB; the limit is 256 MiB\n"


@pytest.mark.parametrize("text", [None, "", "no json\n", '{"no": "step"}\n'])
def test_what_is_no_training(text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    _, err = told(capsys, "report", tmp_path, "--out", tmp_path / "report.html")
    wrong = "it is not a run of foveate's" if text is None else "has no rows yet"
    assert wrong in err
    assert err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_the_curves_of_two_trainings_as_a_picture(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (other := tmp_path / "other").mkdir()
    rows = [{"step": step, "epoch": 1, "loss": 5.0 / step, "reward": step} for step in (10, 20)]
    (other / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    chosen = ("--beside", other, "--curves", "loss", "validation: bleu", "--out", tmp_path / "report.html")
    _, err = told(capsys, "report", run, *chosen, "--picture", tmp_path / "curves.png")
    assert err == ""
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "report.html").read_text().count("<img") == 2
    found = chosen_curves([run, other], [])
    assert list(found) == ["loss", "learning rate", "validation: bleu", "validation: <b>"]
    assert found["loss"] == {run.name: ([10, 20], [3.5, 1.5]), "other": ([10, 20], [0.5, 0.25])}
    assert chosen_curves([run, other], ["reward"])["reward"] == {"other": ([10, 20], [10, 20])}


def test_a_curve_that_no_training_has(run: Path, capsys: pytest.CaptureFixture) -> None:
    _, err = told(capsys, "report", run, "--curves", "kl", "--out", run / "report.html")
    assert err.startswith("foveate: no training has the curve 'kl'; there are: loss, learning rate, ")
    assert not (run / "report.html").exists()


def test_a_training_of_one_step_has_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "epoch": 1, "loss": 5.0}))
    _, err = told(capsys, "report", tmp_path, "--out", tmp_path / "curves.png")
    assert err == f"foveate: no curve to draw into {tmp_path / 'curves.png'}: nothing was measured at two steps\n"
    assert not (tmp_path / "curves.png").exists()
