"""transformers' names for a DETR: `DetrForObjectDetection` with a backbone of transformers (`ResNetBackbone`)."""

from typing import Any

from foveate.models.vision.detr import DETRConfig

_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}

_ENCODER = {
    **{f"self.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_self.norm": "self_attn_layer_norm",
    "feedforward.inner": "mlp.fc1",
    "feedforward.outer": "mlp.fc2",
    "around_feedforward.norm": "final_layer_norm",
}

_DECODER = {
    **_ENCODER,
    **{f"cross.{ours}": f"encoder_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
    "around_cross.norm": "encoder_attn_layer_norm",
}


def transformers(config: DETRConfig, backbone: Any) -> dict[str, str]:
    """For the paper's model (`norm="post"`, `boxes="direct"`); `backbone` is the config of its ResNet.

    The names of the learned queries are those of the parameter, of all others those of the module.
    """
    names = {
        "project": "model.input_projection",
        "queries.table": "model.query_position_embeddings.weight",
        "decoder_norm": "model.decoder.layernorm",
        "output": "class_labels_classifier",
        **{f"box.{2 * layer}": f"bbox_predictor.layers.{layer}" for layer in range(3)},
        **{f"backbone.{ours}": f"model.backbone.model.{theirs}" for ours, theirs in _resnet(backbone).items()},
    }
    for part, count, table in (
        ("encoder", config.encoder_layers, _ENCODER),
        ("decoder", config.decoder_layers, _DECODER),
    ):
        for layer in range(count):
            names |= {
                f"{part}.{layer}.{ours}": f"model.{part}.layers.{layer}.{theirs}" for ours, theirs in table.items()
            }
    return names


def _resnet(config: Any) -> dict[str, str]:
    """transformers' names of the parts of a `ResNetBackbone`."""
    names = {}
    parts = {"convolution": "convolution", "norm": "normalization"}
    for ours, theirs in parts.items():
        names[f"stem.0.{ours}"] = f"embedder.embedder.{theirs}"
    bottleneck = config.block == "bottleneck"
    for stage, count in enumerate(config.blocks):
        for ours, theirs in parts.items():
            for block in range(count):
                for layer in range(3 if bottleneck else 2):
                    place = f"encoder.stages.{stage}.layers.{block}.layer.{layer}"
                    names[f"stages.{stage}.{block}.branch.{layer}.{ours}"] = f"{place}.{theirs}"
            if stage or bottleneck:
                names[f"stages.{stage}.0.shortcut.{ours}"] = f"encoder.stages.{stage}.layers.0.shortcut.{theirs}"
    return names
