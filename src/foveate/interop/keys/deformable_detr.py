"""transformers' names for a Deformable DETR: `DeformableDetrForObjectDetection`."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys import detr
from foveate.interop.layout import ConfigReader, Layout
from foveate.models.vision.deformable_detr import DeformableDETRConfig

POINTS = {"offsets": "sampling_offsets", "logits": "attention_weights", "value": "value_proj", "output": "output_proj"}

_FEEDFORWARD = {"feedforward.inner": "fc1", "feedforward.outer": "fc2", "around_feedforward.norm": "final_layer_norm"}

_ENCODER = {
    **{f"self.{ours}": f"self_attn.{theirs}" for ours, theirs in POINTS.items()},
    "around_self.norm": "self_attn_layer_norm",
    **_FEEDFORWARD,
}

DECODER = {
    **{
        f"self.{ours}": f"self_attn.{theirs}_proj"
        for ours, theirs in zip(("query", "key", "value"), "qkv", strict=True)
    },
    "self.output": "self_attn.out_proj",
    "around_self.norm": "self_attn_layer_norm",
    **{f"cross.{ours}": f"encoder_attn.{theirs}" for ours, theirs in POINTS.items()},
    "around_cross.norm": "encoder_attn_layer_norm",
    **_FEEDFORWARD,
}


def key_map(config: DeformableDETRConfig) -> KeyMap:
    """The table of tensors. Those of heads are twice in the model, and once in files."""
    backbone = detr.backbone_names(detr.network(config.backbone))
    names = {f"backbone.{ours}": detr.in_file(theirs) for ours, theirs in backbone.items()}
    names |= {
        f"project.{level}.{part}": f"model.input_proj.{level}.{part}"
        for level in range(config.levels)
        for part in range(2)
    }
    names["level_positions"] = "model.level_embed"
    for layer in range(config.encoder_layers):
        names |= {
            f"encoder.{layer}.{ours}": f"model.encoder.layers.{layer}.{theirs}" for ours, theirs in _ENCODER.items()
        }
    for layer in range(config.decoder_layers):
        place = f"model.decoder.layers.{layer}"
        names |= {f"decoder.blocks.{layer}.{ours}": f"{place}.{theirs}" for ours, theirs in DECODER.items()}
    if config.boxes == "proposed":
        names |= {"proposals.project": "model.enc_output", "proposals.norm": "model.enc_output_norm"}
        names |= {"queries.project": "model.pos_trans", "queries.norm": "model.pos_trans_norm"}
    else:
        names |= {"queries.table": "model.query_position_embeddings.weight", "queries.point": "model.reference_points"}
    tied: dict[str, str] = {}
    for ours, head, other in _heads(config):
        names[ours] = head
        tied |= {f"{copy}.{leaf}": f"{head}.{leaf}" for copy in other for leaf in ("weight", "bias")}
    return KeyMap.of(names, tied)


def _heads(config: DeformableDETRConfig) -> list[tuple[str, str, list[str]]]:
    """Our name of each layer of each head, the public one, and other public names of the same layer."""
    layers, found = config.decoder_layers, []
    where = {"class_embed": config.boxes == "proposed", "bbox_embed": config.boxes != "direct"}
    for head, in_decoder in where.items():
        for number in range(layers + (config.boxes == "proposed") if config.boxes != "direct" else 1):
            ours = "proposals" if number == layers else "decoder"
            ends = [("output" if ours == "proposals" else f"output.{number}", "")]
            if head == "bbox_embed":
                box = "box" if ours == "proposals" else f"box.{number}"
                ends = [(f"{box}.{2 * layer}", f".layers.{layer}") for layer in range(3)]
            copies = [f"{head}.{other}" for other in range(1, layers)] if config.boxes == "direct" else []
            copies += [f"{head}.{number}"] if in_decoder else []
            public = f"model.decoder.{head}.{number}" if in_decoder else f"{head}.{number}"
            for end, leaf in ends:
                found.append((f"{ours}.{end}", f"{public}{leaf}", [f"{copy}{leaf}" for copy in copies]))
    return found


def settle(config: DeformableDETRConfig, given: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Files leave out the classes of further layers where they are those of the first one."""
    if config.boxes != "refined":
        return given
    found = dict(given)
    for number in range(1, config.decoder_layers):
        for leaf in ("weight", "bias"):
            first = given.get(f"class_embed.0.{leaf}")
            if first is not None:
                found.setdefault(f"class_embed.{number}.{leaf}", first)
    return found


