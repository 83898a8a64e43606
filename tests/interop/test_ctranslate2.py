"""Files of CTranslate2: numbers by hand, a Whisper that is converted, and what is wrong with a file."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from foveate import create
from foveate.errors import UserError
from foveate.interop.ctranslate2 import read_ctranslate2
from foveate.interop.keys import whisper as keys
from foveate.interop.pretrained.whisper import convert
from foveate.interop.public_folder import read_folder

CODES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def written(path: Path, tensors: dict[str, np.ndarray], kind: str = "WhisperSpec") -> Path:
    data = struct.pack("<I", 6) + text(kind) + struct.pack("<II", 3, len(tensors))
    for name, value in tensors.items():
        data += text(name) + struct.pack(
            f"<B{value.ndim}IBI", value.ndim, *value.shape, CODES[str(value.dtype)], value.nbytes
        )
        data += value.tobytes()
    path.write_bytes(data + struct.pack("<I", 1) + text("alias") + text(next(iter(tensors))))
    return path


def test_numbers_of_each_type(tmp_path: Path) -> None:
    tensors = {
        "half": np.array([[1, 2, 3], [4, 5, 6.5]], np.float16),
        "eight": np.array([[1, -2], [3, 100]], np.int8),
        "eight_scale": np.array([2, 4], np.float32),
        "heads": np.array(6, np.int16),
    }
    file = read_ctranslate2(written(tmp_path / "model.bin", tensors))
    assert file.tensor("half").tolist() == [[1, 2, 3], [4, 5, 6.5]]
    assert file.tensor("alias").tolist() == file.tensor("half").tolist()
    assert file.tensor("eight").tolist() == [[0.5, -1], [0.75, 25]]
    assert int(file.tensors["heads"]) == 6
    with pytest.raises(UserError, match=r"^'heads' is of the type int16, which is not a floating-point number$"):
        file.tensor("heads")
    with pytest.raises(UserError, match=r"^the WhisperSpec has no tensor 'other'$"):
        file.tensor("other")


def test_a_whisper_is_converted(tmp_path: Path) -> None:
    """Random weights, written as CTranslate2 does: queries, keys and values of an attention are joined."""
    sizes = {"width": 12, "heads": 3, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 3}
    model = create("whisper-tiny", bands=7, vocabulary=53, max_source=13, max_length=19, **sizes)
    public = keys.key_map(model.config).to_public(model.state_dict())
    tensors = {"encoder/num_heads": np.array(3, np.int16)}

    def norm(name: str, theirs: str) -> None:
        tensors[f"{name}/gamma"] = public[f"{theirs}.weight"].numpy()
        tensors[f"{name}/beta"] = public[f"{theirs}.bias"].numpy()

    def linear(name: str, *theirs: str) -> None:
        zeros = torch.zeros(12)
        tensors[f"{name}/weight"] = torch.cat([public[f"{one}.weight"] for one in theirs]).numpy()
        tensors[f"{name}/bias"] = torch.cat([public.get(f"{one}.bias", zeros) for one in theirs]).numpy()

    for side, layers in (("encoder", 2), ("decoder", 3)):
        tensors[f"{side}/position_encodings/encodings"] = public[f"model.{side}.embed_positions.weight"].numpy()
        norm(f"{side}/layer_norm", f"model.{side}.layer_norm")
        for layer in range(layers):
            name, theirs = f"{side}/layer_{layer}", f"model.{side}.layers.{layer}"
            norm(f"{name}/self_attention/layer_norm", f"{theirs}.self_attn_layer_norm")
            linear(f"{name}/self_attention/linear_0", *(f"{theirs}.self_attn.{one}_proj" for one in "qkv"))
            linear(f"{name}/self_attention/linear_1", f"{theirs}.self_attn.out_proj")
            norm(f"{name}/ffn/layer_norm", f"{theirs}.final_layer_norm")
            linear(f"{name}/ffn/linear_0", f"{theirs}.fc1")
            linear(f"{name}/ffn/linear_1", f"{theirs}.fc2")
            if side == "decoder":
                norm(f"{name}/attention/layer_norm", f"{theirs}.encoder_attn_layer_norm")
                linear(f"{name}/attention/linear_0", f"{theirs}.encoder_attn.q_proj")
                linear(f"{name}/attention/linear_1", *(f"{theirs}.encoder_attn.{one}_proj" for one in "kv"))
                linear(f"{name}/attention/linear_2", f"{theirs}.encoder_attn.out_proj")
    for number in (1, 2):
        for leaf in ("weight", "bias"):
            tensors[f"encoder/conv{number}/{leaf}"] = public[f"model.encoder.conv{number}.{leaf}"].numpy()
    tensors["decoder/embeddings/weight"] = public["model.decoder.embed_tokens.weight"].numpy()
    file = read_ctranslate2(written(tmp_path / "model.bin", tensors))
    convert(file, {"alignment_heads": [[1, 0]], "suppress_ids": [5]}, tmp_path)
    back = read_folder(tmp_path).model
    for name, value in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["alignment_heads"] == [[1, 0]]
    assert generation["decoder_start_token_id"] == generation["eos_token_id"] + 1
    other = read_ctranslate2(written(tmp_path / "other.bin", tensors, "TransformerSpec"))
    with pytest.raises(UserError, match=r"^the CTranslate2 file holds a TransformerSpec, not a WhisperSpec$"):
        convert(other, {}, tmp_path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = written(tmp_path / "model.bin", {"x": np.zeros((2, 3), np.float32)})
    whole = path.read_bytes()
    for size in (0, 3, 20, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError, match=rf"model.bin is truncated or damaged \({size} bytes\)$"):
            read_ctranslate2(path)
    path.write_bytes(struct.pack("<I", 3) + whole[4:])
    with pytest.raises(UserError, match=r"model.bin is not a CTranslate2 file of version 6: it begins with 3$"):
        read_ctranslate2(path)
    head = len(struct.pack("<I", 6) + text("WhisperSpec")) + 8 + len(text("x"))
    path.write_bytes(whole[: head + 1] + struct.pack("<I", 2**31) + whole[head + 5 :])
    with pytest.raises(UserError, match=r"'x' has 24 bytes, but \(2147483648, 3\) numbers of 4 bytes$"):
        read_ctranslate2(path)
    path.write_bytes(whole[: head + 9] + b"\x09" + whole[head + 10 :])
    with pytest.raises(UserError, match=r"'x' has the type 9; foveate reads 0, 1, 2, 3, 4$"):
        read_ctranslate2(path)
