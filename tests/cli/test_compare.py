"""`foveate compare` and `train --seeds`: what is refused, and what is printed."""

from pathlib import Path

import pytest

from foveate.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classifiers that learned from the same texts, and one from others."""
    folder = tmp_path_factory.mktemp("compared")
    lines = [f"{label}\t{label} film {place % 7} of {place % 5}" for place in range(60) for label in ("good", "poor")]
    (folder / "films.tsv").write_text("\n".join(lines))
    (folder / "books.tsv").write_text("\n".join(lines).replace("film", "book"))
    for name, data, width in (("a", "films", 16), ("b", "films", 24), ("other", "books", 16)):
        train(folder / data, folder / name, "--architecture.width", str(width))
    return folder


def train(data: Path, out: Path, *more: str) -> None:
    short = ("--steps", "2", "--validate-every", "2", "--save-every", "2", "--model", "rnn-attentive-classifier")
    main(["train", "classify", "--data", f"{data}.tsv", "--out", str(out), *short, *more])


def test_figures_settings_and_verdict(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", str(runs / "a"), str(runs / "b")])
    out = capsys.readouterr().out
    assert "architecture.width" in out
    assert "16" in out
    assert "24" in out
    assert "training.seed" not in out
    assert "on the examples that validated" in out.replace("\n", " ")
    assert "b and a: the difference may be chance" in out or "b is" in out


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("a",), "two runs or more"),
        (("a", "other"), "learned from different data: give --data"),
        (("a", "none"), "none"),
    ],
)
def test_what_cannot_be_compared(
    runs: Path, names: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *(str(runs / name) for name in names)])
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_other_data_when_they_are_given(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", str(runs / "a"), str(runs / "other"), "--data", str(runs / "books.tsv")])
    assert "120 texts" in capsys.readouterr().out
    (runs / "split").mkdir()
    for part, count in (("train", 100), ("test", 10)):
        (runs / "split" / f"{part}.tsv").write_text("good\tgood film 1\npoor\tpoor film 2\n" * count)
    main(["compare", str(runs / "a"), str(runs / "other"), "--data", str(runs / "split")])
    assert "20 texts" in capsys.readouterr().out


def test_seeds(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each in a folder of its own, which goes on where it was; the seeds differ and nothing else."""
    train(runs / "films", runs / "seeds", "--seeds", "2", "--seed", "5")
    assert sorted(one.name for one in (runs / "seeds").iterdir()) == ["seed-5", "seed-6"]
    out = capsys.readouterr().out
    assert "of 2 seeds:" in out
    assert "setting" not in out
    with pytest.raises(SystemExit):
        train(runs / "films", runs / "none", "--seeds", "0")
    assert "--seeds is '0', but must be a number from 1 to 100" in capsys.readouterr().err
