"""Decoders that write about an encoded image, by their "model_type" in transformers: the part of a
`vision-encoder-decoder` behind its encoder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foveate.errors import UserError
from foveate.interop.key_map import Entry, JoinedTransposed
from foveate.interop.keys import bart, bert, gpt
from foveate.interop.layout import ConfigReader
from foveate.models.multimodal.vision_encoder_decoder import VisionEncoderDecoderConfig, places_width

Config = VisionEncoderDecoderConfig
Fields = dict[str, Any]


@dataclass(frozen=True)
class DecoderLayout:
    """How transformers has the decoder of a kind."""

    entries: Callable[[Config], list[Entry]]
    """The table of its tensors."""
    output: str
    """The weights of its output layer."""
    embedding: str
    """Those of its embeddings."""
    read: Callable[[ConfigReader], Fields]
    """The fields of our config from the decoder's table in a `config.json`."""
    write: Callable[[Config], Fields]
    """The inverse. UserError for a config that such a decoder cannot hold."""
    bias: str = ""
    """A second name of the bias of the output layer."""

    def tied(self, config: Config) -> dict[str, str]:
        """Tensors that are the same as another one."""
        found = {self.output: self.embedding} if config.tie else {}
        if self.bias:
            found[self.bias] = self.bias.replace("decoder.bias", "bias")
        return found


_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "silu": "silu", "swish": "silu"}

_PUBLIC = {ours: public for public, ours in reversed(_ACTIVATIONS.items())}


def _blocks(config: Config, prefix: str, names: Mapping[str, str]) -> dict[str, str]:
    """The names of the parts of all blocks."""
    return {
        f"decoder.{layer}.{ours}": f"{prefix}.{layer}.{public}"
        for layer in range(config.decoder_layers)
        for ours, public in names.items()
    }


def _as_entries(names: Mapping[str, str]) -> list[Entry]:
    return [Entry((ours,), public) for ours, public in names.items()]


def _require(config: Config, kind: str, **values: Any) -> None:
    """UserError for a config with another value of a field than decoders of a kind have."""
    for name, value in values.items():
        if (found := getattr(config, name)) != value:
            raise UserError(f"this decoder has the {name} {found!r}, but transformers' {kind} {value!r}")


def _own_width(config: Config, kind: str) -> None:
    """UserError for attention to places of another width than the decoder's, which only TrOCR's has."""
    if not config.connector and places_width(config.vision) != config.width:
        raise UserError(f"transformers' {kind} reads places as wide as it is: a connector makes them so")


# -- decoders of BART's kind: TrOCR, BART and mBART


def _bart_entries(output: str) -> Callable[[Config], list[Entry]]:
    body = "decoder.model.decoder"

    def entries(config: Config) -> list[Entry]:
        names = {"embedding.weight": f"{body}.embed_tokens.weight", "output.weight": output}
        names |= _blocks(config, f"{body}.layers", bart.BLOCK | bart.CROSS)
        if config.positions == "learned":
            names["positions.positions.table"] = f"{body}.embed_positions.weight"
        if config.input_norm:
            names["input_norm"] = f"{body}.layernorm_embedding"
        if config.norm == "pre":
            names["decoder_norm"] = f"{body}.layer_norm"
        return _as_entries(names)

    return entries


def _read_bart(read: ConfigReader, **own: Any) -> Fields:
    return {
        "vocabulary": read.get("vocab_size", 50265),
        "width": read.get("d_model", 1024),
        "heads": read.get("decoder_attention_heads", 16),
        "feedforward": read.get("decoder_ffn_dim", 4096),
        "decoder_layers": read.get("decoder_layers", 12),
        "activation": read.choice("activation_function", "gelu", _ACTIVATIONS),
        "max_length": read.get("max_position_embeddings", 1024),
        "scale_embedding": read.get("scale_embedding", False),
        "dropout": read.get("dropout", 0.1),
        "attention_dropout": read.get("attention_dropout", 0.0),
        "activation_dropout": read.get("activation_dropout", 0.0),
        "tie": read.get("tie_word_embeddings", True),
        "input_norm": True,
        "position_offset": 2,
        **own,
    }


def _read_trocr(read: ConfigReader) -> Fields:
    learned = read.get("use_learned_position_embeddings", True)
    positions: Fields = {"max_length": read.get("max_position_embeddings", 512)}
    if not learned:
        positions |= {"positions": "sinusoidal", "waves": "tensor2tensor"}
        positions["position_offset"] = read.get("pad_token_id", 1) + 1
    return _read_bart(read, norm="post", input_norm=read.get("layernorm_embedding", True), **positions)


