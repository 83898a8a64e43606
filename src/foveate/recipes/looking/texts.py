"""Looking at models of text: one that reads (causal or masked), or one that reads and then writes."""

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveate.errors import UserError
from foveate.interop.huggingface import FROM_DISK, library, told
from foveate.recipes.looking.inputs import check_length, shortened, text_of
from foveate.recipes.looking.naming import Naming, Writer, one_side, tokens, two_sides
from foveate.sight import Sight, look
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import SidePair

WRITTEN = 128
"""Tokens that a model writes at most."""

PROMPT = 8
"""Places that are left for the tokens that start the writing."""

CHARACTERS = 64
"""So many characters for each token that may be looked at are read at all."""

BROKEN = "\ufffd"
"""What a part of a character is decoded to."""

READ_BY_DECODER = "decoder_input_ids"
"""What models call the tokens that their decoder is given."""

MARKS = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model", "tokenizer.model")
"""Files of which a folder with a tokenizer has one."""


class Words:
    """A folder's tokenizer; where it has none, token ids are given as numbers."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = None
        if any((folder / name).is_file() for name in MARKS):
            with told(f"the tokenizer in {folder} cannot be read"):
                self.tokenizer = library().AutoTokenizer.from_pretrained(folder, **FROM_DISK)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with the special tokens that the model was trained with."""
        if self.tokenizer is not None:
            with told("the text cannot be taken apart"):
                return list(self.tokenizer(text)["input_ids"])
        words = re.split(r"[\s,]+", text.strip("[] \t\r\n"))
        if not all(re.fullmatch(r"\d{1,9}", word) for word in words):
            raise UserError("this folder has no tokenizer: give token ids as numbers, such as '5 17 9'")
        return [int(word) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids)) if self.tokenizer is None else self._texts([list(ids)], True)[0]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to call each token: a word's first piece plain, a later one with a leading '·', special ones by name."""
        if self.tokenizer is None:
            return [str(token) for token in ids]
        special, names = set(self.tokenizer.all_special_ids), self.tokenizer.convert_ids_to_tokens(ids)
        pairs = [
            (None if before in special else before, token) for before, token in zip([None, *ids], ids, strict=False)
        ]
        known = {pair: self._piece(*pair) for pair in dict.fromkeys(pairs)}
        return [
            # A model may know more tokens than its tokenizer, for which there is no name.
            name if token in special else known[pair] or name or str(token)
            for token, name, pair in zip(ids, names, pairs, strict=True)
        ]

    def _piece(self, before: int | None, token: int) -> str:
        """What a token adds to the one before it; nothing where it is no whole character."""
        first, both = self._texts([[] if before is None else [before], [token] if before is None else [before, token]])
        if BROKEN in first:
            first, (both,) = "", self._texts([[token]])
        if BROKEN in both or not both.startswith(first):
            return ""
        added = both.removeprefix(first)
        inside = added[:1].isalnum() and first[-1:].isalnum()
        return f"·{added}" if inside else added.strip(" ") or added

    def _texts(self, ids: list[list[int]], skip: bool = False) -> list[str]:
        options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": False}
        return [self.tokenizer.decode(each, **options) for each in ids]


