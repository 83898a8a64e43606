"""`foveate bench distant-marks`: what the pictures show, what a CNN sees of them, and the table, with tiny sizes."""

from pathlib import Path

import pytest
import torch
from rich.console import Console

from foveate import models
from foveate.errors import UserError
from foveate.experiments import compare
from foveate.experiments.distant_marks import ASIDE, MARK, MODELS, DistantMarks, draw, reach

TINY = {"side": 12, "distances": (4, 10), "steps": 1, "batch": 4, "width": 4, "tested": 4}


def test_a_table_and_a_picture(tmp_path: Path) -> None:
    found = compare("distant-marks", DistantMarks(out=tmp_path, **TINY), Console(quiet=True))
    assert found.tables[0].headings == ["pixels between the marks", *MODELS]
    assert [row[0] for row in found.tables[0].rows] == ["4", "10"]
    assert len(found.raw) == 2 * len(MODELS)
    assert list(found.figures) == [""]


def test_two_marks_at_their_distance_and_whether_their_colours_are_the_same() -> None:
    distances = torch.tensor([4, 10] * 50)
    pictures, same = draw(DistantMarks(**TINY), distances, torch.Generator().manual_seed(0))
    assert 0 < int(same.sum()) < len(same)
    directions = set()
    for picture, distance, judged in zip(pictures, distances.tolist(), same.tolist(), strict=True):
        places = picture.sum(0).nonzero()
        assert len(places) == 2 * MARK**2
        assert len(picture.flatten(1)[:, picture.sum(0).flatten() > 0].unique(dim=1).T) == 2 - judged
        spread = (places.max(0).values - places.min(0).values - (MARK - 1)).tolist()
        assert max(spread) == distance
        assert min(spread) <= ASIDE
        directions.add(spread[0] > spread[1])
    assert directions == {True, False}


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_what_a_place_of_the_last_feature_map_sees(stages: int) -> None:
    model = models.create("cnn-tiny", classes=2, blocks=(1,) * stages, widths=(4,) * stages).eval()
    picture = torch.rand(1, 3, 48, 48, requires_grad=True)
    seen = torch.zeros(48)
    for _ in range(30):  # pooling passes the gradient of one pixel of four alone
        picture.data.uniform_()
        grid = model.grid(picture)
        (gradient,) = torch.autograd.grad(grid[0, :, grid.shape[2] // 2, grid.shape[3] // 2].square().sum(), picture)
        seen += gradient[0].abs().sum((0, 1))
    assert int(seen.nonzero().max() - seen.nonzero().min()) + 1 == reach(stages)


def test_no_room_for_a_distance(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="distances reach 40, but in 12 pixels there is no room for it"):
        compare("distant-marks", DistantMarks(out=tmp_path, **TINY | {"distances": (4, 40)}), Console(quiet=True))
