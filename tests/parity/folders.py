"""A tiny folder of each kind of model of texts that foveate reads, with random weights and odd sizes.

A new kind is one more row of FOLDERS; `test_every_folder.py` then compares it, runs it, looks at it, trains from it and
writes it back, with each of its heads.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from public_models import config_of, word_tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

CAUSAL = {
    "words": "AutoModelForCausalLM",
    "text": "AutoModelForSequenceClassification",
    "tokens": "AutoModelForTokenClassification",
}

MASKED = {
    "words": "AutoModelForMaskedLM",
    "text": "AutoModelForSequenceClassification",
    "tokens": "AutoModelForTokenClassification",
    "span": "AutoModelForQuestionAnswering",
    "none": "AutoModel",
}

NAMES = {"id2label": {0: "b", 1: "a", 2: "c"}, "label2id": {"b": 0, "a": 1, "c": 2}}

WORDS_AND_TEXT = {name: CAUSAL[name] for name in ("words", "text")}

BERT = {"vocab_size": 53, "num_attention_heads": 5, "hidden_size": 20, "num_hidden_layers": 2, "intermediate_size": 28}


@dataclass(frozen=True)
class Folder:
    """A kind of model: its config there, and the classes of its heads."""

    config: Any
    heads: Mapping[str, str]
    """What each head predicts, with the class of transformers that has it."""
    around: tuple[str, str] | None = None
    """What the tokenizer puts before and after a text."""
    special: Mapping[str, str] = field(
        default_factory=lambda: {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z"}
    )
    """What `tokenizer_config.json` says. A "mask_token" stands in the vocabulary where the token "9" is otherwise."""
    pieces: bool = False
    """Whether the tokenizer is one of sentencepiece's, as those of XLM-RoBERTa are."""
    close: float = 5e-5
    """By how much logits may differ."""

    def write(self, head: str, place: Path) -> Any:
        """Write the folder of a model with a head; the model, in evaluation mode."""
        torch.manual_seed(5)
        config = deepcopy(self.config)
        if head in ("text", "tokens", "pair"):
            config = type(config).from_dict({**config.to_dict(), **NAMES, "dtype": "float32"})
        kind = getattr(transformers, self.heads[head])
        model = kind.from_config(config) if self.heads[head].startswith("Auto") else kind(config)
        scramble(model).save_pretrained(place)
        self.write_tokenizer(place)
        return model.eval()

    def write_tokenizer(self, place: Path) -> None:
        words = piece_tokenizer() if self.pieces else word_tokenizer(mask=self.special.get("mask_token"))
        if self.around is not None:
            before, behind = self.around
            signs = [(token, words.token_to_id(token)) for token in {before, behind}]
            words.post_processor = processors.TemplateProcessing(single=f"{before} $A {behind}", special_tokens=signs)
        words.save(str(place / "tokenizer.json"))
        (place / "tokenizer_config.json").write_text(json.dumps(self.special))


def piece_tokenizer() -> Tokenizer:
    """A unigram tokenizer of some words and 36 letters and signs, with the special tokens of XLM-RoBERTa."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = ["\u2581", *"abcdefghijklmnopqrstuvwxyz0123456789,.", "\u2581the", "\u2581keeper", "\u2581l", "it"]
    scores = [(piece, -float(len(special) + 1) if len(piece) < 3 else -2.0) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram([*((one, 0.0) for one in special), *scores, ("<mask>", 0.0)], unk_id=3))
    space = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def scramble(model: Any) -> Any:
    """The model with weights that are not the initial ones."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.3, 0.3)
    return model


PIECES = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "mask_token": "<mask>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}

MASK = {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>", "pad_token": "z", "unk_token": "z"}

FOLDERS: dict[str, Folder] = {
    "gpt2": Folder(config_of("gpt2"), CAUSAL),
    "openai-gpt": Folder(config_of("gpt1"), WORDS_AND_TEXT),
    "gpt_neox": Folder(config_of("gpt-neox"), CAUSAL),
    "llama": Folder(config_of("llama"), CAUSAL),
    **{kind: Folder(config_of(kind), CAUSAL) for kind in ("mistral", "qwen2", "qwen3", "smollm3", "gemma2", "phi3")},
    **{kind: Folder(config_of(kind), WORDS_AND_TEXT) for kind in ("olmo2", "gptj", "opt")},
    "bert": Folder(transformers.BertConfig(**BERT, max_position_embeddings=41), MASKED, ("<s>", "</s>"), MASK),
    "roberta": Folder(
        transformers.RobertaConfig(**BERT, max_position_embeddings=41, type_vocab_size=1, pad_token_id=1),
        MASKED,
        ("<s>", "</s>"),
        PIECES,
        pieces=True,
    ),
    "xlm-roberta": Folder(
        transformers.XLMRobertaConfig(**BERT, max_position_embeddings=41, type_vocab_size=1, pad_token_id=1),
        MASKED,
        ("<s>", "</s>"),
        PIECES,
        pieces=True,
    ),
    "camembert": Folder(
        transformers.CamembertConfig(**BERT, max_position_embeddings=41, type_vocab_size=1, pad_token_id=1),
        MASKED,
        ("<s>", "</s>"),
        PIECES,
        pieces=True,
    ),
    "distilbert": Folder(
        transformers.DistilBertConfig(
            vocab_size=53, n_heads=5, dim=20, n_layers=2, hidden_dim=28, max_position_embeddings=41
        ),
        MASKED,
        ("<s>", "</s>"),
        MASK,
    ),
    "electra": Folder(
        transformers.ElectraConfig(**BERT, embedding_size=12, max_position_embeddings=41),
        MASKED,
        ("<s>", "</s>"),
        MASK,
    ),
    "mpnet": Folder(
        transformers.MPNetConfig(**BERT, max_position_embeddings=41, relative_attention_num_buckets=32),
        MASKED,
        ("<s>", "</s>"),
        PIECES,
        pieces=True,
    ),
    "modernbert": Folder(
        transformers.ModernBertConfig(
            **{**BERT, "num_hidden_layers": 4, "hidden_size": 30},
            local_attention=6,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
        ),
        MASKED,
        ("<s>", "</s>"),
        MASK,
    ),
    "deberta": Folder(
        transformers.DebertaConfig(
            **BERT,
            max_position_embeddings=41,
            max_relative_positions=5,
            relative_attention=True,
            position_biased_input=False,
            pos_att_type=["c2p", "p2c"],
        ),
        MASKED,
        ("<s>", "</s>"),
        MASK,
    ),
    "deberta-v2": Folder(
        transformers.DebertaV2Config(
            **BERT,
            max_position_embeddings=41,
            position_buckets=6,
            relative_attention=True,
            pos_att_type="p2c|c2p",
            share_att_key=True,
            norm_rel_ebd="layer_norm",
        ),
        MASKED,
        ("<s>", "</s>"),
        MASK,
    ),
    "xlnet": Folder(
        transformers.XLNetConfig(vocab_size=53, d_model=20, n_layer=2, n_head=5, d_inner=28),
        {
            "words": "XLNetLMHeadModel",
            "text": "XLNetForSequenceClassification",
            "tokens": "XLNetForTokenClassification",
            "none": "XLNetModel",
        },
        special={**MASK, "bos_token": "<s>", "eos_token": "</s>"},
    ),
}
