"""wav2vec 2.0 and HuBERT in transformers: `Wav2Vec2ForCTC` and `HubertForCTC`, those that label sounds, and bodies.

A HuBERT that its layout can hold too is written as a wav2vec 2.0: they are the same model.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.speech.wav2vec2 import Wav2Vec2Config

ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu-tanh", "silu": "silu", "swish": "silu"}

_PUBLIC_ACTIVATIONS = {ours: public for public, ours in reversed(ACTIVATIONS.items())}

_BLOCK = {
    "self.query": "attention.q_proj",
    "self.key": "attention.k_proj",
    "self.value": "attention.v_proj",
    "self.output": "attention.out_proj",
    "around_self.norm": "layer_norm",
    "feedforward.inner": "feed_forward.intermediate_dense",
    "feedforward.outer": "feed_forward.output_dense",
    "around_feedforward.norm": "final_layer_norm",
}

_POSITIONS = "encoder.pos_conv_embed.conv"

_MASK = "masked_spec_embed"

_HEADS = {
    "words": {"output": "lm_head"},
    "label": {"head": "projector", "output": "classifier"},
    "none": {},
}


def key_map(config: Wav2Vec2Config, body: str = "wav2vec2") -> KeyMap:
    """The table of tensors; names of the body begin with `body`."""
    names = {
        "projection": "feature_projection.projection",
        "norm": "encoder.layer_norm",
        "mask": _MASK,
        "positions.direction": f"{_POSITIONS}.parametrizations.weight.original1",
        "positions.gain": f"{_POSITIONS}.parametrizations.weight.original0",
        "positions.bias": f"{_POSITIONS}.bias",
    }
    if config.feature_norm:
        names["feature_norm"] = "feature_projection.layer_norm"
    for layer in range(len(config.kernels)):
        public = f"feature_extractor.conv_layers.{layer}"
        names[f"convolutions.{layer}.convolution"] = f"{public}.conv"
        if config.convolution_norm == "each" or layer == 0:
            names[f"convolutions.{layer}.norm"] = f"{public}.layer_norm"
    for layer in range(config.layers):
        names |= {f"blocks.{layer}.{ours}": f"encoder.layers.{layer}.{name}" for ours, name in _BLOCK.items()}
    whole = {ours: f"{body}.{public}" for ours, public in names.items()} | _HEADS[config.head]
    return KeyMap(tuple(Entry((ours,), public) for ours, public in whole.items()), prefix=f"{body}.")


def settle(config: Wav2Vec2Config, given: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Files of models that were trained without masks lack the vector of masked places."""
    if any(name.endswith(_MASK) for name in given):
        return given
    body = next((name.partition("feature_projection")[0] for name in given if "feature_projection" in name), "")
    return {**given, f"{body}{_MASK}": torch.zeros(config.width)}


def aliases(config: Wav2Vec2Config) -> dict[str, str]:
    """The names that older files have of the weights of the positions."""
    return {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}


def read_config(values: Mapping[str, Any], where: str) -> Wav2Vec2Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(add_adapter=False, adapter_attn_dim=None, use_weighted_layer_sum=False, conv_pos_batch_norm=False)
    if read.has("adapter_attn_dim"):
        raise read.error("a model with an adapter for each language, which foveate's models cannot have")
    masks = read.get("apply_spec_augment", True)
    return Wav2Vec2Config(
        vocabulary=read.get("vocab_size", 32),
        convolution_widths=read.numbers("conv_dim", (512,) * 7),
        kernels=read.numbers("conv_kernel", (10, 3, 3, 3, 3, 2, 2)),
        strides=read.numbers("conv_stride", (5, 2, 2, 2, 2, 2, 2)),
        convolution_norm=read.choice("feat_extract_norm", "group", {"group": "first", "layer": "each"}),
        convolution_bias=read.get("conv_bias", False),
        convolution_activation=read.choice("feat_extract_activation", "gelu", ACTIVATIONS),
        feature_norm=read.get("feat_proj_layer_norm", True),
        position_kernel=read.get("num_conv_pos_embeddings", 128),
        position_groups=read.get("num_conv_pos_embedding_groups", 16),
        width=read.get("hidden_size", 768),
        heads=read.get("num_attention_heads", 12),
        feedforward=read.get("intermediate_size", 3072),
        layers=read.get("num_hidden_layers", 12),
        norm="pre" if read.get("do_stable_layer_norm", False) else "post",
        activation=read.choice("hidden_act", "gelu", ACTIVATIONS),
        epsilon=read.get("layer_norm_eps", 1e-5),
        label_width=read.get("classifier_proj_size", 256),
        mask_share=read.get("mask_time_prob", 0.05) if masks else 0.0,
        mask_length=read.get("mask_time_length", 10),
        dropout=read.get("hidden_dropout", 0.1),
    )


def write_config(config: Wav2Vec2Config, kind: str = "wav2vec2", name: str = "Wav2Vec2") -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model that is a HuBERT alone."""
    if kind == "wav2vec2" and not config.feature_norm:
        raise UserError("transformers' wav2vec2 has a norm before its projection, which this model lacks")
    heads = {"words": "ForCTC", "label": "ForSequenceClassification", "none": "Model"}
    return {
        "model_type": kind,
        "architectures": [f"{name}{heads[config.head]}"],
        "vocab_size": config.vocabulary,
        "conv_dim": list(config.convolution_widths),
        "conv_kernel": list(config.kernels),
        "conv_stride": list(config.strides),
        "feat_extract_norm": {"first": "group", "each": "layer"}[config.convolution_norm],
        "conv_bias": config.convolution_bias,
        "feat_extract_activation": _PUBLIC_ACTIVATIONS[config.convolution_activation],
        **({"feat_proj_layer_norm": config.feature_norm} if kind == "hubert" else {}),
        "num_conv_pos_embeddings": config.position_kernel,
        "num_conv_pos_embedding_groups": config.position_groups,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "intermediate_size": config.feedforward,
        "num_hidden_layers": config.layers,
        "do_stable_layer_norm": config.norm == "pre",
        "hidden_act": _PUBLIC_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.epsilon,
        "classifier_proj_size": config.label_width,
        "mask_time_prob": config.mask_share,
        "mask_time_length": config.mask_length,
        "hidden_dropout": config.dropout,
    }


def _layout(kind: str, name: str) -> Layout:
    heads = {"ForCTC": "words", "ForSequenceClassification": "label", "Model": "none"}
    return Layout(
        family="wav2vec2",
        architectures={f"{name}{ending}": head for ending, head in heads.items()},
        key_map=partial(key_map, body=kind),
        read_config=read_config,
        write_config=partial(write_config, kind=kind, name=name),
        aliases=aliases,
        settle=settle,
        heads=("lm_head.*", "projector.*", "classifier.*", "quantizer.*", "project_*"),
        feature_extractor="Wav2Vec2FeatureExtractor",
    )


LAYOUT, HUBERT = _layout("wav2vec2", "Wav2Vec2"), _layout("hubert", "Hubert")
