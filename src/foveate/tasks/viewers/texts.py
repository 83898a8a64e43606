"""The viewer of transformers' text models: decoders, encoders, and encoder-decoders, which generate first."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveate.data.tokens.library import UNREADABLE, check_length_of_tokens, in_one_line
from foveate.data.tokens.public_tokenizer import name_pieces
from foveate.errors import UserError
from foveate.forms.inputs import EXAMPLES, check_length, make_title, require_text
from foveate.forms.naming import DecoderNames, Naming, encoder_decoder_names, single_input_names, token_names
from foveate.interop.huggingface import LOCAL_ONLY, import_transformers, short_errors
from foveate.sight import Sight
from foveate.sight.measured_look import finished
from foveate.tasks.viewers.one_pass import DECODER_INPUT, look_and_predict, run_and_look
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import SidePair

MAX_NEW_TOKENS = 128
"""Maximum number of generated tokens."""

PROMPT_TOKENS = 8
"""Positions reserved for the tokens that start the generation."""

CHARACTERS_PER_TOKEN = 64
"""Maximum length of a text, in characters for each token of the limit."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tokenizer.model",
)
"""Files of tokenizers; a folder with a tokenizer has at least one of them."""


class FolderTokenizer:
    """The tokenizer of a folder; without one, texts are lists of token ids."""

    def __init__(self, folder: Path | None) -> None:
        self.tokenizer: Any = None
        if folder is not None and any((folder / name).is_file() for name in TOKENIZER_FILES):
            unreadable = f"the tokenizer in {folder} cannot be read"
            with in_one_line(unreadable):
                self.tokenizer = import_transformers().AutoTokenizer.from_pretrained(folder, **LOCAL_ONLY)

    @classmethod
    def of(cls, tokenizer: Any) -> "FolderTokenizer":
        """The same of a tokenizer that is open."""
        made = cls(None)
        made.tokenizer = tokenizer
        return made

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with the special tokens that the model expects."""
        if self.tokenizer is not None:
            with in_one_line(UNREADABLE):
                tokens = list(self.tokenizer(text)["input_ids"])
            check_length_of_tokens(len(tokens), text)
            return tokens
        words = re.split(r"[\s,]+", text.strip("[] \t\r\n"))
        if not all(re.fullmatch(r"\d{1,9}", word) for word in words):
            raise UserError("this folder has no tokenizer: pass token ids, such as '5 17 9'")
        return [int(word) for word in words]

    def inside(self, text: str) -> list[int]:
        """The ids of a text alone, without the special tokens around it."""
        with in_one_line(UNREADABLE):
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids)) if self.tokenizer is None else self._texts([list(ids)], True)[0]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Names of tokens: first pieces of words plain, later pieces with a leading '·', special tokens by name."""
        if self.tokenizer is None:
            return [str(token) for token in ids]
        special, names = set(self.tokenizer.all_special_ids), self.tokenizer.convert_ids_to_tokens(ids)
        return name_pieces(ids, names, special, lambda some: self._texts([some])[0])

    def _texts(self, ids: list[list[int]], skip: bool = False) -> list[str]:
        options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": False}
        return [self.tokenizer.decode(each, **options) for each in ids]


