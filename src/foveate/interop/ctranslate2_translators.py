"""Encoder-decoders of `models/text/transformer.py` for CTranslate2, by a specification of our own: its converters know
models of other libraries alone, and have norms and positions of fewer kinds."""

import importlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.interop.layout import require_defaults, require_public
from foveate.models.text.transformer import TransformerConfig

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu-tanh": "GELUTanh", "silu": "SWISH"}

LONGEST = 1024
"""Positions that are written of a model that reads any length."""


def write_translator(
    folder: Path, model: nn.Module, vocabularies: tuple[Sequence[str], Sequence[str]], special: Mapping[str, str]
) -> None:
    """Write the folder of a model. The vocabularies of source and target name every row of its embeddings; `special`
    has the names of the "unk_token", the "eos_token" and the "decoder_start_token".

    Raises UserError for parts that CTranslate2 lacks.
    """
    specs = importlib.import_module("ctranslate2.specs")
    config: Any = model.config
    require_public(config, "CTranslate2's Transformer")
    require_defaults(
        config, TransformerConfig(src_vocab=1, tgt_vocab=1), ("window", "position_join"), "CTranslate2's Transformer"
    )
    if config.positions not in ("sinusoidal", "learned"):
        raise UserError(
            f"CTranslate2's Transformer has no {config.positions} positions of this kind: train with other ones"
        )
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.common_spec.Activation, ACTIVATIONS[config.activation]),
        layernorm_embedding=config.input_norm,
    )
    for own, side, blocks in (("source", "encoder", spec.encoder), ("target", "decoder", spec.decoder)):
        _side(blocks, model, own, side)
    spec.decoder.projection.weight = _numbers(model.get_parameter("output.weight"))
    if config.logit_bias:
        spec.decoder.projection.bias = _numbers(model.get_buffer("logit_bias"))
    for name, value in special.items():
        setattr(spec.config, name, value)
    source, target = vocabularies
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))


def _side(spec: Any, model: Any, own: str, side: str) -> None:
    """The encoder or the decoder, with its embeddings and positions."""
    config = model.config
    embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embeddings.weight = _numbers(getattr(model, f"{own}_embedding").weight)
    spec.scale_embeddings = math.sqrt(config.width) if config.scale_embedding else 1.0
    positions = getattr(model, f"{own}_positions").positions
    spec.position_encodings.encodings = _numbers(positions(min(getattr(positions, "length", LONGEST), LONGEST)))
    if config.input_norm:
        _norm(spec.layernorm_embedding, getattr(model, f"{own}_norm"))
    if config.norm == "pre":
        _norm(spec.layer_norm, getattr(model, f"{side}_norm"))
    for layer, block in zip(spec.layer, getattr(model, side), strict=True):
        _attention(layer.self_attention, block.self, block.around_self.norm)
        if side == "decoder":
            _attention(layer.attention, block.cross, block.around_cross.norm)
        _norm(layer.ffn.layer_norm, block.around_feedforward.norm)
        _linear(layer.ffn.linear_0, block.feedforward.inner)
        _linear(layer.ffn.linear_1, block.feedforward.outer)


def _attention(spec: Any, layer: Any, norm: Any) -> None:
    """Projections that read the same vectors are one matrix: of queries, keys and values, or of keys and values."""
    projections = (layer.query, layer.key, layer.value)
    groups = (projections,) if len(spec.linear) == 2 else (projections[:1], projections[1:])
    for one, group in zip(spec.linear, groups, strict=False):
        _linear(one, *group)
    _linear(spec.linear[-1], layer.output)
    _norm(spec.layer_norm, norm)


def _linear(spec: Any, *layers: Any) -> None:
    spec.weight = _numbers(torch.cat([layer.weight for layer in layers]))
    spec.bias = _numbers(torch.cat([layer.bias for layer in layers]))


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _numbers(norm.weight), _numbers(norm.bias)


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().contiguous().numpy()
