"""`foveate bench`: what it prints and writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate.cli import main
from foveate.cli.parse import parse
from foveate.experiments import COMPARISONS, Options, comparison_module

SMALL = ["--widths", "2", "8", "--positions", "5", "--repeats", "2"]
"""Sizes of `dot-scaling` that take a moment."""


def test_a_table_is_printed_and_written(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    main(["bench", "dot-scaling", "--out", str(tmp_path), *SMALL])
    out, err = capsys.readouterr()
    written = (tmp_path / "dot-scaling.md").read_text(encoding="utf-8")
    assert written.startswith("# Dot against scaled dot\n\n")
    assert out.startswith("Dot against scaled dot\n")
    assert "---" not in out
    rows = [line for line in written.splitlines() if line.startswith("| ") and "---" not in line]
    cells = [cell.strip() for row in rows for cell in row.strip("| ").split(" | ")]
    assert all(cell.split()[0].strip("*") in out for cell in cells if cell)
    wrote = [tmp_path / f"dot-scaling.{end}" for end in ("md", "json", "png")]
    assert err.splitlines()[-3:] == [f"wrote {path}" for path in wrote]
    assert all(path.is_file() for path in wrote)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_all_comparisons_are_told(capsys: pytest.CaptureFixture, arguments: list[str]) -> None:
    main(["bench", *arguments])
    told = capsys.readouterr().out
    for name, (_, about) in COMPARISONS.items():
        assert f"  {name}  " in told
        assert about in told


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_takes_seeds(name: str) -> None:
    options: Any = parse(comparison_module(name).OPTIONS, ["--seeds", "3", "--seed", "5"], f"bench {name}")
    assert isinstance(options, Options)
    assert (options.seeds, options.seed) == (3, 5)


def test_mistakes(fails: Callable[..., str]) -> None:
    assert fails("bench", "norm") == "unknown comparison 'norm'; did you mean norms or ngrams?"
    assert fails("bench", "norms", "--depth", "3").startswith("unknown option --depth; did you mean --depths")
    assert fails("bench", "norms", "--depths", "0") == "depths is 0, but must be at least 1"


COUNTED = {"imagenet", "layers", "linear-probe", "ngrams", "parallel", "products", "teacher-forcing", "traces"}
"""Comparisons that count or time, whose figures do not depend on the seed."""


@pytest.mark.parametrize("name", COMPARISONS)
def test_what_depends_on_chance_runs_three_seeds(name: str) -> None:
    assert comparison_module(name).OPTIONS().seeds == (1 if name in COUNTED else 3)


@pytest.mark.parametrize(("seeds", "shown"), [((), "Means of the seeds 1, 2, 3"), (("--seeds", "1"), "One seed: ")])
def test_the_seeds_are_told(seeds: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    main(["bench", "dot-scaling", "--out", str(tmp_path), *SMALL, *seeds])
    out = capsys.readouterr().out
    assert shown in out
    assert ("±" in out) == (not seeds)
