"""transformers' `VisionEncoderDecoderModel`: a model that encodes images before a decoder, each with the names that it
has by itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveate.errors import UserError, show_value
from foveate.interop.key_map import Entry, KeyMap
from foveate.interop.keys import beit, deit, dinov2, swin, vit
from foveate.interop.keys.image_decoders import DECODERS, DecoderLayout
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs
from foveate.models.multimodal.vision_encoder_decoder import VisionEncoderDecoderConfig, places_width
from foveate.models.vision.image_encoder import ImageBody
from foveate.models.vision.swin import SwinConfig

Config = VisionEncoderDecoderConfig


def _read_donut(values: Mapping[str, Any], where: str) -> SwinConfig:
    return replace(swin.read_config(values, where), last_norm=False)


def _write_donut(config: SwinConfig) -> dict[str, Any]:
    if config.last_norm or config.version != "v1":
        raise UserError("transformers' Donut encodes images by a Swin without its last norm")
    return {**swin.write_config(replace(config, last_norm=True)), "model_type": "donut-swin"}


ENCODERS: dict[str, Layout] = {
    "vit": vit.LAYOUT,
    "deit": deit.LAYOUT,
    "beit": beit.LAYOUT,
    "dinov2": dinov2.LAYOUT,
    "swin": swin.LAYOUT,
    "swinv2": swin.LAYOUT,
    "donut-swin": replace(swin.LAYOUT, read_config=_read_donut, write_config=_write_donut),
}
"""The models that encode images, by their "model_type"."""

_PARTS: dict[str, Mapping[str, Any]] = {"encoder": ENCODERS, "decoder": DECODERS}

_OF_CLASSIFIERS = ("architectures", "classes", "id2label", "label2id")

_IGNORED = ("encoder.pooler.dense.*", "*mask_token", "*.attn.bias", "*.attn.masked_bias", "*position_ids")


def encoder_layout(config: Config) -> tuple[Layout, dict[str, Any]]:
    """The layout of the part that encodes images, and its table of a `config.json`.

    Raises UserError where none can hold it.
    """
    if isinstance(config.vision, ImageBody):
        raise UserError(f"transformers has no such model with a {config.vision.family}: it is not written")
    family = "swin" if isinstance(config.vision, SwinConfig) else "vit"
    refusals = []
    for layout in ENCODERS.values():
        if layout.family == family:
            try:
                return layout, layout.write_config(config.vision)
            except UserError as error:
                refusals.append(error)
    raise refusals[0]


def decoder_layout(config: Config) -> tuple[str, DecoderLayout, dict[str, Any]]:
    """The kind of the decoder, and the same of it."""
    refusals = []
    for kind, layout in DECODERS.items():
        try:
            return kind, layout, layout.write(config)
        except UserError as error:
            refusals.append(error)
    raise refusals[0]


def key_map(config: Config) -> KeyMap:
    """The tables of both parts, and the connector between them."""
    own, decoder = encoder_layout(config)[0].key_map(config.vision), decoder_layout(config)[1]
    entries = [_inside(entry) for entry in own.entries if entry.ours != ("output",)]
    if config.connector:
        entries.append(Entry(("connector",), "enc_to_dec_proj"))
    return KeyMap((*entries, *decoder.entries(config)), decoder.tied(config), (*own.ignored, *_IGNORED))


def _inside(entry: Entry) -> Entry:
    """A tensor of a model as one of the part that encodes images: without the name of its body."""
    public = entry.public.partition(".")[2]
    return replace(entry, ours=tuple(f"image_encoder.{name}" for name in entry.ours), public=f"encoder.{public}")


def settle(config: Config, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the vectors of token types, one is added to what is written: that of the first."""
    return {
        name: value[:1] if name.endswith("token_type_embeddings.weight") else value for name, value in given.items()
    }


def read_config(values: Mapping[str, Any], where: str) -> Config:
    """The config of a `config.json`. UserError for what our models do not have."""
    encoder, decoder = (_table(values, name, known, where) for name, known in _PARTS.items())
    vision = ENCODERS[encoder["model_type"]].read_config(encoder, f"{where}, encoder")
    if hasattr(vision, "head"):
        vision.head = "none"
    read = ConfigReader(decoder, f"{where}, decoder")
    config = Config(vision=vision, **DECODERS[decoder["model_type"]].read(read))
    own = read.get("cross_attention_hidden_size", None)
    if own is not None and own != places_width(vision):
        raise read.error(f"cross_attention_hidden_size is {own}, but the places are {places_width(vision)} wide")
    config.connector = own is None and places_width(vision) != config.width
    return config


def has_known_parts(values: Mapping[str, Any]) -> bool:
    """Whether we have models equal to both parts."""
    kinds = [part.get("model_type") if isinstance(part := values.get(name), Mapping) else None for name in _PARTS]
    return all(kind in known for kind, known in zip(kinds, _PARTS.values(), strict=True))


def _table(values: Mapping[str, Any], name: str, known: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table of a part. UserError for one of a kind that we have no equal model of."""
    table = values.get(name)
    kind = table.get("model_type") if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping) or not isinstance(kind, str) or kind not in known:
        raise UnlikeOurs(f"{where} has the {name} {show_value(kind)}; foveate's models have {', '.join(known)}")
    return table


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for parts that the public models lack."""
    of_encoder = encoder_layout(config)[1]
    decoder, _, of_decoder = decoder_layout(config)
    if config.connector and places_width(config.vision) == config.width:
        raise UserError("transformers has no connector between parts of equal width")
    return {
        "model_type": "vision-encoder-decoder",
        "architectures": ["VisionEncoderDecoderModel"],
        "encoder": {name: value for name, value in of_encoder.items() if name not in _OF_CLASSIFIERS},
        "decoder": {**of_decoder, "model_type": decoder, "is_decoder": True, "is_encoder_decoder": False},
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
    }


LAYOUT = Layout(
    family="vision-encoder-decoder",
    architectures={"VisionEncoderDecoderModel": "words"},
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
    settle=settle,
    reads=has_known_parts,
    image_processor="ViTImageProcessor",
)
