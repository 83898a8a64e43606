"""A tiny folder of each kind of encoder-decoder that foveate reads, with random weights and odd sizes.

A new kind is one more row of TRANSLATORS; `test_every_translator.py` then compares it, decodes with it, runs it, looks
at it, trains from it and writes it back.
"""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from public_models import word_tokenizer
from spm_files import unigram_file
from tokenizers import processors

SIZES = {
    "vocab_size": 53,
    "d_model": 20,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": 28,
    "decoder_ffn_dim": 28,
    "max_position_embeddings": 41,
    "pad_token_id": 50,
    "bos_token_id": 51,
    "eos_token_id": 52,
    "decoder_start_token_id": 52,
}

T5 = {
    "vocab_size": 53,
    "d_model": 20,
    "d_kv": 6,
    "num_heads": 5,
    "d_ff": 28,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "pad_token_id": 50,
    "eos_token_id": 52,
    "decoder_start_token_id": 50,
}


@dataclass(frozen=True)
class Translator:
    """A kind of model: its class and its config there, and its tokenizer."""

    kind: Any
    config: Any
    tokenizer: Callable[[Path], None]
    """Writes the files of its tokenizer."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """What `generation_config.json` says beside the ids."""
    languages: tuple[str, str] | None = None
    """Codes of the source and the target language, where the tokenizer has such tokens."""
    untied: bool = False
    """The output layer has weights of its own."""

    def write(self, place: Path) -> Any:
        """Write the folder of a model; the model, in evaluation mode."""
        torch.manual_seed(5)
        model = self.kind(deepcopy(self.config))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.uniform_(-0.3, 0.3)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.uniform_(-0.2, 0.2)
        for name, value in self.generation.items():
            setattr(model.generation_config, name, value)
        model.save_pretrained(place)
        self.tokenizer(place)
        return model.eval()


def words(around: tuple[str, str] = ("", "</s>"), **more: Any) -> Callable[[Path], None]:
    """A `tokenizer.json` of words that puts special tokens around a text."""

    def write(place: Path) -> None:
        made = word_tokenizer()
        names = [name for name in around if name]
        form = " ".join(name for name in (around[0], "$A", around[1]) if name)
        signs = [(name, made.token_to_id(name)) for name in names]
        made.post_processor = processors.TemplateProcessing(single=form, special_tokens=signs)
        made.add_special_tokens(more.get("additional_special_tokens", []))
        made.save(str(place / "tokenizer.json"))
        special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z", "pad_token": ":"}
        (place / "tokenizer_config.json").write_text(json.dumps({**special, **more}))

    return write


SOURCE = ["▁the", "▁keep", "er", "▁lit", "▁lamp", "▁", "k", "e", "p", "t", "h", "l", "a", "m", "i", "▁dawn", "▁up", ","]

TARGET = [
    "▁le",
    "▁gard",
    "ien",
    "▁lampe",
    "▁",
    "g",
    "a",
    "r",
    "d",
    "l",
    "m",
    "p",
    "e",
    "▁la",
    "▁aube",
    "▁haut",
    ".",
    "é",
]


def marian_files(place: Path) -> None:
    """The files of Helsinki-NLP: two models of pieces and one vocabulary of both."""
    unigram_file(place / "source.spm", ["<unk>", "<s>", "</s>", *SOURCE])
    unigram_file(place / "target.spm", ["<unk>", "<s>", "</s>", *TARGET])
    pieces = [*dict.fromkeys(["</s>", "<unk>", *TARGET, *SOURCE, ">>fr<<", ">>de<<"])]
    table = {piece: number for number, piece in enumerate(pieces)}
    assert len(table) < 52
    table["<pad>"] = 52
    (place / "vocab.json").write_text(json.dumps(table))
    config = {"source_lang": "en", "target_lang": "fr", "separate_vocabs": False, "tokenizer_class": "MarianTokenizer"}
    (place / "tokenizer_config.json").write_text(json.dumps(config))


MARIAN = {**SIZES, "pad_token_id": 52, "bos_token_id": None, "eos_token_id": 0, "decoder_start_token_id": 52}

TRANSLATORS: dict[str, Translator] = {
    "marian": Translator(
        transformers.MarianMTModel,
        transformers.MarianConfig(**MARIAN, scale_embedding=True, activation_function="swish"),
        marian_files,
        {"bad_words_ids": [[52]], "num_beams": 4, "max_length": 19, "forced_eos_token_id": 0},
    ),
    "marian-apart": Translator(
        transformers.MarianMTModel,
        transformers.MarianConfig(
            **{**MARIAN, "decoder_vocab_size": 53},
            share_encoder_decoder_embeddings=False,
            activation_function="gelu",
        ),
        marian_files,
    ),
    "bart": Translator(
        transformers.BartForConditionalGeneration,
        transformers.BartConfig(**SIZES),
        words(("<s>", "</s>")),
        {
            "num_beams": 4,
            "max_length": 17,
            "min_length": 5,
            "no_repeat_ngram_size": 2,
            "length_penalty": 2.0,
            "early_stopping": True,
            "forced_bos_token_id": 51,
            "forced_eos_token_id": 52,
        },
    ),
    "mbart": Translator(
        transformers.MBartForConditionalGeneration,
        transformers.MBartConfig(**SIZES, scale_embedding=True),
        words(
            ("up", "</s>"), tokenizer_class="MBart50Tokenizer", src_lang="up", additional_special_tokens=["up", "of"]
        ),
        {"num_beams": 3, "max_length": 17, "forced_eos_token_id": 52},
        ("up", "of"),
    ),
    "pegasus": Translator(
        transformers.PegasusForConditionalGeneration,
        transformers.PegasusConfig(
            **{**SIZES, "bos_token_id": None, "decoder_start_token_id": 50, "forced_eos_token_id": 52}
        ),
        words(),
        {"num_beams": 4, "length_penalty": 0.8, "max_length": 17},
    ),
    "m2m_100": Translator(
        transformers.M2M100ForConditionalGeneration,
        transformers.M2M100Config(**{**SIZES, "max_position_embeddings": 61}),
        words(("up", "</s>"), tokenizer_class="NllbTokenizer", src_lang="up", additional_special_tokens=["up", "of"]),
        {"num_beams": 5, "max_length": 17, "early_stopping": True, "bad_words_ids": [[50]]},
        ("up", "of"),
    ),
    "t5": Translator(
        transformers.T5ForConditionalGeneration,
        transformers.T5Config(**T5),
        words(),
    ),
    "mt5": Translator(
        transformers.MT5ForConditionalGeneration,
        transformers.MT5Config(**T5),
        words(),
    ),
}
