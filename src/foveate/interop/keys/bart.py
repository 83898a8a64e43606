"""The Transformers with an encoder and a decoder in transformers: BART, mBART, Marian, Pegasus and M2M-100 (NLLB).

They have the same names and differ in norms and positions:

    BART       post-norm, a norm of the embeddings, learned positions from row 2
    mBART      the same with pre-norm
    Marian     post-norm, waves in halves; the vocabularies may be two
    Pegasus    the same with pre-norm and one vocabulary
    M2M-100    pre-norm, waves of tensor2tensor, from the position behind the number of the padding token
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from foveate.attention import sinusoidal
from foveate.errors import UserError
from foveate.interop.key_map import Entry, KeyMap, Same, WithFirstAxis
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.models.text.transformer import TransformerConfig

_LEARNED = {"positions": "learned", "position_offset": 2, "input_norm": True}

_HALVES = {"positions": "sinusoidal", "waves": "halves", "position_offset": None, "input_norm": False}

PARTS: dict[str, dict[str, Any]] = {
    "bart": {"norm": "post", **_LEARNED},
    "mbart": {"norm": "pre", **_LEARNED},
    "marian": {"norm": "post", **_HALVES},
    "pegasus": {"norm": "pre", **_HALVES},
    "m2m_100": {"norm": "pre", "positions": "sinusoidal", "waves": "tensor2tensor", "input_norm": False},
}
"""The fields of our config that a "model_type" decides."""

_CLASSES = {
    "bart": "BartForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "silu": "silu", "swish": "silu"}

_DEFAULTS = {
    "bart": ("gelu", False, 50265),
    "mbart": ("gelu", False, 50265),
    "marian": ("gelu", False, 58101),
    "pegasus": ("gelu", False, 50265),
    "m2m_100": ("relu", True, 128112),
}
"""The activation, the scale of embeddings and the vocabulary of a `config.json` that does not name them."""

ROUNDED = 1e-2
"""By how much waves may differ in a file of half precision."""

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}

BLOCK = {
    **{f"self.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_self.norm": "self_attn_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}

CROSS = {
    **{f"cross.{ours}": f"encoder_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_cross.norm": "encoder_attn_layer_norm",
}

_SHARED, _OUTPUT, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"

_EMBEDDINGS = {side: f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")}


def key_map(config: TransformerConfig) -> KeyMap:
    """The table of tensors."""
    names: dict[str, str] = {}
    for side, own, layers, parts in (
        ("encoder", "source", config.encoder_layers, BLOCK),
        ("decoder", "target", config.decoder_layers, BLOCK | CROSS),
    ):
        for layer in range(layers):
            names |= {f"{side}.{layer}.{ours}": f"model.{side}.layers.{layer}.{name}" for ours, name in parts.items()}
        names[f"{side}_norm"] = f"model.{side}.layer_norm"
        names[f"{own}_norm"] = f"model.{side}.layernorm_embedding"
        names[f"{own}_positions.positions.table"] = f"model.{side}.embed_positions.weight"
    one = config.tie == "all"
    names["source_embedding.weight"] = _EMBEDDINGS["encoder"]
    names["target_embedding.weight"] = _SHARED if one else _EMBEDDINGS["decoder"]
    names["output.weight"] = _OUTPUT
    entries = [Entry((ours,), public) for ours, public in names.items()]
    entries.append(Entry(("logit_bias",), _BIAS, WithFirstAxis() if config.logit_bias else Same()))
    tied = {}
    if one:
        tied = dict.fromkeys((*_EMBEDDINGS.values(), _OUTPUT), _SHARED)
    elif config.tie == "output" and _kind(config) == "marian":
        tied = {_OUTPUT: _EMBEDDINGS["decoder"]}
    waves = () if config.positions == "learned" else ("model.*.embed_positions.weight*",)
    bias = () if config.logit_bias else (_BIAS,)
    return KeyMap(tuple(entries), tied, (*waves, *bias), "model.")


def settle(config: TransformerConfig, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file, of which one stands for all that are equal to it; the config says which they are.

    Older and newer files of one model name its embeddings differently, or several times.
    """
    whole = any(name.startswith("model.") for name in given)
    found = {name if whole or name in (_OUTPUT, _BIAS) else f"model.{name}": value for name, value in given.items()}
    if config.waves == "halves" and config.norm == "pre":  # of a Marian, transformers ignores the table too
        for side in _EMBEDDINGS:
            _check_waves(config, f"model.{side}.embed_positions.weight", found)
    shared = found.pop(_SHARED, None)
    embeddings = {side: found.pop(name, shared) for side, name in _EMBEDDINGS.items()}
    output = found.pop(_OUTPUT, embeddings["decoder"])
    known = [one for one in (*embeddings.values(), output) if one is not None]
    if not known:
        return found
    source, target, output = (known[0] if one is None else one for one in (*embeddings.values(), output))
    config.tie = "output" if torch.equal(target, output) else "none"
    if config.tie == "output" and config.src_vocab == config.tgt_vocab and torch.equal(source, target):
        config.tie = "all"
        found[_SHARED] = source
    else:
        found |= {_EMBEDDINGS["encoder"]: source, _EMBEDDINGS["decoder"]: target, _OUTPUT: output}
    config.logit_bias = _BIAS in found and bool(found[_BIAS].any())
    return found


