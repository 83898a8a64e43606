"""transformers' names for a Conditional DETR: `ConditionalDetrForObjectDetection`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveate.interop.key_map import KeyMap
from foveate.interop.keys import detr
from foveate.interop.layout import ConfigReader, Layout, require_defaults
from foveate.models.vision.detr import DETRConfig

_DECODER = {
    "self.query": "sa_qcontent_proj",
    "self.key": "sa_kcontent_proj",
    "self.value": "sa_v_proj",
    "self.position_query": "sa_qpos_proj",
    "self.position_key": "sa_kpos_proj",
    "self.output": "self_attn.out_proj",
    "around_self.norm": "self_attn_layer_norm",
    "cross.query": "ca_qcontent_proj",
    "cross.key": "ca_kcontent_proj",
    "cross.value": "ca_v_proj",
    "cross.position_query": "ca_qpos_proj",
    "cross.position_key": "ca_kpos_proj",
    "cross.wave_query": "ca_qpos_sine_proj",
    "cross.output": "encoder_attn.out_proj",
    "around_cross.norm": "encoder_attn_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}


def key_map(config: DETRConfig) -> KeyMap:
    """The table of tensors."""
    names = {ours: theirs for ours, theirs in detr.file_names(config).items() if not ours.startswith("decoder.")}
    for layer in range(config.decoder_layers):
        for ours, theirs in _DECODER.items():
            if layer == 0 or ours != "cross.position_query":
                names[f"decoder.{layer}.{ours}"] = f"model.decoder.layers.{layer}.{theirs}"
    for ours, theirs in (("point", "ref_point_head"), ("scale", "query_scale")):
        names |= {f"queries.{ours}.{2 * layer}": f"model.decoder.{theirs}.layers.{layer}" for layer in range(2)}
    return KeyMap.of(names)


def read_config(values: Mapping[str, Any], where: str) -> DETRConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    queries = ConfigReader(values, where).get("num_queries", 300)
    return replace(detr.read_config(values, where), boxes="conditional", no_object=False, queries=queries)


def write_config(config: DETRConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for another descendant of DETR."""
    plain = DETRConfig(classes=1, boxes="conditional", no_object=False)
    require_defaults(config, plain, ("norm", "boxes", "no_object", "denoising"), "transformers' ConditionalDetr")
    return {
        **detr.write_config(replace(config, boxes="direct", no_object=True)),
        "model_type": "conditional_detr",
        "architectures": ["ConditionalDetrForObjectDetection"],
    }


LAYOUT = Layout(
    aliases=detr.aliases,
    family="detr",
    architectures={"ConditionalDetrForObjectDetection": "boxes"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    image_processor="ConditionalDetrImageProcessor",
)
