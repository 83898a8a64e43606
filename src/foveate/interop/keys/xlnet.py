"""XLNet in transformers: `XLNetLMHeadModel`, the models with labels, and `XLNetModel` without a head.

Theirs has a projection as (width, heads, head width), and one that is applied the other way round for the output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from foveate.interop.key_map import Entry, KeyMap, Same, Transform
from foveate.interop.layout import ConfigReader, Layout, UnlikeOurs, require_defaults
from foveate.models.text.xlnet import XLNetConfig

_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "distance": "r"}
_OFFSETS = {"content_offset": "r_w_bias", "distance_offset": "r_r_bias", "segment_offset": "r_s_bias"}
_MODULES = {
    "around_self.norm": "rel_attn.layer_norm",
    "feedforward.inner": "ff.layer_1",
    "feedforward.outer": "ff.layer_2",
    "around_feedforward.norm": "ff.layer_norm",
}

_HEADS = {
    "words": {"output": "lm_loss"},
    "text": {"summary": "sequence_summary.summary", "output": "logits_proj"},
    "tokens": {"output": "classifier"},
    "none": {},
}
"""The layers after the body there, by what they predict."""

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "relu": "relu"}

_WORDS = "transformer.word_embedding.weight"

_OTHER_HEADS = ("lm_loss.*", "sequence_summary.*", "logits_proj.*", "classifier.*")
"""What a file may have beside a body that is used alone."""


@dataclass(frozen=True)
class _Projection(Transform):
    """From the width into heads."""

    heads: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].T.unflatten(1, (self.heads, -1))

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.flatten(1).T]


@dataclass(frozen=True)
class _Output(Transform):
    """From heads into the width."""

    heads: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].unflatten(1, (self.heads, -1))

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.flatten(1)]


class _Offset(Transform):
    """A vector for each head."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].squeeze(1)

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.unsqueeze(1)]


class _Segments(Transform):
    """Two vectors for each head."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].transpose(0, 1)

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.transpose(0, 1)]


class _UnknownToken(Transform):
    """One vector."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None, None]

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.flatten()]


def key_map(config: XLNetConfig) -> KeyMap:
    """The table of tensors."""
    body = "" if config.head == "none" else "transformer."
    rows: dict[str, tuple[str, Transform]] = {
        "embedding": (f"{body}word_embedding", Same()),
        "unknown_token": (f"{body}mask_emb", _UnknownToken()),
    }
    rows |= {ours: (theirs, Same()) for ours, theirs in _HEADS[config.head].items()}
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"{body}layer.{layer}"
        attention, other = f"{ours}.self", f"{theirs}.rel_attn"
        for name, short in _PROJECTIONS.items():
            rows[f"{attention}.{name}.weight"] = f"{other}.{short}", _Projection(config.heads)
        rows[f"{attention}.output.weight"] = f"{other}.o", _Output(config.heads)
        rows |= {f"{attention}.{name}": (f"{other}.{short}", _Offset()) for name, short in _OFFSETS.items()}
        rows[f"{attention}.segments"] = f"{other}.seg_embed", _Segments()
        rows |= {f"{ours}.{name}": (f"{theirs}.{own}", Same()) for name, own in _MODULES.items()}
    tied = {"lm_loss.weight": _WORDS} if config.head == "words" else {}
    ignored = _OTHER_HEADS if config.head == "none" else ()
    return KeyMap(tuple(Entry((own,), *row) for own, row in rows.items()), tied, ignored, body)


def read_config(values: Mapping[str, Any], where: str) -> XLNetConfig:
    """The config of a `config.json`. UserError for what our models do not have."""
    read = ConfigReader(values, where)
    read.require(attn_type="bi", bi_data=False, clamp_len=-1, same_length=False, tie_word_embeddings=True)
    read.require(summary_type="last", summary_use_proj=True, summary_activation="tanh")
    width, heads = read.get("d_model", 1024), read.get("n_head", 16)
    if heads and read.get("d_head", width // heads) * heads != width:
        raise UnlikeOurs(f"{where} has heads of the width {values['d_head']}, but {heads} of them must fill {width}")
    dropout = read.get("dropout", 0.1)
    return XLNetConfig(
        vocabulary=read.get("vocab_size", 32000),
        width=width,
        heads=heads,
        layers=read.get("n_layer", 24),
        feedforward=read.get("d_inner", 4096),
        activation=read.choice("ff_activation", "gelu", _ACTIVATIONS),
        epsilon=read.get("layer_norm_eps", 1e-12),
        dropout=dropout,
        attention_dropout=dropout,
    )


def write_config(config: XLNetConfig) -> dict[str, Any]:
    """The inverse of `read_config`. UserError for a model with a window, split or unequal heads."""
    require_defaults(config, XLNetConfig(vocabulary=1), ("window",), "transformers' XLNet")
    kinds = {head: name for name, head in LAYOUT.architectures.items()}
    return {
        "model_type": "xlnet",
        "architectures": [kinds[config.head]],
        "vocab_size": config.vocabulary,
        "d_model": config.width,
        "n_head": config.heads,
        "n_layer": config.layers,
        "d_inner": config.feedforward,
        "ff_activation": {ours: name for name, ours in _ACTIVATIONS.items()}[config.activation],
        "layer_norm_eps": config.epsilon,
        "dropout": config.dropout,
    }


LAYOUT = Layout(
    family="xlnet",
    architectures={
        "XLNetLMHeadModel": "words",
        "XLNetForSequenceClassification": "text",
        "XLNetForTokenClassification": "tokens",
        "XLNetModel": "none",
    },
    key_map=key_map,
    read_config=read_config,
    write_config=write_config,
)
