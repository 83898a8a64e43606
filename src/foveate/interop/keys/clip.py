"""transformers' names for a CLIP and a SigLIP: `CLIPModel` and `SiglipModel`."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, Joined, KeyMap, Reshaped
from foveate.interop.keys.vit import ACTIVATIONS
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.multimodal.dual_encoder import DualEncoderConfig

_BLOCK = {
    "self.query": "self_attn.q_proj",
    "self.key": "self_attn.k_proj",
    "self.value": "self_attn.v_proj",
    "self.output": "self_attn.out_proj",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "layer_norm1",
    "around_feedforward.norm": "layer_norm2",
}

_BOTH = {
    "token_embedding": "text_model.embeddings.token_embedding",
    "reader.positions.positions.table": "text_model.embeddings.position_embedding.weight",
    "reader.norm": "text_model.final_layer_norm",
    "images.patches": "vision_model.embeddings.patch_embedding",
    "images.stack.norm": "vision_model.post_layernorm",
}

_CLIP = {
    "text_output": "text_projection",
    "image_output": "visual_projection",
    "images.stack.input_norm": "vision_model.pre_layrnorm",
    "scale": "logit_scale",
}

_SIGLIP = {
    "text_output": "text_model.head",
    "images.pool.query": "vision_model.head.probe",
    "images.pool.attention.output": "vision_model.head.attention.out_proj",
    "images.pool.norm": "vision_model.head.layernorm",
    "images.pool.feedforward.inner": "vision_model.head.mlp.fc1",
    "images.pool.feedforward.outer": "vision_model.head.mlp.fc2",
}


def key_map(config: DualEncoderConfig) -> KeyMap:
    """The table of tensors."""
    clip = config.kind == "clip"
    names = _BOTH | (_CLIP if clip else _SIGLIP)
    for ours, public, count in (
        ("reader.blocks", "text_model", config.layers),
        ("images.stack.blocks", "vision_model", config.image_layers),
    ):
        for layer in range(count):
            names |= {f"{ours}.{layer}.{one}": f"{public}.encoder.layers.{layer}.{two}" for one, two in _BLOCK.items()}
    entries = [Entry((ours,), public) for ours, public in names.items()]
    places = Reshaped((-1, config.image_width), (1, -1, config.image_width))
    entries.append(Entry(("images.positions",), "vision_model.embeddings.position_embedding.weight", places))
    if clip:
        token = Reshaped((-1,), (1, 1, -1))
        entries.append(Entry(("images.class_token",), "vision_model.embeddings.class_embedding", token))
    else:
        number = Reshaped((1,), ())
        entries += [Entry(("scale",), "logit_scale", number), Entry(("bias",), "logit_bias", number)]
        for leaf in ("weight", "bias"):
            parts = tuple(f"images.pool.attention.{part}.{leaf}" for part in ("query", "key", "value"))
            entries.append(Entry(parts, f"vision_model.head.attention.in_proj_{leaf}", Joined()))
    return KeyMap(tuple(entries), ignored=("*.position_ids",))


def read_config(values: Mapping[str, Any], where: str) -> DualEncoderConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    clip = values["model_type"] == "clip"
    text, vision = (_part(values, f"{name}_config", where) for name in ("text", "vision"))
    reads, sees = ConfigReader(text, f"{where}, text_config"), ConfigReader(vision, f"{where}, vision_config")
    usual = {"hidden_act": "quick_gelu" if clip else "gelu_pytorch_tanh"}
    activation = reads.choice("hidden_act", usual["hidden_act"], ACTIVATIONS)
    epsilon, dropout = reads.get("layer_norm_eps", 1e-5 if clip else 1e-6), reads.get("attention_dropout", 0.0)
    sees.require(vision_use_head=True, layer_norm_eps=epsilon, attention_dropout=dropout)
    if sees.choice("hidden_act", usual["hidden_act"], ACTIVATIONS) != activation:
        raise UserError(f"{where} has two activations; foveate's models have one for images and texts")
    width = sees.get("hidden_size", 768)
    if not clip:
        reads.require(projection_size=width)
    return DualEncoderConfig(
        vocabulary=reads.get("vocab_size", 49_408 if clip else 32_000),
        kind="clip" if clip else "siglip",
        channels=sees.get("num_channels", 3),
        image_size=sees.get("image_size", 224),
        patch=sees.get("patch_size", 32 if clip else 16),
        image_width=width,
        image_heads=sees.get("num_attention_heads", 12),
        image_feedforward=sees.get("intermediate_size", 3072),
        image_layers=sees.get("num_hidden_layers", 12),
        width=reads.get("hidden_size", 512 if clip else 768),
        heads=reads.get("num_attention_heads", 8 if clip else 12),
        feedforward=reads.get("intermediate_size", 2048 if clip else 3072),
        layers=reads.get("num_hidden_layers", 12),
        max_length=reads.get("max_position_embeddings", 77 if clip else 64),
        embedding=ConfigReader(values, where).get("projection_dim", 512),
        activation=activation,
        epsilon=epsilon,
        dropout=dropout,
    )


def _part(values: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = values.get(name) or {}
    if not isinstance(found, Mapping):
        raise UserError(f"{where} has the {name} {show_value(found)}, which cannot be")
    return found


def write_config(config: DualEncoderConfig) -> dict[str, Any]:
    """The inverse of `read_config`."""
    clip = config.kind == "clip"
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    both = {
        "hidden_act": names[config.activation],
        "layer_norm_eps": config.epsilon,
        "attention_dropout": config.dropout,
    }
    text = {
        **both,
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "intermediate_size": config.feedforward,
        "num_hidden_layers": config.layers,
        "max_position_embeddings": config.max_length,
        **({} if clip else {"projection_size": config.image_width}),
    }
    vision = {
        **both,
        "num_channels": config.channels,
        "image_size": config.image_size,
        "patch_size": config.patch,
        "hidden_size": config.image_width,
        "num_attention_heads": config.image_heads,
        "intermediate_size": config.image_feedforward,
        "num_hidden_layers": config.image_layers,
    }
    return {
        "model_type": config.kind,
        "architectures": ["CLIPModel" if clip else "SiglipModel"],
        **({"projection_dim": config.embedding} if clip else {}),
        "text_config": text,
        "vision_config": vision,
    }


LAYOUT = Layout(
    family="dual-encoder",
    architectures={"CLIPModel": "match", "SiglipModel": "match"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="CLIPImageProcessor",
)
