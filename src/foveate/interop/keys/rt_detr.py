"""transformers' names for an RT-DETR: `RTDetrForObjectDetection`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveate import models
from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys import deformable_detr, detr, resnet
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.vision.image_encoder import ImageBody
from foveate.models.vision.resnet import ResNetConfig
from foveate.models.vision.rt_detr import RTDETRConfig

GROUPS = 3
"""Groups of noisy boxes in a training from a folder, which counts queries instead."""

_DECODER = deformable_detr.DECODER

_ENCODER = {ours: theirs for ours, theirs in _DECODER.items() if "cross" not in ours}

_PARTS = {"convolution": "conv", "norm": "norm"}

_FUSION = {
    "main": "conv1",
    "shortcut": "conv2",
    **{f"blocks.{number}.wide": f"bottlenecks.{number}.conv1" for number in range(3)},
    **{f"blocks.{number}.narrow": f"bottlenecks.{number}.conv2" for number in range(3)},
}


def key_map(config: RTDETRConfig) -> KeyMap:
    """The table of tensors."""
    backbone = resnet.transformers(detr.network(config.backbone), "model.backbone.model.")
    names = {f"backbone.{ours}": theirs for ours, theirs in backbone.items()} | _encoder(config)
    for level in range(config.backbone_stages):
        for ours, theirs in (("project", "encoder_input_proj"), ("join", "decoder_input_proj")):
            names |= {f"{ours}.{level}.convolution": f"model.{theirs}.{level}.0"}
            names |= {f"{ours}.{level}.norm": f"model.{theirs}.{level}.1"}
    names |= {"proposals.project": "model.enc_output.0", "proposals.norm": "model.enc_output.1"}
    names |= {"proposals.output": "model.enc_score_head"}
    names |= {f"proposals.box.{2 * number}": f"model.enc_bbox_head.layers.{number}" for number in range(3)}
    names |= {f"queries.project.{2 * number}": f"model.decoder.query_pos_head.layers.{number}" for number in range(2)}
    if config.denoising:
        names["queries.labels"] = "model.denoising_class_embed"
    for layer in range(config.decoder_layers):
        place = f"model.decoder.layers.{layer}"
        names |= {f"decoder.blocks.{layer}.{ours}": f"{place}.{theirs}" for ours, theirs in _DECODER.items()}
        names[f"decoder.output.{layer}"] = f"model.decoder.class_embed.{layer}"
        boxes = f"model.decoder.bbox_embed.{layer}.layers"
        names |= {f"decoder.box.{layer}.{2 * number}": f"{boxes}.{number}" for number in range(3)}
    copies: dict[str, str] = {}
    for head in ("class_embed", "bbox_embed"):  # which older files have twice
        own = [public for public in names.values() if f".{head}." in public]
        copies |= {
            f"{one.removeprefix('model.decoder.')}.{leaf}": f"{one}.{leaf}"
            for one in own
            for leaf in ("weight", "bias")
        }
    return KeyMap.of(names, copies)


def _encoder(config: RTDETRConfig) -> dict[str, str]:
    """The names of the hybrid encoder."""
    names: dict[str, str] = {}
    for layer in range(config.encoder_layers):
        place = f"model.encoder.encoder.0.layers.{layer}"
        names |= {f"encoder.blocks.{layer}.{ours}": f"{place}.{theirs}" for ours, theirs in _ENCODER.items()}
    joins = dict(_FUSION)
    if config.fusion_width != config.encoder_width:
        joins["output"] = "conv3"
    for step in range(config.backbone_stages - 1):
        layers = {
            f"encoder.lateral.{step}": f"lateral_convs.{step}",
            f"encoder.shrink.{step}": f"downsample_convs.{step}",
        }
        for ours, theirs in (("down", "fpn_blocks"), ("up", "pan_blocks")):
            layers |= {f"encoder.{ours}.{step}.{one}": f"{theirs}.{step}.{two}" for one, two in joins.items()}
        for ours, theirs in layers.items():
            names |= {f"{ours}.{one}": f"model.encoder.{theirs}.{two}" for one, two in _PARTS.items()}
    return names


def read_config(values: Mapping[str, Any], where: str) -> RTDETRConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(encoder_activation_function="gelu", activation_function="silu", decoder_activation_function="relu")
    read.require(normalize_before=False, learn_initial_query=False, with_box_refine=True, eval_size=None)
    read.require(
        anchor_image_size=None, positional_encoding_temperature=10000, layer_norm_eps=1e-5, batch_norm_eps=1e-5
    )
    heads, encoder = read.get("encoder_attention_heads", 8), read.get("encoder_hidden_dim", 256)
    levels = len(read.numbers("encoder_in_channels", (512, 1024, 2048)))
    read.require(decoder_attention_heads=heads, num_feature_levels=levels, encode_proj_layers=[levels - 1])
    read.require(decoder_in_channels=[encoder] * levels)
    return RTDETRConfig(
        classes=1,
        backbone=_backbone(values, levels, where),
        fixed_norms=read.get("freeze_backbone_batch_norms", True),
        backbone_stages=levels,
        encoder_width=encoder,
        encoder_feedforward=read.get("encoder_ffn_dim", 1024),
        encoder_layers=read.get("encoder_layers", 1),
        fusion_width=int(encoder * read.get("hidden_expansion", 1.0)),
        width=read.get("d_model", 256),
        heads=heads,
        feedforward=read.get("decoder_ffn_dim", 1024),
        decoder_layers=read.get("decoder_layers", 6),
        decoder_points=read.get("decoder_n_points", 4),
        queries=read.get("num_queries", 300),
        denoising=GROUPS if read.get("num_denoising", 100) else None,
        dropout=read.get("dropout", 0.0),
    )


def _backbone(values: Mapping[str, Any], levels: int, where: str) -> str | ImageBody:
    """The preset with the sizes of a file's backbone, or its body. UserError for another than a ResNet."""
    given = values.get("backbone_config") or {}
    if not isinstance(given, Mapping) or given.get("model_type", "rt_detr_resnet") != "rt_detr_resnet":
        raise UserError(f"{where} has the backbone_config {show_value(given)}; foveate's are ResNets")
    sizes = resnet.read_config(given, f"{where}, backbone_config")
    named = given.get("out_features")
    stages = [f"stage{number}" for number in range(1, len(sizes.blocks) + 1)]
    if named is not None and named != stages[-levels:]:
        raise UserError(f"{where} has the out_features {show_value(named)}; foveate reads the last {levels} stages")
    for name, preset in models.presets(("resnet",)).items():
        own = ResNetConfig(classes=1, **preset.values)
        if (own.blocks, own.widths, own.block, own.stem) == (sizes.blocks, sizes.widths, sizes.block, "deep"):
            return name
    return ImageBody.of(replace(sizes, stem="deep", shortcut="pooled"))