def _check_waves(config: TransformerConfig, name: str, found: Mapping[str, Tensor]) -> None:
    """Raises UnlikeOurs for a table of positions in the file that is not the waves that our model computes."""
    if (table := found.get(name)) is None or table.ndim != 2:
        return
    waves = sinusoidal(len(table), config.width, waves="halves")
    if table.shape != waves.shape or not torch.allclose(table.float(), waves, atol=ROUNDED):
        raise UnlikeOurs(f"the tensor '{name}' holds learned positions, but foveate's models of this type have waves")


def read_config(values: Mapping[str, Any], where: str) -> TransformerConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    kind, read = str(values["model_type"]), ConfigReader(values, where)
    activation, scaled, words = _DEFAULTS[kind]
    width, heads = read.get("d_model", 1024), read.get("encoder_attention_heads", 16)
    feedforward = read.get("encoder_ffn_dim", 4096)
    if (heads, feedforward) != (read.get("decoder_attention_heads", 16), read.get("decoder_ffn_dim", 4096)):
        raise UserError(f"{where} has an encoder of other sizes than its decoder, which foveate's models cannot have")
    # Folders of older versions say again what their model has anyway.
    pre = PARTS[kind]["norm"] == "pre"
    read.require(
        normalize_before=pre,
        normalize_embedding=PARTS[kind]["input_norm"],
        add_final_layer_norm=pre,
        add_bias_logits=False,
        static_position_embeddings=PARTS[kind]["positions"] == "sinusoidal",
        extra_pos_embeddings=2,
    ) if kind in ("bart", "mbart") else read.require(normalize_before=pre, normalize_embedding=False)
    offset = {"position_offset": read.get("pad_token_id", 1) + 1} if kind == "m2m_100" else {}
    vocabulary = read.get("vocab_size", words)
    return TransformerConfig(
        src_vocab=vocabulary,
        tgt_vocab=read.get("decoder_vocab_size", vocabulary) if kind == "marian" else vocabulary,
        width=width,
        heads=heads,
        feedforward=feedforward,
        encoder_layers=read.get("encoder_layers", 12),
        decoder_layers=read.get("decoder_layers", 12),
        activation=read.choice("activation_function", activation, _ACTIVATIONS),
        dropout=read.get("dropout", 0.1),
        attention_dropout=read.get("attention_dropout", 0.0),
        activation_dropout=read.get("activation_dropout", 0.0),
        max_length=read.get("max_position_embeddings", 1024),
        scale_embedding=read.get("scale_embedding", scaled),
        **PARTS[kind],
        **offset,
    )


def write_config(config: TransformerConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    plain = TransformerConfig(src_vocab=1, tgt_vocab=1)
    require_defaults(config, plain, ("window", "position_join"), "transformers' encoder-decoder")
    kind = _kind(config)
    if kind is None:
        raise UserError(
            f"transformers has no model with norm={config.norm!r}, positions={config.positions!r}, "
            f"waves={config.waves!r}, position_offset={config.position_offset} and input_norm={config.input_norm}"
        )
    two = config.src_vocab != config.tgt_vocab
    if two and kind != "marian":
        raise UserError(f"transformers' {kind} has one vocabulary for both languages: train with --shared")
    sides = {
        f"{side}_{name}": value
        for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers))
        for name, value in {
            "layers": layers,
            "attention_heads": config.heads,
            "ffn_dim": config.feedforward,
        }.items()
    }
    apart = {"share_encoder_decoder_embeddings": config.tie == "all", "decoder_vocab_size": config.tgt_vocab}
    tied = config.tie == "all" or (kind == "marian" and config.tie == "output")
    return {
        "model_type": kind,
        "architectures": [_CLASSES[kind]],
        "vocab_size": config.src_vocab,
        **(apart if kind == "marian" else {}),
        **({"pad_token_id": (config.position_offset or 0) - 1} if kind == "m2m_100" else {}),
        "d_model": config.width,
        **sides,
        "activation_function": {ours: name for name, ours in reversed(_ACTIVATIONS.items())}[config.activation],
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scale_embedding,
        "tie_word_embeddings": tied,
        "is_encoder_decoder": True,
    }


def _kind(config: TransformerConfig) -> str | None:
    """The "model_type" that has the parts of a config."""
    for kind, parts in PARTS.items():
        if all(getattr(config, name) == value for name, value in parts.items()):
            return kind
    return None


LAYOUT = Layout(
    family="transformer",
    architectures={
        **dict.fromkeys(_CLASSES.values(), "words"),
        **dict.fromkeys(("BartModel", "MBartModel", "MarianModel", "PegasusModel", "M2M100Model"), "words"),
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    settle=settle,
)
