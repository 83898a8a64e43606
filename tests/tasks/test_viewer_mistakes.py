"""Looking at models from disk: folders that are not opened, and inputs that do not fit."""

# ruff: noqa: E402
import builtins
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

from tiny_folders import looked, picture, sound

from foveate.errors import UserError
from foveate.tasks.viewers import File, open_model

Folders = Callable[[str], Path]


def damaged_sound(bits: int = 16, length: int = 16) -> File:
    """A .wav file whose head says that samples have this many bits, or that what tells of them has this many bytes."""
    head = bytearray(sound().data)
    head[16:20], head[34:36] = struct.pack("<I", length), struct.pack("<H", bits)
    return File("tone.wav", bytes(head))


def change_json(path: Path, **change: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


@pytest.mark.parametrize(
    ("name", "given", "options", "message"),
    [
        ("gpt2", "x " * 50, {}, r"the text has 100 tokens, but GPT2LMHeadModel from .* has positions for 83$"),
        ("roberta", "x" * 23, {}, r"the text has 23 tokens, but RobertaModel from .* has positions for 22$"),
        ("gpt2", "x" * 11, {"most": 7}, r"the text has 11 tokens, but the limit is 7"),
        ("t5", "x" * 449, {"most": 7}, r"the text has 449 tokens, but the limit is 7; --max-tokens raises it$"),
        ("gpt2", " \n", {}, r"the text is empty: there is nothing to look at$"),
        ("gpt2", File("a.png", b""), {}, r"a.png is a file, but GPT2LMHeadModel from .* reads text$"),
        ("vit", "x", {}, r"the input is a text, but ViTModel from .* reads an image file$"),
        ("vit", picture(), {"most": 7}, r"the image has 9 patches, but the limit is 7"),
        ("vit", File("a.png", b"GIF"), {}, r"a.png is not a picture; supported formats are PNG, JPEG, WEBP, GIF, BMP$"),
        ("vit", File("a.png", picture().data[:90]), {}, r"a.png is damaged: "),
        ("vit", picture(1, 1, "tiff"), {}, r"square.tiff is not a picture; supported formats are "),
        ("whisper", File("a.wav", b"RIFF"), {}, r"a.wav cannot be read as a sound: "),
        ("whisper", File("a.mp3", b"ID3" * 50), {}, r"a.mp3 cannot be read as a sound: "),
        ("whisper", sound(0), {}, r"tone.wav has no samples$"),
        ("whisper", sound(1.5), {}, r"tone.wav lasts 1.5 seconds, but Whisper.* from .* accepts 1 at most: cut it$"),
        ("whisper", sound(), {"most": 99}, r"the spectrogram has 100 frames, but the limit is 99"),
        ("whisper", damaged_sound(bits=64), {}, r"tone.wav is not a .wav file .* says format 1, 64 bits"),
        ("whisper", damaged_sound(length=8223), {}, r"tone.wav is not a .wav file .*: it is truncated$"),
        ("whisper-bare", sound(), {}, r"WhisperModel has a decoder, but no head that generates its input: "),
        ("canine", "5 17 9", {}, r"CanineModel from .* does not say how many tokens it has: NotImplementedError: "),
    ],
    ids=range(20),
)
def test_inputs_that_do_not_fit(folders: Folders, name: str, given: Any, options: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        looked(folders(name), given, **options)


def test_a_picture_of_too_many_pixels_is_not_unpacked(folders: Folders) -> None:
    """A file of a few bytes that says it is 30,000 by 30,000."""
    head = bytearray(picture().data)
    head[16:24] = struct.pack(">II", 30_000, 30_000)
    head[29:33] = struct.pack(">I", zlib.crc32(head[12:29]))
    with pytest.raises(
        UserError,
        match=r"^square.png (has 30,000 x 30,000 pixels; the limit is 64,000,000|is damaged: Image size )",
    ):
        looked(folders("vit"), File("square.png", bytes(head)))


def test_a_sound_that_becomes_no_spectrogram(copied: Folders) -> None:
    folder = copied("wav2vec2-bert")
    change_json(folder / "preprocessor_config.json", feature_size=70)
    with pytest.raises(UserError, match=r"^the sound became 24 x 160 numbers, but a spectrogram has 70 bands: this"):
        looked(folder, sound())


def test_a_folder_of_pickles_is_not_opened(copied: Folders) -> None:
    folder = copied("gpt2")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        UserError, match=r"has its weights only as pytorch_model.bin, which may run code .* reads model.s"
    ):
        open_model(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(UserError, match=r"has no model.safetensors: there are no weights$"):
        open_model(folder)


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        ("pytorch_model.bin", "has weights in 'pytorch_model.bin', which is not opened; foveate reads only"),
        ("../gpt2.safetensors", "has weights in '../gpt2.safetensors', which is not opened"),
        ("/gpt2.safetensors", "has weights in '/gpt2.safetensors', which is not opened"),
        (None, "is damaged: weight_map is {"),
    ],
)
def test_an_index_does_not_lead_to_pickles(copied: Folders, shard: str | None, message: str) -> None:
    folder = copied("gpt2")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, shard)}))
    with pytest.raises(UserError, match=re.escape(f"model.safetensors.index.json {message}")):
        open_model(folder)


def test_a_config_does_not_lead_to_pickles(copied: Folders) -> None:
    folder = copied("gpt2")
    (folder / "adapter_model.safetensors.index.json").write_text('{"weight_map": {"wte.weight": "adapter_model.bin"}}')
    for name, where in [
        ("adapter_model.bin", "config.json"),
        ("adapter_model.safetensors.index.json", "adapter_model.safetensors.index.json"),
    ]:
        change_json(folder / "config.json", transformers_weights=name)
        with pytest.raises(UserError, match=f"its {where} has weights in 'adapter_model.bin', which is not opened"):
            open_model(folder)