def read_config(values: Mapping[str, Any], where: str) -> DeformableDETRConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(activation_function="relu", position_embedding_type="sine", dilation=False)
    heads, inner = read.get("encoder_attention_heads", 8), read.get("encoder_ffn_dim", 1024)
    read.require(decoder_attention_heads=heads, decoder_ffn_dim=inner)
    refined, proposed = read.get("with_box_refine", False), read.get("two_stage", False)
    if proposed and not refined:
        raise UserError(f"{where} has two_stage True, but with_box_refine False")
    levels = read.get("num_feature_levels", 4)
    backbone = detr.backbone(values, where)
    return DeformableDETRConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        backbone=backbone,
        fixed_norms=True,
        backbone_stages=_stages(values, levels, len(detr.network(backbone).blocks), where),
        levels=levels,
        width=read.get("d_model", 256),
        heads=heads,
        feedforward=inner,
        encoder_layers=read.get("encoder_layers", 6),
        decoder_layers=read.get("decoder_layers", 6),
        encoder_points=read.get("encoder_n_points", 4),
        decoder_points=read.get("decoder_n_points", 4),
        queries=read.get("two_stage_num_proposals", 300) if proposed else read.get("num_queries", 300),
        boxes="proposed" if proposed else "refined" if refined else "direct",
        dropout=read.get("dropout", 0.1),
    )


def _stages(values: Mapping[str, Any], levels: int, count: int, where: str) -> int:
    """How many stages of the backbone are read: those at its end. UserError for others."""
    given = values.get("backbone_config")
    named = given.get("out_features") if isinstance(given, Mapping) else None
    if named is None:
        return 3 if levels > 1 else 1
    wanted = [f"stage{number}" for number in range(1, count + 1)]
    if not isinstance(named, list) or not named or named != wanted[-len(named) :]:
        raise UserError(f"{where} has the out_features {show_value(named)}; foveate reads the last stages")
    return len(named)


def write_config(config: DeformableDETRConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a width that transformers cannot normalise."""
    if config.width % 32:
        raise UserError(f"the width is {config.width}, but transformers' Deformable DETR needs a multiple of 32")
    count = len(detr.network(config.backbone).blocks)
    return {
        "model_type": "deformable_detr",
        "architectures": ["DeformableDetrForObjectDetection"],
        **detr.backbone_fields(
            config.backbone, [f"stage{count - own}" for own in reversed(range(config.backbone_stages))]
        ),
        "num_channels": config.channels,
        "num_feature_levels": config.levels,
        "d_model": config.width,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.feedforward,
        "decoder_ffn_dim": config.feedforward,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_n_points": config.encoder_points,
        "decoder_n_points": config.decoder_points,
        "num_queries": config.queries,
        "two_stage_num_proposals": config.queries,
        "with_box_refine": config.boxes != "direct",
        "two_stage": config.boxes == "proposed",
        "dropout": config.dropout,
    }


def aliases(config: DeformableDETRConfig) -> dict[str, str]:
    """The names of timm's backbone, and those that they stand for."""
    names, timm = key_map(config).names, detr.timm_backbone_names(detr.network(config.backbone))
    return {theirs: names[f"backbone.{ours}"] for ours, theirs in timm.items()}


LAYOUT = Layout(
    aliases=aliases,
    family="deformable-detr",
    architectures={"DeformableDetrForObjectDetection": "boxes"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    settle=settle,
    image_processor="DeformableDetrImageProcessor",
)