def write_config(config: RTDETRConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for another backbone than that of transformers."""
    network = detr.network(config.backbone)
    if (network.stem, network.shortcut) != ("deep", "pooled"):
        raise UserError("the backbone is not one such as resnet18-vd, which transformers' RT-DETR has")
    outer = [width * (resnet.EXPANSION if network.block == "bottleneck" else 1) for width in network.widths]
    levels, count = config.backbone_stages, len(outer)
    return {
        "model_type": "rt_detr",
        "architectures": ["RTDetrForObjectDetection"],
        "backbone_config": {
            "model_type": "rt_detr_resnet",
            **resnet.size_fields(network),
            "out_features": [f"stage{count - own}" for own in reversed(range(levels))],
        },
        "freeze_backbone_batch_norms": config.fixed_norms,
        "encoder_in_channels": outer[-levels:],
        "feat_strides": [32 >> own for own in reversed(range(levels))],
        "encode_proj_layers": [levels - 1],
        "encoder_hidden_dim": config.encoder_width,
        "encoder_ffn_dim": config.encoder_feedforward,
        "encoder_layers": config.encoder_layers,
        "encoder_attention_heads": config.heads,
        "hidden_expansion": config.fusion_width / config.encoder_width,
        "d_model": config.width,
        "num_feature_levels": levels,
        "decoder_in_channels": [config.encoder_width] * levels,
        "decoder_attention_heads": config.heads,
        "decoder_ffn_dim": config.feedforward,
        "decoder_layers": config.decoder_layers,
        "decoder_n_points": config.decoder_points,
        "num_queries": config.queries,
        "num_denoising": 100 if config.denoising else 0,
        "dropout": config.dropout,
    }


LAYOUT = Layout(
    family="rt-detr",
    architectures={"RTDetrForObjectDetection": "boxes"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="RTDetrImageProcessor",
)
