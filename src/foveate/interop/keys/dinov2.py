"""transformers' names for a DINOv2: `Dinov2ForImageClassification`, `Dinov2WithRegistersForImageClassification`, and
the models without their classifiers."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, Joined, KeyMap
from foveate.interop.keys import vit
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs
from foveate.models.vision.vit import ViTConfig

OWN = ("pooling", "registers", "antialias", "layer_scale", "gated")

_BLOCK = {
    "self.query": "attention.attention.query",
    "self.key": "attention.attention.key",
    "self.value": "attention.attention.value",
    "self.output": "attention.output.dense",
    "around_self.norm": "norm1",
    "around_self.scale": "layer_scale1.lambda1",
    "around_feedforward.norm": "norm2",
    "around_feedforward.scale": "layer_scale2.lambda1",
}


def key_map(config: ViTConfig) -> KeyMap:
    """The table of tensors. A gated layer has gate and values in one matrix."""
    body = "dinov2" if config.registers is None else "dinov2_with_registers"
    names = vit.embedding_names(config, f"{body}.embeddings.")
    names |= {"stack.norm": f"{body}.layernorm"} | vit.classifier_names(config)
    entries = [Entry((ours,), public) for ours, public in names.items()]
    for layer in range(config.layers):
        ours, theirs = f"stack.blocks.{layer}.", f"{body}.encoder.layer.{layer}."
        entries += [Entry((ours + part,), theirs + public) for part, public in _BLOCK.items()]
        inner, outer = ours + "feedforward.inner", ours + "feedforward.outer"
        if config.gated:
            entries.append(Entry((ours + "feedforward.gate", inner), theirs + "mlp.weights_in", Joined()))
            entries.append(Entry((outer,), theirs + "mlp.weights_out"))
        else:
            entries += [Entry((inner,), theirs + "mlp.fc1"), Entry((outer,), theirs + "mlp.fc2")]
    return KeyMap(tuple(entries), ignored=("*mask_token",), prefix=f"{body}.")


def read_config(values: Mapping[str, Any], where: str) -> ViTConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(qkv_bias=True)
    registers = read.get("num_register_tokens", 4) if values["model_type"] == "dinov2_with_registers" else None
    if registers == 0:
        raise UnlikeOurs(f"{where} has num_register_tokens 0; foveate's models have at least one, or are a dinov2")
    gated, width = read.get("use_swiglu_ffn", False), read.get("hidden_size", 768)
    inner = int(width * read.get("mlp_ratio", 4))
    return vit.read_sizes(
        values,
        where,
        pooling="token-mean",
        registers=registers,
        antialias=registers is not None,
        feedforward=_gated_width(inner) if gated else inner,
        epsilon=read.get("layer_norm_eps", 1e-6),
        layer_scale=read.get("layerscale_value", 1.0),
        gated=gated,
        depth_dropout=read.get("drop_path_rate", 0.0),
        **({"activation": "silu"} if gated else {}),
    )


def _gated_width(inner: int) -> int:
    """Two thirds, in whole multiples of 8."""
    return (int(inner * 2 / 3) + 7) // 8 * 8


def write_config(config: ViTConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that transformers' DINOv2 is not equal to."""
    ratio = next((times for times in range(1, 33) if _inner(config, times) == config.feedforward), None)
    plain = config.layer_scale is not None and config.antialias == (config.registers is not None)
    if not plain or ratio is None or config.pooling != "token-mean" or (config.gated and config.activation != "silu"):
        raise UserError("only a model with the sizes and the parts of a DINOv2 has its public layout")
    registers = config.registers is not None
    kind = ("dinov2_with_registers", "Dinov2WithRegisters") if registers else ("dinov2", "Dinov2")
    return {
        **vit.write_sizes(config, *kind, OWN),
        **({"num_register_tokens": config.registers} if registers else {}),
        **({"hidden_act": "gelu"} if config.gated else {}),
        "mlp_ratio": ratio,
        "use_swiglu_ffn": config.gated,
        "layerscale_value": config.layer_scale,
        "drop_path_rate": config.depth_dropout,
        "qkv_bias": True,
    }


def _inner(config: ViTConfig, ratio: int) -> int:
    return _gated_width(config.width * ratio) if config.gated else config.width * ratio


LAYOUT = Layout(
    family="vit",
    architectures={
        "Dinov2ForImageClassification": "label",
        "Dinov2WithRegistersForImageClassification": "label",
        "Dinov2Model": "none",
        "Dinov2WithRegistersModel": "none",
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    heads=("classifier.*",),
    image_processor="BitImageProcessor",
)
