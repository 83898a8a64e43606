"""Hugging Face folders of an XLNet without a head, which gives texts vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.tasks.protocols import ModelInputs
from foveate.tasks.public.embedder import Embedder, read_pooling
from foveate.tasks.public.reader import PublicReader, TextRow, open_reader


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
