"""The gallery: literal commands, processes of their own, and a page that escapes every text."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate import cli
from foveate.cli import bench
from foveate.cli import data as cli_data
from foveate.cli import demo as cli_demo
from foveate.cli import look as cli_look
from foveate.cli import report as cli_report
from foveate.cli import train as cli_train
from foveate.cli.parse import parse
from foveate.data.sources import SOURCES
from foveate.experiments import Comparison, gallery
from foveate.experiments.gallery import ROWS, GalleryRow, command_line
from foveate.experiments.gallery_page import GalleryEntry, gallery_page

SIZES = "--widths 2 8 --positions 5 --repeats 1"
CHEAP = GalleryRow(
    "cheap", "a < b & c", (f"bench dot-scaling --out {{out}} {SIZES}",), ("dot-scaling.png",), 0.1, "docs/x.md"
)
BROKEN = GalleryRow("broken", "nothing", ("bench norm --out {out}", "models"), ("norm.png",), 0.1, "docs/x.md")
SILENT = GalleryRow("silent", "no picture", ("data",), ("none.png",), 0.1, "docs/x.md")
LONG = GalleryRow("long", "much", ("data",), ("none.png",), 50, "docs/x.md")


@pytest.fixture(autouse=True)
def few_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "row" not in request.fixturenames:
        rows = (CHEAP, BROKEN, SILENT, LONG)
        monkeypatch.setattr(gallery, "ROWS", rows)
        monkeypatch.setattr("foveate.cli.gallery.ROWS", rows)


def test_without_arguments_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["gallery"])
    out = capsys.readouterr().out
    assert "  cheap    0.1 min  a < b & c\n" in out
    assert "50.3 in all" in out


def test_a_picture_is_made_by_a_process_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a folder"
    cli.main(["gallery", "cheap", "--out", str(out)])
    assert (out / "cheap" / "dot-scaling.png").read_bytes().startswith(b"\x89PNG")
    log = (out / "cheap" / "log.txt").read_text(encoding="utf-8")
    assert log.startswith(f"$ foveate bench dot-scaling --out '{out}/cheap' {SIZES}\n")
    page = (out / "index.html").read_text(encoding="utf-8")
    assert '<img src="cheap/dot-scaling.png" alt="a &lt; b &amp; c">' in page
    assert "a < b" not in page
    assert "broken" not in page
    assert capsys.readouterr().out.splitlines() == [
        "cheap: about 0.1 minutes",
        f"wrote {out}/index.html: 1 of 1 made",
    ]


def test_a_failure_ends_its_row_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["gallery", "broken", "silent", "cheap", "--out", str(tmp_path)])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert err == "foveate: could not make broken, silent\n"
    log = tmp_path / "broken" / "log.txt"
    assert f"broken: `foveate bench` ended with status 2; {log} has its output\n" in out
    assert "unknown comparison 'norm'; did you mean norms" in log.read_text(encoding="utf-8")
    assert "$ foveate models" not in log.read_text(encoding="utf-8")
    assert "silent: none.png was not written" in out
    assert out.endswith("1 of 3 made\n")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "ended with status 2" in page
    assert "cheap/dot-scaling.png" in page


def test_what_was_made_before_stays_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "cheap").mkdir()
    (tmp_path / "cheap" / "dot-scaling.png").write_bytes(b"picture")
    gallery.build_gallery([SILENT], tmp_path, lambda line: None)
    assert "cheap/dot-scaling.png" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_budget_keeps_what_fits() -> None:
    assert [row.name for row in gallery.find_rows((), 0.15)] == ["cheap"]
    assert [row.name for row in gallery.find_rows(("long", "cheap"), 51)] == ["long", "cheap"]
    assert [row.name for row in gallery.find_rows(("cheap", "cheap"), None)] == ["cheap"]


def test_mistakes(fails: Callable[..., str], tmp_path: Path) -> None:
    assert fails("gallery", "cheep") == "unknown picture 'cheep'; did you mean cheap?"
    assert fails("gallery", "long", "--budget", "3") == "nothing fits in 3 minutes: long takes 50"
    for budget in ("0", "nan", "-1"):
        assert fails("gallery", f"--budget={budget}").startswith(f"budget is {budget}, but must be")
    (tmp_path / "file").touch()
    assert fails("gallery", "cheap", "--out", str(tmp_path / "file")).endswith("file is not a folder")


def test_pages_are_embedded_and_paths_quoted() -> None:
    page = gallery_page(
        [GalleryEntry("x", "<b>", ["foveate look 'a & b'"], ["x/look.html", 'x/a "b".png'], "docs/x.md")]
    )
    assert '<iframe src="x/look.html" title="&lt;b&gt;"' in page
    assert 'src="x/a%20%22b%22.png"' in page
    assert "foveate look &#x27;a &amp; b&#x27;" in page


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_options_that_there_are(row: GalleryRow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is parsed as it stands; its work is left out."""
    asked: list[Any] = []
    monkeypatch.setattr(cli_train, "train_task", asked.append)
    monkeypatch.setattr(cli_train, "next_commands", lambda predictor, folder: "")
    monkeypatch.setattr(bench, "compare_seeds", lambda *told: asked.append(told) or Comparison("none", [], {}, {}))
    monkeypatch.setattr(bench, "save", lambda *_: [])
    monkeypatch.setattr(cli_demo, "demo", asked.append)
    for command in row.commands:
        verb, *rest = command_line(command, Path("there"))
        if verb == "look":
            asked.append(parse(cli_look.Look, rest, verb))
        elif verb == "data":
            asked.append(parse(cli_data.Data, rest, verb))
            assert asked[-1].name in SOURCES
        elif "--from" in rest and rest[rest.index("--from") + 1].startswith("there"):
            assert any(f"--out {{out}}/{Path(rest[rest.index('--from') + 1]).name}" in one for one in row.commands)
            asked.append(rest)  # begins from a run that the row makes before
        elif verb == "report":
            asked.append(parse(cli_report.Report, rest, verb))
        elif verb == "run":
            assert rest[-2] == "--picture"
            asked.append(rest)
        else:
            cli.main([verb, *rest])
    assert len(asked) == len(row.commands)
    assert (Path(__file__).parents[2] / row.page).is_file()
    assert row.results
    assert row.minutes > 0
    assert all("{out}" in shlex.split(command)[-1] or "--out {out}" in command for command in row.commands)
