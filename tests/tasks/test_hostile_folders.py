"""Hugging Face folders that would take all memory, all time, or another library's pages of errors."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

from tiny_folders import looked  # noqa: E402

from foveate.errors import UserError  # noqa: E402
from foveate.interop.layout import ConfigReader, label_names  # noqa: E402
from foveate.tasks.viewers import open_model  # noqa: E402

Folders = Callable[[str], Path]


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "vocab.txt"])
def test_a_sparse_file_is_not_read(copied: Folders, name: str) -> None:
    folder = copied("gpt2")
    with (folder / name).open("ab") as file:
        os.truncate(file.fileno(), 10 * 2**30)
    with pytest.raises(UserError, match=rf"{name} has 10,240 MiB; the limit is 128 MiB"):
        open_model(folder)


@pytest.mark.parametrize("value", [10**400, float("nan"), True, "0.5", None])
def test_pixels_have_means_that_are_numbers(copied: Folders, value: object) -> None:
    folder = copied("vit")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_mean": [0.5, value, 0.5]}))
    with pytest.raises(UserError, match=r"image_mean|preprocessor_config") as caught:
        open_model(folder)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), -1.0])
def test_a_size_that_no_number_of_the_computer_holds(value: float) -> None:
    with pytest.raises(UserError, match=r"^config.json has the share .*, which cannot be$"):
        ConfigReader({"share": value}, "config.json").get("share", 0.5)


def test_a_tokenizer_that_backtracks_without_end(copied: Folders, capfd: pytest.CaptureFixture) -> None:
    folder = copied("gpt2")
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, whole["pre_tokenizer"]]}
    path.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=r"^the tokenizer cannot read the text: .*retry-limit"):
        looked(folder, "a" * 60 + "b")
    assert "panicked" not in capfd.readouterr().err


def test_many_labels_are_compared_once() -> None:
    named = {str(number): f"LABEL_{number}" for number in range(40_000)}
    began = time.process_time()
    assert label_names({"id2label": named}, "config.json")[-1] == "LABEL_39999"
    with pytest.raises(UserError, match=r"^config.json has the label 'LABEL_7' 2 times$"):
        label_names({"id2label": named | {"9": "LABEL_7"}}, "config.json")
    assert time.process_time() - began < 5


HOSTILE = ("{", '{"size": NaN}', '{"size": 1e999}', f'{{"a": {"[" * 200}{"]" * 200}}}', '{"a": "\\ud800"}')
"""JSON that no library should be given."""


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "whisper"])
def test_every_file_goes_through_one_gate(name: str, content: str, copied: Folders) -> None:
    """Also a file that only transformers would read."""
    folder = copied(name)
    (folder / "adapter_of_others.json").write_text("{}")
    for path in sorted(folder.glob("*.json")):
        whole = path.read_text()
        path.write_text(content)
        with pytest.raises(UserError) as caught:
            open_model(folder)
        assert len(str(caught.value).splitlines()) == 1
        path.write_text(whole)


@pytest.mark.parametrize(
    ("name", "file", "values", "told"),
    [
        (
            "vit",
            "preprocessor_config.json",
            {"size": {"height": 10**6, "width": 10**6}},
            "height is 1,000,000, but",
        ),
        ("whisper", "preprocessor_config.json", {"n_fft": 10**9}, "n_fft is 1,000,000,000, but can be at most 65,536"),
        ("whisper", "preprocessor_config.json", {"sampling_rate": True}, "sampling_rate is True, but must be"),
        ("gpt2", "config.json", {"hidden_size": True}, "hidden_size is True, but must be a number"),
        ("vit", "config.json", {"image_size": 10**6}, "image_size is 1,000,000, but can be at most 8,192"),
        ("gpt2", "tokenizer_config.json", {"bos_token": 5}, "bos_token is 5, but must be a text"),
        (
            "gpt2",
            "tokenizer.json",
            {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "e" * 10**6}},
            "its normalizer could make a text more than 256 times as long",
        ),
    ],
)
def test_what_would_take_all_memory(name: str, file: str, values: dict, told: str, copied: Folders) -> None:
    path = copied(name) / file
    whole = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(whole | values))
    with pytest.raises(UserError, match=told):
        open_model(path.parent)
