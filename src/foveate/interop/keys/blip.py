"""transformers' `BlipForConditionalGeneration`: a vision Transformer, and a BERT that writes about what it encoded."""

from collections.abc import Mapping
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, Joined, KeyMap
from foveate.interop.keys import bert, vit
from foveate.interop.keys.image_decoders import bert_names, read_bert, write_bert
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.multimodal.vision_encoder_decoder import VisionEncoderDecoderConfig, places_width
from foveate.models.vision.vit import ViTConfig

Config = VisionEncoderDecoderConfig

_BLOCK = {
    "self.output": "self_attn.projection",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_self.norm": "layer_norm1",
    "around_feedforward.norm": "layer_norm2",
}

_VISION = {
    "class_token": "embeddings.class_embedding",
    "positions": "embeddings.position_embedding",
    "patches": "embeddings.patch_embedding",
    "stack.norm": "post_layernorm",
}

_WORDS = "text_decoder.bert.embeddings.word_embeddings.weight"

_PREDICTIONS = "text_decoder.cls.predictions"


def key_map(config: Config) -> KeyMap:
    """The table of tensors."""
    entries = [Entry((f"image_encoder.{ours}",), f"vision_model.{public}") for ours, public in _VISION.items()]
    for layer in range(config.vision.layers):  # type: ignore[union-attr]
        ours, public = f"image_encoder.stack.blocks.{layer}", f"vision_model.encoder.layers.{layer}"
        projections = tuple(f"{ours}.self.{part}" for part in ("query", "key", "value"))
        entries.append(Entry(projections, f"{public}.self_attn.qkv", Joined()))
        entries += [Entry((f"{ours}.{own}",), f"{public}.{name}") for own, name in _BLOCK.items()]
    names = bert_names(config, "text_decoder.", "bert", bert.LEGACY_WORDS)
    entries += [Entry((ours,), public) for ours, public in names.items()]
    tied = {f"{_PREDICTIONS}.decoder.bias": f"{_PREDICTIONS}.bias"}
    if config.tie:
        tied[f"{_PREDICTIONS}.decoder.weight"] = _WORDS
    return KeyMap(tuple(entries), tied, ("*.position_ids",))


_IMAGES = {
    **vit.SIZES,
    "patch": ("patch_size", 16),
    "image_size": ("image_size", 384),
    "epsilon": ("layer_norm_eps", 1e-5),
}
del _IMAGES["dropout"], _IMAGES["attention_dropout"]


def read_config(values: Mapping[str, Any], where: str) -> Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    images, text = read.inside("vision_config"), read.inside("text_config")
    sizes = {ours: images.get(public, usual) for ours, (public, usual) in _IMAGES.items()}
    vision = ViTConfig(
        classes=1,
        head="none",
        activation=images.choice("hidden_act", "gelu", vit.ACTIVATIONS),
        attention_dropout=images.get("attention_dropout", 0.0),
        **sizes,
    )
    own = {"max_length": text.get("max_position_embeddings", 512), "vocabulary": text.get("vocab_size", 30524)}
    config = Config(vision=vision, **read_bert(text, heads=text.get("num_attention_heads", 8), **own))
    if text.get("encoder_hidden_size", places_width(vision)) != places_width(vision):
        raise text.error(f"encoder_hidden_size is not {places_width(vision)}, the width of what encodes images")
    return config


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public model lacks."""
    if config.connector or config.token_type or config.position_offset is not None:
        raise UserError("transformers' BLIP has no connector, no token types and no offset of positions")
    if not isinstance(config.vision, ViTConfig):
        raise UserError("transformers' BLIP encodes images by a vision Transformer")
    images = vit.write_sizes(config.vision, "blip_vision_model", "BlipVision")
    kept = [public for public, _ in _IMAGES.values()]
    return {
        "model_type": "blip",
        "architectures": ["BlipForConditionalGeneration"],
        "vision_config": {
            **{name: images[name] for name in (*kept, "hidden_act")},
            "attention_dropout": config.vision.attention_dropout,
            "model_type": "blip_vision_model",
        },
        "text_config": {
            **write_bert(config, "BLIP"),
            "max_position_embeddings": config.max_length,
            "encoder_hidden_size": config.vision.width,
            "model_type": "blip_text_model",
        },
        "tie_word_embeddings": config.tie,
    }


LAYOUT = Layout(
    family="vision-encoder-decoder",
    architectures={"BlipForConditionalGeneration": "words"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="BlipImageProcessor",
)
