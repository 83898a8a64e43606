"""Llamas in GGUF files: written by us and read by the gguf package and by us, of each kind of numbers and tokenizer."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

gguf = pytest.importorskip("gguf")

from gguf.quants import dequantize, quantize  # noqa: E402

import foveate  # noqa: E402
from foveate.cli import main  # noqa: E402
from foveate.data.tokens.public_tokenizer import PublicTokenizer  # noqa: E402
from foveate.errors import UserError  # noqa: E402
from foveate.interop.gguf import read_gguf  # noqa: E402
from foveate.interop.gguf_llama import convert  # noqa: E402
from foveate.interop.gguf_tokenizers import WORDS, _spaces  # noqa: E402
from foveate.interop.public_folder import read_folder  # noqa: E402

SIZES = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "max_position_embeddings": 37,
}

TEXTS = ["the keeper lit the lamp", "counting 1234 stairs, each dawn's", "  déjà vu\n\nof 17 lamps "]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))


def byte_level(words: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = WORDS[words](), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet))
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<s>", "</s>")])
    return tokenizer


def sentencepiece() -> Tokenizer:
    """As transformers has that of a Llama."""
    letters = [*"\u2581abcdefghijklmnopqrstuvwxyz.,'"]
    numbers = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    merges = [("t", "h"), ("th", "e"), ("\u2581", "the"), ("l", "a"), ("la", "m"), ("lam", "p"), ("\u2581", "lamp")]
    for token in [*letters, *map("".join, merges)]:
        numbers[token] = len(numbers)
    found = Tokenizer(models.BPE(numbers, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    _spaces(found, True)
    found.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    found.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return found


def written(place: Path, tokenizer: Tokenizer, **changes: Any) -> tuple[Path, Any]:
    """A folder of a tiny Llama, whose embeddings have some rows more than there are tokens."""
    torch.manual_seed(3)
    ends = {f"{name}_token_id": tokenizer.token_to_id(text) for name, text in (("bos", "<s>"), ("eos", "</s>"))}
    config = transformers.LlamaConfig(**SIZES, vocab_size=tokenizer.get_vocab_size() + 5, **ends, **changes)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(place)
    tokenizer.save(str(place / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{{ messages }}"}
    (place / "tokenizer_config.json").write_text(json.dumps(names))
    return place, model


TOKENIZERS = {**{name: lambda name=name: byte_level(name) for name in WORDS}, "sentencepiece": sentencepiece}


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("tied", [True, False])
def test_there_and_back(kind: str, tied: bool, tmp_path: Path) -> None:
    """The same logits, ids and texts; the gguf package finds the fields and tensors."""
    folder, theirs = written(tmp_path / "llama", TOKENIZERS[kind](), tie_word_embeddings=tied, head_dim=18)
    main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", "gguf"])
    path = tmp_path / "out" / "model.gguf"
    package = gguf.GGUFReader(path)
    assert package.get_field("general.architecture").contents() == "llama"
    assert package.get_field("llama.block_count").contents() == 2
    assert ("output.weight" in {one.name for one in package.tensors}) == (not tied)
    skill = foveate.load(path)
    tokens = torch.randint(0, 250, (2, 11))
    with torch.no_grad():
        torch.testing.assert_close(skill.model(tokens).logits, theirs(tokens).logits, atol=2e-5, rtol=0)
    ours, before = skill.tokenizer, PublicTokenizer.load(folder)
    assert ours.encode(TEXTS) == before.encode(TEXTS)
    assert ours.decode(ours.encode(TEXTS)) == before.decode(before.encode(TEXTS))
    assert ours.config["chat_template"] == "{{ messages }}"
    assert ours.special.ids == before.special.ids


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_kinds_of_numbers(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of the gguf package, on the command line too."""
    folder, _ = written(tmp_path / "llama", byte_level("gpt-2"))
    main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", "gguf"])
    path, code = tmp_path / "small.gguf", gguf.GGMLQuantizationType[kind]
    whole = gguf.GGUFReader(tmp_path / "out" / "model.gguf")
    writer, expected = gguf.GGUFWriter(path, "llama"), {}
    for field in whole.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in whole.tensors:
        data = np.array(tensor.data)
        if data.ndim == 2:
            quantized = quantize(data, code)
            expected[tensor.name] = dequantize(quantized, code)
            writer.add_tensor(tensor.name, quantized, raw_dtype=code)
        else:
            writer.add_tensor(tensor.name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = read_gguf(path)
    for name, value in expected.items():
        np.testing.assert_array_equal(file.tensor(name), value)
    capsys.readouterr()
    main(["run", str(path), "the lamp", "--max-new-tokens", "3"])
    assert capsys.readouterr().out.startswith("the lamp")
    main(["look", str(path), "the lamp", "--out", str(tmp_path / "look.html")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "qwen2"}, "holds a model of the kind 'qwen2'; foveate reads llama"),
        ({"llama.rope.scaling.type": "yarn"}, "has llama.rope.scaling.type 'yarn', which foveate does not obey"),
        ({"llama.expert_count": 8}, "has llama.expert_count 8, which foveate does not obey"),
        ({"llama.rope.dimension_count": 8}, "has llama.rope.dimension_count 8, which foveate does not obey"),
        ({"tokenizer.ggml.model": "t5"}, "a tokenizer of the kind 't5'; foveate reads gpt2 and llama"),
        ({"tokenizer.ggml.pre": "deepseek"}, "cuts texts by 'deepseek', which foveate does not know"),
        ({"llama.block_count": None}, "holds no Llama that foveate reads: 'block_count'"),
    ],
)
def test_what_is_not_obeyed(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder, _ = written(tmp_path / "llama", byte_level("gpt-2"))
    main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", "gguf"])
    file = read_gguf(tmp_path / "out" / "model.gguf")
    file.metadata.update(change)
    for name, value in change.items():
        if value is None:
            del file.metadata[name]
    with pytest.raises(UserError, match=message):
        convert(file, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_tensor_that_a_llama_lacks(tmp_path: Path) -> None:
    folder, _ = written(tmp_path / "llama", byte_level("gpt-2"))
    main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", "gguf"])
    file = read_gguf(tmp_path / "out" / "model.gguf")
    file.shapes["rope_freqs.weight"] = (8,)
    with pytest.raises(UserError, match=r"has the tensor 'rope_freqs.weight', which foveate's Llama lacks"):
        convert(file, tmp_path / "back")


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = written(tmp_path / "llama", byte_level("gpt-2"))
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(SystemExit):
        main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", "gguf"])


def test_what_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models and tokenizers without fields."""
    other = Tokenizer(models.WordLevel({"z": 0, "<s>": 1, "</s>": 2}, unk_token="z"))
    for number, (tokenizer, changes, message) in enumerate(
        [
            (other, {}, "no fields for a tokenizer of the type WordLevel; a BPE is written"),
            (byte_level("gpt-2"), {"attention_bias": True}, "no field for attention_bias True"),
            (byte_level("gpt-2"), {"hidden_act": "gelu"}, "no field for hidden_act 'gelu'"),
        ]
    ):
        folder, _ = written(tmp_path / f"llama{number}", tokenizer, **changes)
        with pytest.raises(SystemExit):
            main(["export", str(folder), "--out", str(tmp_path / f"out{number}"), "--to", "gguf"])
        assert message in capsys.readouterr().err
        assert read_folder(folder).family == "llama"
