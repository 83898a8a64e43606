"""Tiny BERTs of transformers on disk, with the words of `verdicts`."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
import verdicts

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

WORDS = (*SPECIAL, *verdicts.OTHERS, *(word for words in verdicts.TELLING.values() for word in words), "##s", "!", ".")

SIZES: dict[str, Any] = {
    "vocab_size": len(WORDS),
    "hidden_size": 20,
    "num_attention_heads": 5,
    "num_hidden_layers": 2,
    "intermediate_size": 28,
    "max_position_embeddings": 19,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}

MODULES = ("Transformer", "Pooling", "Normalize")


def write_folder(folder: Path, kind: str = "BertModel", initial: bool = False, **sizes: Any) -> Path:
    """A model with random weights, large ones unless they are the initial ones, its vocabulary, and without a head the
    file of the sentence-transformers project; `sizes` are others than `SIZES`."""
    torch.manual_seed(3)
    model = getattr(transformers, kind)(transformers.BertConfig(**{**SIZES, **sizes}))
    with torch.no_grad():
        for parameter in () if initial else model.parameters():
            parameter.uniform_(-0.5, 0.5)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    modules = [{"idx": place, "type": f"sentence_transformers.models.{name}"} for place, name in enumerate(MODULES)]
    if kind != "BertModel":
        return folder
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    return folder