def _write_bart(config: Config, kind: str) -> Fields:
    _require(config, kind, epsilon=1e-5, word_layer=False, token_type=False)
    return {
        "vocab_size": config.vocabulary,
        "d_model": config.width,
        "decoder_attention_heads": config.heads,
        "decoder_ffn_dim": config.feedforward,
        "decoder_layers": config.decoder_layers,
        "activation_function": _PUBLIC[config.activation],
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scale_embedding,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "tie_word_embeddings": config.tie,
    }


def _write_trocr(config: Config) -> Fields:
    learned = config.positions == "learned"
    _require(config, "TrOCR", norm="post")
    positions: Fields = {"position_offset": 2} if learned else {"waves": "tensor2tensor"}
    _require(config, "TrOCR", **positions)
    if config.connector and places_width(config.vision) == config.width:
        raise UserError("transformers has no connector between parts of equal width")
    return {
        **_write_bart(config, "TrOCR"),
        "use_learned_position_embeddings": learned,
        "layernorm_embedding": config.input_norm,
        "pad_token_id": 1 if learned else (config.position_offset or 1) - 1,
        "cross_attention_hidden_size": None if config.connector else places_width(config.vision),
    }


def _write_with(kind: str, norm: str) -> Callable[[Config], Fields]:
    def write(config: Config) -> Fields:
        _require(config, kind, norm=norm, input_norm=True, positions="learned", position_offset=2)
        _own_width(config, kind)
        return _write_bart(config, kind)

    return write


# -- GPT-2


def _gpt_entries(config: Config) -> list[Entry]:
    body = "decoder.transformer"
    names = {"embedding.weight": f"{body}.wte.weight", "positions.positions.table": f"{body}.wpe.weight"}
    names |= {"decoder_norm": f"{body}.ln_f", "output.weight": "decoder.lm_head.weight"}
    names |= _blocks(config, f"{body}.h", {**gpt.NORMS, "around_cross.norm": "ln_cross_attn"})
    linear: dict[tuple[str, ...], str] = {
        ("self.query", "self.key", "self.value"): "attn.c_attn",
        ("cross.query",): "crossattention.q_attn",
        ("cross.key", "cross.value"): "crossattention.c_attn",
        ("cross.output",): "crossattention.c_proj",
        **{(ours,): public for ours, public in gpt.LINEAR.items()},
    }
    return _as_entries(names) + [
        Entry(tuple(f"decoder.{layer}.{one}" for one in ours), f"{body}.h.{layer}.{public}", JoinedTransposed())
        for layer in range(config.decoder_layers)
        for ours, public in linear.items()
    ]


def _read_gpt(read: ConfigReader) -> Fields:
    read.require(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=True)
    width = read.get("n_embd", 768)
    return {
        "vocabulary": read.get("vocab_size", 50257),
        "width": width,
        "heads": read.get("n_head", 12),
        "feedforward": read.get("n_inner", None) or 4 * width,
        "decoder_layers": read.get("n_layer", 12),
        "activation": read.choice("activation_function", "gelu_new", gpt.GPT2_ACTIVATIONS),
        "max_length": read.get("n_positions", 1024),
        "epsilon": read.get("layer_norm_epsilon", 1e-5),
        "dropout": read.get("resid_pdrop", 0.1),
        "attention_dropout": read.get("attn_pdrop", 0.1),
        "tie": read.get("tie_word_embeddings", True),
    }


def _write_gpt(config: Config) -> Fields:
    _require(config, "GPT-2", norm="pre", input_norm=False, positions="learned", position_offset=None)
    _require(config, "GPT-2", word_layer=False, token_type=False, scale_embedding=False)
    _own_width(config, "GPT-2")
    return {
        "vocab_size": config.vocabulary,
        "n_embd": config.width,
        "n_head": config.heads,
        "n_inner": config.feedforward,
        "n_layer": config.decoder_layers,
        "activation_function": _PUBLIC[config.activation],
        "n_positions": config.max_length,
        "layer_norm_epsilon": config.epsilon,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "tie_word_embeddings": config.tie,
        "add_cross_attention": True,
    }


# -- BERT and RoBERTa


def bert_names(config: Config, prefix: str, body: str, head: Mapping[str, str]) -> dict[str, str]:
    """The names of a BERT with attention to a source; `head` are those of what is before its logits."""
    inside = f"{prefix}{body}"
    cross = {
        ours.replace("self", "cross", 1): public.replace("attention", "crossattention", 1)
        for ours, public in bert.LAYER.items()
        if "feedforward" not in ours
    }
    names = _blocks(config, f"{inside}.encoder.layer", {**bert.LAYER, **cross})
    names["embedding.weight"] = f"{inside}.embeddings.word_embeddings.weight"
    names["positions.positions.table"] = f"{inside}.embeddings.position_embeddings.weight"
    names["input_norm"] = f"{inside}.embeddings.LayerNorm"
    if config.token_type:
        names["token_type"] = f"{inside}.embeddings.token_type_embeddings.weight"
    of_ours = {"head.inner": "word_layer.inner", "head.norm": "word_layer.norm"}
    for ours, public in head.items():
        names[of_ours.get(ours) or ours.removeprefix("head.")] = f"{prefix}{public}"
    return names


