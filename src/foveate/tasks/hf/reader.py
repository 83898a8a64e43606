"""Opens models of Hugging Face folders that read texts, with their tokenizers."""

from pathlib import Path
from typing import Any

from torch import nn

from foveate import models, run_dir
from foveate.data.tokens.bert_tokenizer import CLASS, BertTokenizer
from foveate.data.tokens.public_tokenizer import TOKENIZER, PublicTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.keys import bert
from foveate.interop.layout import label_names
from foveate.interop.public_folder import PublicModel, check_tokenizer, header_of, read_folder
from foveate.interop.weight_files import weight_files
from foveate.nn import skip_init
from foveate.tensor_files import read_tensors
from foveate.training.hardware import choose_device


def open_public(folder: Path, head: str, device: str) -> tuple[PublicModel, Any, str | None]:
    """The model of a folder in evaluation mode, its tokenizer, and what it calls the types of its tokens, if anything.

    Raises UserError, one line.
    """
    if header_of(folder).model_type in ("bert", "roberta"):
        model, tokenizer, values = read_bert(folder, head, device)
        config: Any = model.config
        return PublicModel("bert", model, values), tokenizer, "token_types" if config.token_types > 1 else None
    found = read_folder(folder)
    own = PublicTokenizer.load(folder)
    check_tokenizer(own.largest, found.model)
    found.model.to(choose_device(device))
    return found, own, "segments" if found.family == "xlnet" else None


def read_bert(folder: Path, head: str, device: str) -> tuple[nn.Module, Any, dict[str, Any]]:
    """The BERT of a folder in evaluation mode, its tokenizer, and what `config.json` holds.

    Raises UserError, one line, for whatever is missing, damaged or unknown.
    """
    values = read_json(folder / run_dir.CONFIG)
    config = bert.read_config(values, str(folder / run_dir.CONFIG), head)
    if head in ("text", "tokens"):
        config.classes = len(label_names(values, str(folder / run_dir.CONFIG)))
    given = {name: value for file in weight_files(folder) for name, value in read_tensors(file).tensors.items()}
    config = bert.untie(config, given)
    try:
        state = bert.foveate(config, given)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    with skip_init():
        model = models.build("bert", config)
    run_dir.fill(model, state, str(folder), "its weights are not those of its config.json")
    tokenizer = _bert_tokenizer(folder, head)
    check_tokenizer(tokenizer.largest, model)
    return model.to(choose_device(device)).eval(), tokenizer, values


def _bert_tokenizer(folder: Path, head: str) -> BertTokenizer | PublicTokenizer:
    """A BERT's own; texts and words get labels by any other as well, such as that of an exported classifier."""
    if head in ("text", "tokens") and (folder / TOKENIZER).is_file():
        found = PublicTokenizer.load(folder)
        if all(found.number(name) is None for name in CLASS):
            return found
    return BertTokenizer.load(folder)
