"""Opens models of Hugging Face folders that read texts, with their tokenizers."""

from pathlib import Path
from typing import Any

from foveate.data.tokens.bert_tokenizer import CLASS, BertTokenizer
from foveate.data.tokens.public_tokenizer import TOKENIZER, PublicTokenizer
from foveate.interop.public_folder import PublicModel, check_tokenizer
from foveate.interop.through_transformers import read_any
from foveate.interop.transformers_models import ThroughTransformersConfig
from foveate.training.hardware import choose_device

MASKED = ("bert", "deberta")
"""The families of masked language models whose tokenizers are those of BERT and RoBERTa."""


def open_public(folder: Path, device: str = "cpu") -> tuple[PublicModel, Any]:
    """The model of a folder with its head, in evaluation mode, and its tokenizer. Raises UserError, one line."""
    found = read_any(folder)
    tokenizer = open_tokenizer(folder, found)
    check_tokenizer(tokenizer.largest, found.model)
    found.model.to(choose_device(device))
    return found, tokenizer


def open_tokenizer(folder: Path, public: PublicModel) -> BertTokenizer | PublicTokenizer:
    """A BERT's own, but where texts and words get labels by any other as well, such as that of an exported classifier.
    All other families read by any."""
    config: Any = public.model.config
    masked = isinstance(config, ThroughTransformersConfig) and config.head in ("words", "span")
    if public.family not in MASKED and not masked:
        return PublicTokenizer.load(folder)
    if config.head in ("text", "tokens", "span") and (folder / TOKENIZER).is_file():
        found = PublicTokenizer.load(folder)
        if all(found.number(name) is None for name in CLASS):
            return found
    return BertTokenizer.load(folder)


def token_types(public: PublicModel) -> str | None:
    """What a model calls the types of its tokens; None if it has none."""
    config: Any = public.model.config
    if public.family in MASKED:
        return "token_types" if (config.token_types or 0) > 1 else None
    return "segments" if public.family == "xlnet" else None
