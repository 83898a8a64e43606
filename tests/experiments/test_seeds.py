"""Comparisons with several seeds: means and intervals by hand, and one that runs."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from foveate.cli import main
from foveate.errors import UserError
from foveate.experiments import Comparison, Table, compare_seeds
from foveate.experiments.positions import Positions
from foveate.experiments.seeds import mean_cell, mean_of_seeds


def test_cells() -> None:
    """1, 2 and 3 have the standard deviation 1: half of the interval is 4.303 / sqrt(3)."""
    assert mean_cell(["1.00", "2.00", "3.00"]) == "2.00 ± 2.48"
    assert mean_cell(["1,000 %", "**3,000 %**"]) == "2,000 ± 12,706 %"
    assert mean_cell(["1.0e-02", "2.0e-02", "3.0e-02"]) == "2.0e-02 ± 2.5e-02"
    assert mean_cell(["7", "7"]) == "7"
    assert mean_cell(["n^0.89", "n^1.00", "n^0.89"]) == "n^0.89 / n^1.00"


def test_rows_with_the_same_name_keep_their_order() -> None:
    tables = [Table(["way", "order", "bits"], [["a", "1", bits], ["a", "2", more]]) for bits, more in ("13", "35")]
    found = mean_of_seeds([Comparison("title", [table], {}, []) for table in tables], [1, 2])
    assert found.tables[0].rows == [["a", "1", "2 ± 13"], ["a", "2", "4 ± 13"]]


def test_a_comparison_runs_once_for_each_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--length", "6", "--lengths", "6", "9", "--back", "1", "--vocabulary", "5", "--steps", "2", "--width", "8"]
    main(["bench", "positions", *sizes, "--seeds", "2", "--seed", "3", "--out", str(tmp_path)])
    assert "±" in capsys.readouterr().out
    text = (tmp_path / "positions.md").read_text()
    assert "Means of the seeds 3, 4" in text
    measured = json.loads((tmp_path / "positions.json").read_text())["measured"]
    assert measured.keys() == {"seed 3", "seed 4"}
    assert measured["seed 3"] != measured["seed 4"]
    with pytest.raises(UserError, match="seeds is 0, but must be at least 1"):
        compare_seeds("positions", Positions(seeds=0, out=tmp_path), Console(file=StringIO()))