def read_bert(read: ConfigReader, **own: Any) -> Fields:
    """The fields of a BERT that writes."""
    read.require(position_embedding_type="absolute", add_cross_attention=True, is_decoder=True)
    return {
        "width": read.get("hidden_size", 768),
        "heads": read.get("num_attention_heads", 12),
        "feedforward": read.get("intermediate_size", 3072),
        "decoder_layers": read.get("num_hidden_layers", 12),
        "activation": read.choice("hidden_act", "gelu", _ACTIVATIONS),
        "epsilon": read.get("layer_norm_eps", 1e-12),
        "dropout": read.get("hidden_dropout_prob", 0.1),
        "attention_dropout": read.get("attention_probs_dropout_prob", 0.1),
        "tie": read.get("tie_word_embeddings", True),
        "norm": "post",
        "input_norm": True,
        "word_layer": True,
        **own,
    }


def write_bert(config: Config, kind: str) -> Fields:
    """The inverse of `read_bert`."""
    _require(config, kind, norm="post", input_norm=True, positions="learned", word_layer=True, scale_embedding=False)
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "intermediate_size": config.feedforward,
        "num_hidden_layers": config.decoder_layers,
        "hidden_act": _PUBLIC[config.activation],
        "layer_norm_eps": config.epsilon,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "tie_word_embeddings": config.tie,
        "is_decoder": True,
    }


def _read_of_words(read: ConfigReader) -> Fields:
    sizes = {"vocabulary": read.get("vocab_size", 30522), "max_length": read.get("max_position_embeddings", 512)}
    return read_bert(read, token_type=True, **sizes)


def _read_roberta(read: ConfigReader) -> Fields:
    read.require(hidden_act="gelu", pad_token_id=1)
    sizes = {"vocabulary": read.get("vocab_size", 50265), "max_length": read.get("max_position_embeddings", 512) - 2}
    return read_bert(read, token_type=True, position_offset=2, **sizes)


def _write_words(kind: str, offset: int | None) -> Callable[[Config], Fields]:
    def write(config: Config) -> Fields:
        _require(config, kind, token_type=True, position_offset=offset)
        _own_width(config, kind)
        if offset is not None:
            _require(config, kind, activation="gelu")
        return {
            **write_bert(config, kind),
            "max_position_embeddings": config.max_length + (offset or 0),
            "type_vocab_size": 1,
            "add_cross_attention": True,
            "pad_token_id": 0 if offset is None else offset - 1,
        }

    return write


_BERT_BODY, _ROBERTA_BODY = "bert", "roberta"

_ROBERTA = DecoderLayout(
    entries=lambda config: _as_entries(bert_names(config, "decoder.", _ROBERTA_BODY, bert.LM_HEAD)),
    output="decoder.lm_head.decoder.weight",
    embedding="decoder.roberta.embeddings.word_embeddings.weight",
    read=_read_roberta,
    write=_write_words("RoBERTa", 2),
    bias="decoder.lm_head.decoder.bias",
)

_TOKENS = "decoder.model.decoder.embed_tokens.weight"

DECODERS: dict[str, DecoderLayout] = {
    "trocr": DecoderLayout(
        entries=_bart_entries("decoder.output_projection.weight"),
        output="decoder.output_projection.weight",
        embedding=_TOKENS,
        read=_read_trocr,
        write=_write_trocr,
    ),
    "mbart": DecoderLayout(
        entries=_bart_entries("decoder.lm_head.weight"),
        output="decoder.lm_head.weight",
        embedding=_TOKENS,
        read=lambda read: _read_bart(read, norm="pre"),
        write=_write_with("mBART", "pre"),
    ),
    "bart": DecoderLayout(
        entries=_bart_entries("decoder.lm_head.weight"),
        output="decoder.lm_head.weight",
        embedding=_TOKENS,
        read=lambda read: _read_bart(read, norm="post"),
        write=_write_with("BART", "post"),
    ),
    "gpt2": DecoderLayout(
        entries=_gpt_entries,
        output="decoder.lm_head.weight",
        embedding="decoder.transformer.wte.weight",
        read=_read_gpt,
        write=_write_gpt,
    ),
    "bert": DecoderLayout(
        entries=lambda config: _as_entries(bert_names(config, "decoder.", _BERT_BODY, bert.LEGACY_WORDS)),
        output="decoder.cls.predictions.decoder.weight",
        embedding="decoder.bert.embeddings.word_embeddings.weight",
        read=_read_of_words,
        write=_write_words("BERT", None),
        bias="decoder.cls.predictions.decoder.bias",
    ),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), _ROBERTA),
}
"""By their "model_type"; a config is written as the first that can hold it."""
