"""`foveate bench`: what it prints and writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from foveate.cli import main
from foveate.experiments import COMPARISONS


def test_a_table_is_printed_and_written(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    sizes = ["--widths", "2", "8", "--positions", "5", "--repeats", "2"]
    main(["bench", "dot-scaling", "--out", str(tmp_path), *sizes])
    out, err = capsys.readouterr()
    assert out.startswith("# Dot against scaled dot\n\n")
    assert (tmp_path / "dot-scaling.md").read_text(encoding="utf-8") == out.rstrip("\n") + "\n"
    wrote = [tmp_path / f"dot-scaling.{end}" for end in ("md", "json", "png")]
    assert err.splitlines() == [f"wrote {path}" for path in wrote]
    assert all(path.is_file() for path in wrote)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_all_comparisons_are_told(capsys: pytest.CaptureFixture, arguments: list[str]) -> None:
    main(["bench", *arguments])
    told = capsys.readouterr().out
    for name, (_, about) in COMPARISONS.items():
        assert f"  {name}  " in told
        assert about in told


def test_mistakes(fails: Callable[..., str]) -> None:
    assert fails("bench", "norm") == "unknown comparison 'norm'; did you mean norms or ngrams?"
    assert fails("bench", "norms", "--depth", "3").startswith("unknown option --depth; did you mean --depths")
    assert fails("bench", "norms", "--depths", "0") == "depths is 0, but must be at least 1"
