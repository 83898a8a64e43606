"""transformers' names for a DETR: `DetrForObjectDetection` with a backbone of transformers (`ResNetBackbone`)."""

from collections.abc import Mapping
from typing import Any

from foveate import models
from foveate.errors import UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.interop.keys import resnet
from foveate.interop.layout import ConfigReader, Layout, require_defaults
from foveate.models.vision.detr import DETRConfig
from foveate.models.vision.image_encoder import ImageBody

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
        **{f"backbone.{ours}": theirs for ours, theirs in backbone_names(backbone).items()},
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


def backbone_names(config: Any) -> dict[str, str]:
    """transformers' names of the parts of a `ResNetBackbone`."""
    return resnet.transformers(config, "model.backbone.model.")


def timm_backbone_names(config: Any) -> dict[str, str]:
    """Those of a backbone of timm's, which files of the paper's models have."""
    names = resnet.torchvision(config)
    return {ours: f"model.backbone.conv_encoder.model.{theirs}" for ours, theirs in names.items() if ours != "output"}


IN_FILES = {"model.backbone.": "model.backbone.conv_encoder.", ".mlp.fc": ".fc", ".o_proj": ".out_proj"}
"""What parts of names are in files, and not in the modules."""


def file_names(config: DETRConfig) -> dict[str, str]:
    """transformers' names in files."""
    return {ours: in_file(public) for ours, public in transformers(config, network(config.backbone)).items()}


def in_file(public: str) -> str:
    """transformers' name of a module as it is in files."""
    for part, other in IN_FILES.items():
        public = public.replace(part, other)
    return public


def key_map(config: DETRConfig) -> KeyMap:
    """The table of tensors."""
    return KeyMap.of(file_names(config))


def network(backbone: str | ImageBody) -> Any:
    """The config of a backbone. Raises UserError for one that is not a ResNet."""
    if isinstance(backbone, ImageBody):
        family, values = backbone.family, {**backbone.sizes, "classes": 1}
    else:
        preset = models.preset(backbone)
        family, values = preset.family, {**preset.values, "classes": 1}
    if family != "resnet":
        raise UserError(f"the backbone is a {family}, but transformers' detectors that foveate writes have a ResNet")
    return models.config_class(family)(**values)


def read_config(values: Mapping[str, Any], where: str) -> DETRConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(activation_function="relu", position_embedding_type="sine", dilation=False, auxiliary_loss=False)
    heads, inner = read.get("encoder_attention_heads", 8), read.get("encoder_ffn_dim", 2048)
    read.require(decoder_attention_heads=heads, decoder_ffn_dim=inner)
    return DETRConfig(
        classes=1,
        channels=read.get("num_channels", 3),
        backbone=backbone(values, where),
        width=read.get("d_model", 256),
        heads=heads,
        feedforward=inner,
        encoder_layers=read.get("encoder_layers", 6),
        decoder_layers=read.get("decoder_layers", 6),
        queries=read.get("num_queries", 100),
        dropout=read.get("dropout", 0.1),
        fixed_norms=True,
    )


def backbone(values: Mapping[str, Any], where: str) -> str | ImageBody:
    """The preset with the sizes of a file's backbone, or its body. UserError for another than a ResNet."""
    given = values.get("backbone_config")
    if not isinstance(given, Mapping):
        name = values.get("backbone", "resnet50")
        if name not in models.presets(("resnet",)):
            raise UserError(f"{where} has the backbone {show_value(name)}; foveate's are ResNets")
        return str(name)
    if "model_type" in given and given["model_type"] != "resnet":
        raise UserError(f"{where} has a backbone of the type {show_value(given['model_type'])}; foveate's are ResNets")
    sizes = resnet.read_config(given, f"{where}, backbone_config")
    for name, preset in models.presets(("resnet",)).items():
        own = models.config_class("resnet")(classes=1, **preset.values)
        if (own.blocks, own.widths, own.block, own.stem) == (sizes.blocks, sizes.widths, sizes.block, "7x7"):
            return name
    return ImageBody.of(sizes)


def write_config(config: DETRConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a descendant of DETR."""
    require_defaults(config, DETRConfig(classes=1), ("norm", "boxes", "no_object", "denoising"), "transformers' DETR")
    return {
        "model_type": "detr",
        "architectures": ["DetrForObjectDetection"],
        **backbone_fields(config.backbone, [f"stage{len(network(config.backbone).blocks)}"]),
        "num_channels": config.channels,
        "d_model": config.width,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.feedforward,
        "decoder_ffn_dim": config.feedforward,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "num_queries": config.queries,
        "dropout": config.dropout,
    }


def backbone_fields(name: str | ImageBody, stages: list[str]) -> dict[str, Any]:
    """The fields of a `config.json` that say which ResNet is read, and which of its stages."""
    return {
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": {**resnet.write_config(network(name)), "out_features": stages},
    }


def aliases(config: DETRConfig) -> dict[str, str]:
    """The names of timm's backbone, and those that they stand for."""
    names = file_names(config)
    return {timm: names[f"backbone.{ours}"] for ours, timm in timm_backbone_names(network(config.backbone)).items()}


LAYOUT = Layout(
    aliases=aliases,
    family="detr",
    architectures={"DetrForObjectDetection": "boxes"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="DetrImageProcessor",
)