class TextViewer:
    """A model that reads text, and may generate text."""

    takes: InputKind = "text"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.tokenizer = model, FolderTokenizer(folder)
        self.name = f"{type(model).__name__} from {folder}"
        self.max_length, self.examples = positions(model), EXAMPLES

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        text = require_text(given, self.name)
        ids, labels = self.read(text, max_length)
        inputs = {"input_ids": torch.tensor([ids], device=self.model.device)}
        if getattr(self.model.config, "is_encoder_decoder", False):
            sight, names, notes = generate_and_look(
                self.model, inputs, token_names(labels), self.tokenizer, sites, measure
            )
        else:
            sight, notes = look_and_predict(self.model, inputs, sites, measure)
            names = single_input_names(sight, token_names(labels))
        sight = finished(sight, measure)
        return LookResult(sight, names, make_title(text), [self.name, *notes, *sight.notes])

    def read(self, text: str, max_length: int) -> tuple[list[int], list[str]]:
        """The tokens of a text and their names. Raises UserError if there are none or too many."""
        if len(text) > CHARACTERS_PER_TOKEN * max_length:
            raise UserError(f"the text has {len(text):,} characters, but the limit is {max_length:,} tokens")
        ids = self._checked(self.tokenizer.encode(text), max_length)
        return ids, self.tokenizer.pieces(ids)

    def _checked(self, ids: list[int], max_length: int) -> list[int]:
        if not ids:
            raise UserError("the text has no tokens: there is nothing to look at")
        if (limit := positions(self.model)) and len(ids) > limit:
            raise UserError(f"the text has {len(ids):,} tokens, but {self.name} has positions for {limit:,}")
        check_length(len(ids), max_length, "the text")
        with short_errors(f"{self.name} does not say how many tokens it has"):
            reader = getattr(self.model, "text_model", self.model)
            count = reader.get_input_embeddings().num_embeddings
        if wrong := [token for token in ids if token >= count]:
            raise UserError(f"there is no token {wrong[0]:,}: the model has {count:,}, counted from 0")
        return ids


def positions(model: Any) -> int | None:
    """Maximum number of positions of a model; None if there is no limit."""
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    limits = [getattr(config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and "position" in name.lower():
            # RoBERTa and similar models count positions from after the padding index.
            limits.append(module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1))
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)


def generates(model: Any) -> bool:
    """Whether a model generates the input of its decoder."""
    return getattr(model.config, "is_encoder_decoder", False) and model.can_generate()


def decoder_path(model: Any) -> str:
    """The path of the decoder in a model."""
    return next(name for name, module in model.named_modules() if module is model.get_decoder())


def generate_and_look(
    model: Any,
    inputs: dict[str, Any],
    source: Naming,
    words: FolderTokenizer,
    sites: Sequence[str] | None,
    measure: str = "weights",
) -> tuple[Sight, dict[str, SidePair], list[str]]:
    """Generate, then look at the model while it reads source and output at once: sight, names, notes.

    Gradients and relevance are those of the log-probability of the output.
    """
    with_head = generates(model)
    ids = _generate(model, inputs) if with_head else _shift(model, inputs)
    part = model if with_head else model.base_model

    def log_probability(output: Any) -> Tensor:
        return output.logits.float().log_softmax(-1).gather(-1, ids[:, 1:, None]).sum()

    given = {**inputs, DECODER_INPUT: ids[:, :-1].clone()}  # a copy, which may have gradients behind it
    sight, _ = run_and_look(model, part, given, sites, measure, log_probability if with_head else None)
    labels = words.pieces(ids[0].tolist())
    writer = DecoderNames(token_names(labels[:-1]), token_names(labels[1:]), decoder_path(model), len(labels) - 1)
    text = words.decode(ids[0].tolist())
    note = f"Output: {text}" if with_head else "The model generates nothing: its decoder reads the input again."
    return sight, encoder_decoder_names(sight, source, writer), [note]


def _generate(model: Any, inputs: dict[str, Any]) -> Int[Tensor, "1 _"]:
    """The greedy output of the model, after its start tokens."""
    max_new_tokens = max(1, min(MAX_NEW_TOKENS, (positions(model) or MAX_NEW_TOKENS + PROMPT_TOKENS) - PROMPT_TOKENS))
    with short_errors(f"{type(model).__name__} could not generate"), torch.inference_mode():
        options = {
            "max_new_tokens": max_new_tokens,
            "do_sample": False,
            "num_beams": 1,
            "return_dict_in_generate": True,
        }
        return model.generate(**inputs, **options).sequences


def _shift(model: Any, inputs: dict[str, Any]) -> Int[Tensor, "1 _"]:
    """The input after a start token, as the decoder of a classifier reads it."""
    ids = inputs["input_ids"]
    return torch.cat([torch.full_like(ids[:, :1], model.config.decoder_start_token_id or 0), ids], 1)
