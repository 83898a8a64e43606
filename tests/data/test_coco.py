"""Other programs' files: a value of another type is named, and what claims another size is not read."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from foveate.data.images.boxes import boxed_images
from foveate.data.worlds.episodes import read_recordings
from foveate.data.worlds.routes import read_routes
from foveate.errors import UserError


def test_true_is_no_coordinate(tmp_path: Path) -> None:
    table = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, True, 3, 4]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(table))
    with pytest.raises(UserError, match=r"annotations\[0\]: bbox is True, but must be a number"):
        boxed_images(tmp_path / "a.json")


@pytest.mark.parametrize("path", [[[0, 0, True]], [[0, 0]], [0], "up", {"a": 1}])
def test_routes(path: object, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"instruction": "go", "map": "m.xml", "path": path}]))
    with pytest.raises(UserError, match="route 1"):
        read_routes(tmp_path / "a.json")


def test_arrays_that_claim_another_size(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**9, 7, 7, 3), "fortran_order": False, "descr": "|u1"})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("pixels.npy", header.getvalue())
    with pytest.raises(UserError, match=r"is not an episode: pixels\.npy has another size than its header says"):
        read_recordings(tmp_path)
