"""Sizes that files claim are bounded before memory is taken for them."""

import json
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
    ],
)
def test_formats_of_images_and_sounds(values: dict, told: str, tmp_path: Path) -> None:
    path = tmp_path / "processor.json"
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=f"^{path}: {told}$"):
        read_json(path)


@pytest.mark.parametrize("name", ["preprocessor_config.json", "processor_config.json"])
@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"size": {"height": 10**6, "width": 10**6}}, "height is 1,000,000, but can be at most 8,192"),
        ({"size": [224, 10**6]}, "size is 1,000,000, but can be at most 8,192"),
        ({"image_processor": {"crop_size": 10**9}}, "crop_size is 1,000,000,000, but can be at most 8,192"),
        ({"n_fft": 10**9}, "n_fft is 1,000,000,000, but can be at most 65,536"),
        ({"sampling_rate": True}, "sampling_rate is True, but must be a number"),
        ({"image_mean": [0.5, "0.5", 0.5]}, "image_mean is '0.5', but must be a number"),
        ({"rescale_factor": -1e300}, "rescale_factor is a number of more than 30 digits, but can be at most 1,000,000"),
    ],
)
def test_what_public_processors_compute_with(values: dict, told: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(values))
    with pytest.raises(UserError, match=f"^{tmp_path / name}: {told}$"):
        read_json(tmp_path / name)


@pytest.mark.parametrize("name", ["num_labels", "n_layer", "hidden_size", "head_dim", "num_attention_heads"])
def test_true_is_no_number_of_a_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {name: True}, "tie_word_embeddings": True}))
    with pytest.raises(UserError, match=f"{name} is True, but must be a number"):
        read_json(tmp_path / "config.json")


@pytest.mark.parametrize("token", [5, ["<s>"], {"content": 5}, True])
def test_special_tokens_are_texts(token: object, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"pad_token": {"content": "<pad>"}, "eos_token": None, "bos_token": token}))
    with pytest.raises(UserError, match=r"bos_token is .*, but must be a text$"):
        read_json(path)


def test_labels_may_be_named_like_sizes(tmp_path: Path) -> None:
    values = {"labels": {"size": 20_000, "patch": 0}, "format": {"size": 32}, "denoising": 0}
    (tmp_path / "processor.json").write_text(json.dumps(values))
    assert read_json(tmp_path / "processor.json") == values
