"""Llamas in GGUF files: read as a folder in the layout of Hugging Face, and written of one.

The names of fields and tensors are those of ggml (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError, one_line, show_value
from foveate.files import written
from foveate.interop.gguf import GGUF
from foveate.interop.gguf_tokenizers import read_tokenizer, tokenizer_fields

NAME = "llama"
"""What GGUF files call the kind of model."""

PARTS = {
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

OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
"""The names of the modules beside the blocks."""

SIZES = {
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
}
"""The fields that every file has, and those of transformers."""

IGNORED = ("vocab_size", "attention.value_length", "rope.scaling.finetuned", "rope.scaling.original_context_length")
"""Fields that other fields decide."""


def convert(file: GGUF, folder: Path) -> None:
    """Write the Llama of a GGUF file in the layout of Hugging Face. Raises UserError for another model."""
    try:
        config = read_config(file)
        state = {public_name(name): torch.from_numpy(file.tensor(name).copy()) for name in file.shapes}
        for name, value in state.items():
            if heads := heads_of(name, config):
                state[name] = halves_from_pairs(value, heads)
        tokenizer = read_tokenizer(file.metadata)
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise UserError(f"the GGUF file holds no Llama that foveate reads: {one_line(error)}") from None
    folder.mkdir(parents=True, exist_ok=True)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tokenizer.write_folder(folder)


def read_config(file: GGUF) -> dict[str, Any]:
    """The `config.json` of a Llama by the metadata of its file. Raises UserError for what changes the numbers and is
    not obeyed."""
    if (kind := file.metadata.get("general.architecture")) != NAME:
        raise UserError(f"the GGUF file holds a model of the kind {show_value(kind)}; foveate reads {NAME}")
    values = {
        name.removeprefix(f"{NAME}."): value for name, value in file.metadata.items() if name.startswith(f"{NAME}.")
    }
    found = {public: values.pop(name) for name, public in SIZES.items()}
    width, heads = found["hidden_size"], found["num_attention_heads"]
    head = values.pop("attention.key_length", width // heads)
    epsilon = values.pop("attention.layer_norm_rms_epsilon")
    rotary, base = values.pop("rope.dimension_count", head), values.pop("rope.freq_base", 10_000.0)
    keys = values.pop("attention.head_count_kv", heads)
    others = {name: value for name, value in values.items() if name not in IGNORED and value not in (0, "none")}
    if rotary != head:
        others["rope.dimension_count"] = rotary
    for name, value in others.items():
        raise UserError(f"the GGUF file has {NAME}.{name} {show_value(value)}, which foveate does not obey")
    tokens, ends = file.metadata["tokenizer.ggml.tokens"], {}
    for role in ("bos", "eos"):
        ends[f"{role}_token_id"] = file.metadata.get(f"tokenizer.ggml.{role}_token_id")
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": file.shapes.get("token_embd.weight", (len(tokens),))[0],
        **found,
        "num_key_value_heads": keys,
        "head_dim": head,
        "rope_theta": base,
        "rms_norm_eps": round(float(np.float32(epsilon)), 10),
        "tie_word_embeddings": "output.weight" not in file.shapes,
        **ends,
    }


def public_name(name: str) -> str:
    """The name of a tensor in transformers' `LlamaForCausalLM`. Raises UserError for one that it lacks."""
    first, *rest = name.split(".")
    if first == "blk" and len(rest) == 3 and rest[1] in PARTS:
        number, part, leaf = rest
        return f"model.layers.{number}.{PARTS[part]}.{leaf}"
    if first in OUTSIDE and len(rest) == 1:
        return f"{OUTSIDE[first]}.{rest[0]}"
    raise UserError(f"the GGUF file has the tensor '{name}', which foveate's Llama lacks")


def file_name(name: str) -> str:
    """The inverse of `public_name`."""
    module, _, leaf = name.rpartition(".")
    outside = {public: own for own, public in OUTSIDE.items()}
    if module in outside:
        return f"{outside[module]}.{leaf}"
    _, _, number, part = module.split(".", 3)
    return f"blk.{number}.{ {public: own for own, public in PARTS.items()}[part] }.{leaf}"


def heads_of(name: str, config: Mapping[str, Any]) -> int:
    """The heads of a projection whose rows are in another order in GGUF files; 0 for other tensors."""
    fields = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    return next((int(config[field]) for part, field in fields.items() if part in name), 0)


def halves_from_pairs(weight: Float[Tensor, "HD ..."], heads: int) -> Float[Tensor, "HD ..."]:
    """Rows of a projection for rotary positions that turn a number with that half a head away.

    In GGUF files of a Llama neighbours turn together.
    """
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2).contiguous()


def pairs_from_halves(weight: Float[Tensor, "HD ..."], heads: int) -> Float[Tensor, "HD ..."]:
    """The inverse of `halves_from_pairs`."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2).contiguous()


def write_gguf(path: Path, config: Mapping[str, Any], state: Mapping[str, Tensor], tokenizer: PublicTokenizer) -> None:
    """Write a Llama, with the values of its `config.json` and its public tensors, in single precision.

    Raises UserError for a model or a tokenizer that these files have no fields for, and without the gguf package.
    """
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise UserError(f"GGUF needs the package {error.name}: pip install 'foveate[gguf]'") from None
    fields = model_fields(config) | tokenizer_fields(tokenizer, int(config["vocab_size"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as temporary:
        writer = gguf.GGUFWriter(temporary, NAME)
        for name, value in fields.items():
            add: dict[type, Any] = {
                bool: writer.add_bool,
                int: writer.add_uint32,
                float: writer.add_float32,
                str: writer.add_string,
                list: writer.add_array,
            }
            add[type(value)](name, value)
        for name, tensor in state.items():
            heads = heads_of(name, config)
            own = pairs_from_halves(tensor.float(), heads) if heads else tensor.float()
            writer.add_tensor(file_name(name), own.numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def model_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a Llama. Raises UserError for another model, or what the files have no field for."""
    if (kind := config.get("model_type")) != "llama":
        raise UserError(f"only a Llama is written as GGUF, and this is a {kind}")
    rotary = config.get("rope_parameters") or {}
    plain = {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu"}
    wrong = {name: config[name] for name, value in plain.items() if config.get(name, value) != value}
    if rotary.get("rope_type", "default") != "default":
        wrong["rope_type"] = rotary["rope_type"]
    for name, value in wrong.items():
        raise UserError(f"GGUF files of a Llama have no field for {name} {show_value(value)}")
    head = config["head_dim"]
    found = {name: config[public] for name, public in SIZES.items()}
    found |= {
        "vocab_size": config["vocab_size"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": head,
        "attention.value_length": head,
        "rope.dimension_count": head,
        "rope.freq_base": float(rotary.get("rope_theta", config.get("rope_theta", 10_000.0))),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
    }
    return {f"{NAME}.{name}": value for name, value in found.items()}
