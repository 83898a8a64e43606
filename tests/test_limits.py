"""Sizes that files claim are bounded before memory is taken for them."""

import json
import math
from pathlib import Path

import pytest

from foveate import limits
from foveate.errors import UserError
from foveate.files import read_json


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UserError, match=r"a\.json has 10,240 MiB; the limit is 128 MiB"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("depth", [101, 500, 100_000])
def test_nested_lists(depth: int, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"a": {"[" * depth}{"]" * depth}}}')
    with pytest.raises(UserError, match="is damaged: lists or tables are nested"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["num_hidden_layers", "n_layer", "num_labels", "vocab_size", "hidden_size"])
def test_sizes_of_a_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {name: 10**9}}))
    with pytest.raises(UserError, match=f"{name} is 1,000,000,000, but can be at most"):
        read_json(tmp_path / "config.json")


def test_sizes_that_models_have() -> None:
    limits.check_sizes({"n_layer": 96, "hidden_size": 12288, "vocab_size": 256_000, "seed": 2**62, "tie": True}, "here")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"height": 0, "width": 5}, "height is 0, but must be from 1 to 1,000"),
        ({"format": {"size": -7}}, "size is -7, but must be from 1 to 4,096"),
        ({"palette": {"patch": 10**400}}, "patch is a number of more than 30 digits, but must be from 1 to 4,096"),
        ({"log_mel": {"step": math.nan}}, "step is nan, but must be finite"),
        ({"codes": [[1.5], [math.inf]]}, "codes is inf, but must be finite"),
    ],
)
def test_formats_of_images_and_sounds(values: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "processor.json"
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=f"^{path}: {told}$"):
        read_json(path)


def test_labels_may_be_named_like_sizes(tmp_path: Path) -> None:
    values = {"labels": {"size": 20_000, "patch": 0}, "format": {"size": 32}, "denoising": 0}
    (tmp_path / "processor.json").write_text(json.dumps(values))
    assert read_json(tmp_path / "processor.json") == values
