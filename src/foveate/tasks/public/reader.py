"""Reads texts with the model of a Hugging Face folder: tokens between special ones, in padded batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foveate import bundle, models
from foveate.data.ragged import padded
from foveate.data.tokens.bert_tokenizer import CLASS, BertTokenizer
from foveate.data.tokens.public_tokenizer import TOKENIZER, PublicTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.text_pair import PairText
from foveate.interop.keys import bert
from foveate.interop.layout import label_names
from foveate.interop.public_folder import check_tokenizer, header_of, read_folder
from foveate.interop.weight_files import weight_files
from foveate.nn import skip_init
from foveate.tasks.examples.text_task import TOKENS_TOGETHER, longest_first
from foveate.tensor_files import read_tensors
from foveate.training.hardware import choose_device

CPU_TOKENS = 512
"""Tokens that a CPU reads together: what a layer of a BERT-base computes of more does not fit into its cache, which
takes a third more time."""


PAIRED = ("bert", "xlnet")
"""The families that learn from two texts in one row."""


@dataclass
class TextRow:
    """The tokens of a text with those around it."""

    tokens: list[int]
    spans: list[tuple[int, int]]
    """Where each token begins and ends in the text; (0, 0) for those around it. Empty for a pair."""
    types: list[int] | None = None
    """Of each token 0 for the first text and 1 for the second, in models that tell them apart."""

    def first_pieces(self, words: Sequence[str]) -> list[int | None]:
        """The place of the first token of each word, where the words are parted by one space; None without any."""
        found, begin = list[int | None](), 0
        for word in words:
            end = begin + len(word)
            inside = (at for at, (start, stop) in enumerate(self.spans) if stop > begin and start < end)
            found.append(next(inside, None))
            begin = end + 1
        return found


@dataclass
class PublicReader:
    """A model with its tokenizer."""

    model: nn.Module
    tokenizer: BertTokenizer | PublicTokenizer
    family: str
    types: str | None = None
    """What the model calls the types of its tokens; None if it has none."""

    def encode(self, text: str) -> TextRow:
        """One text, or for a BERT or XLNet two with a tab between them."""
        first, *second = map(str.strip, text.split("\t"))
        pair = self.reads_pairs and first and len(second) == 1 and second[0]
        if isinstance(self.tokenizer, PublicTokenizer):
            if pair:
                tokens, segments = self.tokenizer.pair(first, pair)
                return TextRow(tokens, [], segments if self.types else None)
            types = self.tokenizer.types(text) if self.types else None
            return TextRow(*self.tokenizer.spans(text), types)
        if pair:
            row = PairText(tokenizer=self.tokenizer).prepare((first, pair))
            types = [int(place >= row.second) for place in range(len(row.tokens))]
            return TextRow(row.tokens.tolist(), [], types if self.types else None)
        tokens, spans = self.tokenizer.spans(text)
        return TextRow(tokens, spans)

    @property
    def reads_pairs(self) -> bool:
        """Whether two texts can be read together: the models and tokenizers of others only read one after the other."""
        own = self.tokenizer
        return self.family in PAIRED and (isinstance(own, BertTokenizer) or own.joins_pairs)

    def inputs(self, rows: Sequence[TextRow]) -> dict[str, Tensor]:
        """The inputs of the model, padded on the right."""
        device = next(self.model.parameters()).device
        tokens, lengths = padded([np.array(row.tokens) for row in rows], 0)
        found = {"tokens": tokens, "lengths": lengths}
        if self.types:
            types = [np.array(row.types or [0] * len(row.tokens)) for row in rows]
            found[self.types] = padded(types, 0)[0]
        return {name: value.to(device) for name, value in found.items()}

    @torch.inference_mode()
    def logits(self, rows: Sequence[TextRow]) -> list[Tensor]:
        """The logits of each row without padding: (1, N) of a text, (T, N) of tokens."""
        found: list[Any] = [None] * len(rows)
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        for places in longest_first([len(row.tokens) for row in rows], CPU_TOKENS if on_cpu else TOKENS_TOGETHER):
            logits = self.model(**self.inputs([rows[place] for place in places])).logits.cpu()
            for place, one in zip(places, logits, strict=True):
                found[place] = one[: len(rows[place].tokens)]
        return found


def open_reader(folder: Path, head: str, device: str) -> tuple[PublicReader, dict[str, Any]]:
    """The model of a folder in evaluation mode, and what its `config.json` holds. Raises UserError, one line."""
    if header_of(folder).model_type in ("bert", "roberta"):
        model, tokenizer, values = read_bert(folder, head, device)
        config: Any = model.config
        return PublicReader(model, tokenizer, "bert", "token_types" if config.token_types > 1 else None), values
    found = read_folder(folder)
    own = PublicTokenizer.load(folder)
    check_tokenizer(own.largest, found.model)
    types = "segments" if found.family == "xlnet" else None
    return PublicReader(found.model.to(choose_device(device)), own, found.family, types), found.values


def read_bert(folder: Path, head: str, device: str) -> tuple[nn.Module, Any, dict[str, Any]]:
    """The BERT of a folder in evaluation mode, its tokenizer, and what `config.json` holds.

    Raises UserError, one line, for whatever is missing, damaged or unknown.
    """
    values = read_json(folder / bundle.CONFIG)
    config = bert.read_config(values, str(folder / bundle.CONFIG), head)
    if head in ("text", "tokens"):
        config.classes = len(label_names(values, str(folder / bundle.CONFIG)))
    parts = [read_tensors(file).tensors for file in weight_files(folder)]
    try:
        state = bert.foveate(config, {name: value for part in parts for name, value in part.items()})
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    with skip_init():
        model = models.build("bert", config)
    bundle.fill(model, state, str(folder), "its weights are not those of its config.json")
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
