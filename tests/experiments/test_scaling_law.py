"""`foveate bench scaling-law`: the fit finds a law that is there, and a run trains, fits and draws."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.errors import UserError
from foveate.experiments import compare, scaling_law
from foveate.experiments.scaling_fit import Law, LossPoint, fit
from foveate.experiments.scaling_law import ScalingLaw

QUIET = Console(file=StringIO())
LAW = Law(1.5, 30.0, 400.0, 0.35, 0.45)


def points(law: Law) -> list[LossPoint]:
    sizes, texts = (11_000, 83_000, 310_000), (150_000, 450_000, 1_350_000)
    return [LossPoint(size, text, law(size, text)) for size in sizes for text in texts]


def test_the_fit_finds_the_law() -> None:
    found = fit(points(LAW))
    assert (found.a, found.b) == (LAW.a, LAW.b)
    assert pytest.approx((LAW.E, LAW.A, LAW.B)) == (found.E, found.A, found.B)


def test_no_number_of_the_law_is_negative() -> None:
    found = fit([LossPoint(point.parameters, point.tokens, 3 + point.tokens / 1e6) for point in points(LAW)])
    assert min(found.E, found.A, found.B) >= 0
    assert fit(points(LAW)).undetermined == []
    assert Law(1.0, 1.0, 1.0, 2.04, 0.3).undetermined == ["a"]


@pytest.fixture
def _prose(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["apple", "pear", "plum", "fig", "quince", "cherry"]
    texts = [f"The {words[n % 6]} is beside the {words[n * n % 5]} ." for n in range(900)]
    prose = Prose.from_paragraphs([Paragraph(f"line {n}", "", text) for n, text in enumerate(texts)], "fruit")
    monkeypatch.setattr(scaling_law, "open_source", lambda name, task: Splits(prose, prose, prose))


@pytest.mark.usefixtures("_prose")
def test_models_are_trained_once_and_drawn(tmp_path: Path) -> None:
    sizes = {"widths": (32, 64), "layers": (1, 1), "tokens": (200, 400, 800), "length": 8, "validation": 200}
    options = ScalingLaw(vocabulary=60, runs=tmp_path, **sizes)  # type: ignore[arg-type]
    found = compare("scaling-law", options, QUIET)
    assert len(found.raw["points"]) == 6
    assert found.raw["points"][0]["loss"] > found.raw["points"][2]["loss"]
    assert found.tables[0].rows[0][:2] == ["12,768", "200"]
    assert compare("scaling-law", options, QUIET).raw == found.raw
    with pytest.raises(UserError, match="was started with vocabulary 60, not 70"):
        compare("scaling-law", ScalingLaw(vocabulary=70, runs=tmp_path, **sizes), QUIET)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="but --tokens asks for 1,000,000"):
        compare("scaling-law", ScalingLaw(vocabulary=60, runs=tmp_path), QUIET)


def test_bad_options() -> None:
    for changes, message in (
        ({"widths": (32, 40)}, "there are 2 widths, but 3 numbers of layers"),
        ({"widths": (32, 40), "layers": (1, 1)}, "widths has 40, which is not a multiple of 32"),
        ({"widths": (32, 64), "layers": (1, 1), "tokens": (90_000, 95_000)}, "needs at least six models"),
    ):
        with pytest.raises(UserError, match=message):
            compare("scaling-law", ScalingLaw(**changes), QUIET)  # type: ignore[arg-type]