def test_an_index_of_safetensors(copied: Folders) -> None:
    folder = copied("gpt2")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    names = load_file(folder / "model-1.safetensors")
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, "model-1.safetensors")}))
    assert looked(folder, "the lamp").sight.sites
    for text, message in [("{", "is damaged: Expecting"), ("{}", 'is damaged: missing value for field "weight_map"$')]:
        index.write_text(text)
        with pytest.raises(UserError, match=rf"model\.safetensors\.index\.json {message}"):
            open_model(folder)


def test_an_adapter_is_no_model(copied: Folders) -> None:
    folder = copied("gpt2")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"has only an adapter for another model: merge the two and save the whole model$"
    ):
        open_model(folder)


def test_pickles_beside_safetensors_are_left_alone(copied: Folders) -> None:
    folder = copied("gpt2")
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert looked(folder, "the lamp").sight.sites


def test_code_in_a_folder_is_not_run(copied: Folders) -> None:
    folder = copied("gpt2")
    config = (folder / "config.json").read_text()
    (folder / "config.0.0.0.json").write_text(json.dumps({**json.loads(config), "attn_implementation": "some/kernel"}))
    fetched = r"its attn_implementation names code to download \('some/kernel'\)"
    for change, message in [
        ({"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Model"}}, "cannot open .*: "),
        (
            {"architectures": ["OwnModel"], "auto_map": {"AutoModel": "own.Model"}},
            "is a OwnModel, which is not a model of",
        ),
        ({"architectures": ["pipeline"]}, "is a pipeline, which is not a model of transformers"),
        ({"architectures": ["BertModel"]}, "is a BertModel, which is not a model of transformers"),
        ({"attn_implementation": "some/kernel"}, fetched),
        ({"attn_implementation": {"": "some/kernel"}}, fetched),
        ({"text_config": {"_attn_implementation": "some/kernel"}}, fetched),
        ({"parts": [{"attn_implementation": ["some/kernel"]}]}, fetched),
        ({"configuration_files": ["config.0.0.0.json"]}, fetched),
        ({"attribute_map": {"layers": "_attn_implementation"}, "layers": "some/kernel"}, fetched),
        ({"attn_implementation": "flash_attention_2"}, "'flash_attention_2', which is not installed and is never do"),
        ({"_attn_implementation": {"": "flash_attention_3"}}, "remove that entry from config.json, or set it to 'sd"),
    ]:
        (folder / "config.json").write_text(config)
        change_json(folder / "config.json", **change)
        (folder / "own.py").write_text("raise SystemExit('this was run')")
        with pytest.raises(UserError, match=message) as caught:
            open_model(folder)
        assert len(str(caught.value).splitlines()) == 1


def test_weights_of_another_model_are_told(copied: Folders) -> None:
    folder = copied("gpt2")
    change_json(folder / "config.json", n_layer=5)
    with pytest.raises(
        UserError, match=r"lacks the tensor 'transformer.h.3.attn.c_attn.bias' and \d+ more: the attention of a GPT2L"
    ):
        open_model(folder)
    change_json(folder / "config.json", n_layer=3, n_embd=22)
    with pytest.raises(
        UserError,
        match=r"the tensor 'transformer.h.0.attn.c_attn.bias' has the size \(\d+,\) in its file, but \(66,\) by",
    ):
        open_model(folder)
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(UserError, match=r"^transformers 5\S* cannot open .*: SafetensorError: "):
        open_model(folder)


def test_a_head_that_is_missing_does_not_matter(copied: Folders) -> None:
    """A model saved without its pooler, or its head, still looks where it looks."""
    folder = copied("roberta")
    assert looked(folder, "the lamp").sight.sites
    change_json(folder / "config.json", architectures=None)
    assert open_model(folder).name.startswith("RobertaModel from ")


def test_what_is_no_folder_of_a_model(tmp_path: Path, copied: Folders) -> None:
    with pytest.raises(UserError, match=r"^there is no folder gpt2, .*; a model of the hub is hub:ORGANISATION/NAME$"):
        open_model("gpt2")
    with pytest.raises(UserError, match=r"has no config.json: no model was ever saved there; it is empty$"):
        open_model(tmp_path)
    folder = copied("gpt2")
    (folder / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config.json is damaged: "):
        open_model(folder)
    (folder / "config.json").write_text('{"model_type": "no such"}')
    with pytest.raises(UserError, match=r"^transformers 5\S* cannot open "):
        open_model(folder)
    with pytest.raises(UserError, match=r"^device 'cuda:77' cannot be used"):
        open_model(folder, "cuda:77")


def test_without_transformers_the_command_is_told(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Language models that foveate has itself need none."""
    folder, real = folders("canine"), builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "transformers":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UserError, match=r"needs the transformers library: pip install 'transformers>=5,<6'$"):
        open_model(folder)
    seen = open_model(folders("gpt2")).look("the keeper lit", 83)
    assert seen.sight.sites == [f"stack.blocks.{block}.self" for block in range(3)]


def test_no_network_is_asked_even_by_what_the_library_calls() -> None:
    """In a process of its own, since tests load the library before. Its own child processes are free to ask."""
    code = (
        "import os; from foveate.interop.huggingface import import_transformers as load; load(); "
        "import huggingface_hub as hub; "
    )
    told = subprocess.run(
        [sys.executable, "-c", f"{code} print(hub.constants.HF_HUB_OFFLINE, os.environ.get('HF_HUB_OFFLINE'))"],
        env={name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"},
        capture_output=True,
        text=True,
    )
    assert told.stdout == "True None\n", told.stderr