class Reader:
    """A model that reads text, and perhaps writes."""

    takes: InputKind = "text"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.words = model, Words(folder)
        self.name = f"{type(model).__name__} from {folder}"

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        text = text_of(given, self.name)
        if len(text) > CHARACTERS * most:
            raise UserError(f"the text has {len(text):,} characters, but at most {most:,} tokens can be looked at")
        ids = self._checked(self.words.encode(text), most)
        labels = self.words.pieces(ids)
        inputs = {"input_ids": torch.tensor([ids], device=self.model.device)}
        if getattr(self.model.config, "is_encoder_decoder", False):
            sight, names, notes = read_and_write(self.model, inputs, tokens(labels), self.words, sites)
        else:
            # Without the head: where it looks is the same, and all logits of a long text would take gigabytes.
            sight = run(self.model, self.model.base_model, inputs, sites)
            names, notes = one_side(sight, tokens(labels)), []
        return LookResult(sight, names, shortened(text), [self.name, *notes, *sight.notes])

    def _checked(self, ids: list[int], most: int) -> list[int]:
        if not ids:
            raise UserError("the text has no tokens: there is nothing to look at")
        if (limit := positions(self.model)) and len(ids) > limit:
            raise UserError(f"the text has {len(ids):,} tokens, but {self.name} has positions for {limit:,}")
        check_length(len(ids), most, "the text")
        with told(f"{self.name} does not tell how many tokens it knows"):
            count = self.model.get_input_embeddings().num_embeddings
        if wrong := [token for token in ids if token >= count]:
            raise UserError(f"there is no token {wrong[0]:,}: the model knows {count:,}, counted from 0")
        return ids


def positions(model: Any) -> int | None:
    """How many places a model has positions for; None where there is no limit."""
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    limits = [getattr(config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and "position" in name.lower():
            # Models of RoBERTa's kind begin to count behind their padding.
            limits.append(module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1))
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)


def run(model: Any, part: Any, inputs: dict[str, Any], sites: Sequence[str] | None) -> Sight:
    """The sight of one pass through a part of the model, without a cache. Raises UserError where it cannot be run."""
    taken = inspect.signature(part.forward).parameters
    if READ_BY_DECODER in taken and READ_BY_DECODER not in inputs:
        raise UserError(
            f"{type(model).__name__} has a decoder, but not the head that writes what it reads: "
            "save the model with its head to look at it"
        )
    cache = {"use_cache": False} if "use_cache" in taken else {}
    what = f"{type(model).__name__} could not be run on this"
    with told(what), torch.inference_mode(), look(model, sites=sites) as sight:
        part(**inputs, **cache)
    return sight


def writes(model: Any) -> bool:
    """Whether a model writes what its decoder then reads."""
    return getattr(model.config, "is_encoder_decoder", False) and model.can_generate()


def decoder_path(model: Any) -> str:
    """Where in a model its decoder is."""
    return next(name for name, module in model.named_modules() if module is model.get_decoder())


def read_and_write(
    model: Any, inputs: dict[str, Any], source: Naming, words: Words, sites: Sequence[str] | None
) -> tuple[Sight, dict[str, SidePair], list[str]]:
    """Let the model write, then see where it looks while it reads source and output at once: sight, names, notes."""
    generates = writes(model)
    ids = _written(model, inputs) if generates else _shifted(model, inputs)
    part = model if generates else model.base_model
    sight = run(model, part, {**inputs, READ_BY_DECODER: ids[:, :-1]}, sites)
    labels = words.pieces(ids[0].tolist())
    writer = Writer(tokens(labels[:-1]), tokens(labels[1:]), decoder_path(model), len(labels) - 1)
    text = words.decode(ids[0].tolist())
    note = f"It wrote: {text}" if generates else "It writes nothing: its decoder reads the input once more."
    return sight, two_sides(sight, source, writer), [note]


def _written(model: Any, inputs: dict[str, Any]) -> Int[Tensor, "1 _"]:
    """What the model writes at its likeliest, behind what starts it."""
    most = max(1, min(WRITTEN, (positions(model) or WRITTEN + PROMPT) - PROMPT))
    with told(f"{type(model).__name__} could not write"), torch.inference_mode():
        options = {"max_new_tokens": most, "do_sample": False, "num_beams": 1, "return_dict_in_generate": True}
        return model.generate(**inputs, **options).sequences


def _shifted(model: Any, inputs: dict[str, Any]) -> Int[Tensor, "1 _"]:
    """The input behind a start: so the decoder of a classifier reads it."""
    ids = inputs["input_ids"]
    return torch.cat([torch.full_like(ids[:, :1], model.config.decoder_start_token_id or 0), ids], 1)
