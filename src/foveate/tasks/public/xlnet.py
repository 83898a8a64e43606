"""Hugging Face folders of an XLNet: one that predicts words fills in each [MASK], without the others, and one without a
head gives texts vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.data.text.permutation import Permuted
from foveate.data.tokens.public_tokenizer import ROLES, PublicTokenizer
from foveate.errors import UserError
from foveate.interop.public_folder import check_tokenizer, read_folder
from foveate.special_tokens import Role
from foveate.tasks.answers.blanks import Blank
from foveate.tasks.protocols import ModelInputs
from foveate.tasks.public.bert import WordFiller
from foveate.tasks.public.embedder import Embedder, read_pooling
from foveate.tasks.public.reader import PublicReader, TextRow, open_reader
from foveate.training.hardware import choose_device

OWN_NAMES: dict[str, Role] = {"[MASK]": "mask", "[SEP]": "separator"}
"""What stands in texts for two tokens that each tokenizer names as it likes."""


@dataclass
class XLNetFiller(WordFiller):
    """An XLNet: the words at the blanks come last in its order, and none of them sees another."""

    model: nn.Module
    tokenizer: PublicTokenizer  # type: ignore[assignment]

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "XLNetFiller":
        """The model of a folder. Raises UserError, one line, for what is missing or damaged."""
        found, tokenizer = read_folder(Path(folder)), PublicTokenizer.load(Path(folder))
        check_tokenizer(tokenizer.largest, found.model)
        for role in OWN_NAMES.values():
            if role not in tokenizer.special:
                raise UserError(f"the tokenizer in {folder} names no {ROLES[role]} in tokenizer_config.json")
        model = found.model.to(choose_device(device))
        return cls(model, tokenizer, {"family": "xlnet", "recipe": {"model": str(folder)}})

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.spans(self._own_names(text))[0]

    def _own_names(self, text: str) -> str:
        """The text with the tokenizer's names of [MASK] and [SEP]."""
        for name, role in OWN_NAMES.items():
            text = text.replace(name, self.tokenizer.pieces([self.tokenizer.special[role]])[0])
        return text

    def _blanks(self, text: str, row: list[int], best: int) -> list[Blank]:
        with torch.inference_mode():
            logits = self.model(**self._asked(text, row)).logits[0]
        return self._best(logits, best)

    def _asked(self, text: str, row: Sequence[int]) -> dict[str, Tensor]:
        places = np.flatnonzero(np.array(row) == self.tokenizer.special.mask)
        inputs = Permuted(self.tokenizer.special).ask([np.array(row)], [places])
        inputs["segments"] = torch.tensor([self.tokenizer.types(self._own_names(text))])
        device = next(self.model.parameters()).device
        return {name: value.to(device) for name, value in inputs.items()}

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places. A text without [MASK] is only read."""
        row = self._encode(text)
        inputs, pieces = self._asked(text, row), self.tokenizer.pieces(row)
        asked = [pieces[place] for place in inputs["places"][0].tolist()]
        if not asked:
            del inputs["ranks"], inputs["places"]
        return ModelInputs(inputs, pieces, len(row), asked)


@dataclass(kw_only=True)
class XLNetEmbedder(Embedder):
    """An XLNet without a head: the mean of a text's tokens, or the first of them, is its vector."""

    reader: PublicReader
    pooling: str

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "XLNetEmbedder":
        """The model of a folder, in evaluation mode. Raises UserError, one line, for what is missing or damaged."""
        pooling, normalized = read_pooling(Path(folder))
        reader, _ = open_reader(Path(folder), "none", device)
        return cls(
            reader.model,
            reader.tokenizer,
            {"family": "xlnet", "recipe": {"model": str(folder)}},
            normalized,
            reader=reader,
            pooling=pooling,
        )

    def embed(self, texts: Sequence[str]) -> Float[Tensor, "B C"]:
        """The vectors of texts, in batches of like length."""
        hidden = self.reader.logits([self._row(text) for text in texts])
        found = [one[0] if self.pooling == "first" else one.mean(0) for one in hidden]
        vectors = torch.stack(found).float() if found else torch.zeros(0, self.model.config.width)  # type: ignore[union-attr, arg-type]
        return F.normalize(vectors, dim=-1) if self.normalized else vectors

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places."""
        row = self._row(text)
        return ModelInputs(self.reader.inputs([row]), self.reader.tokenizer.pieces(row.tokens), len(row.tokens))

    def _row(self, text: str) -> TextRow:
        tokenizer = cast(PublicTokenizer, self.reader.tokenizer)
        return TextRow(*tokenizer.spans(text), tokenizer.types(text))
