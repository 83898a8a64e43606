"""The words of captions that are read: what a model learned of them, and captions that it cannot read."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from foveate.data.ragged import padded
from foveate.data.tokens.tokenizers import TRAINERS, Tokens, load_tokenizer
from foveate.errors import UserError
from foveate.forms.form import Learned
from foveate.forms.written import check_vocabulary

START_SIGN, END_SIGN = "[START]", "[END]"
"""What stands for the start and the end of a caption in a look."""


@dataclass
class CaptionWords:
    """The settings and the vocabulary of a form that reads captions: inputs `tokens` (B, S) and `lengths` (B,)."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    with_end: ClassVar[bool] = True
    """Whether an end token follows a caption. A start token stands before it."""

    tokens: Tokens = "words"
    """What a caption is cut into."""
    vocabulary: int = 10_000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read captions in lower case."""
    tokenizer: Learned[Any] = None
    """What cuts captions into tokens."""
    longest: Learned[int] = 77
    """Tokens that the model reads at most, with start and end."""

    def check(self) -> None:
        """Raise UserError for a setting that cannot be."""
        check_vocabulary(self.vocabulary)

    def check_learned(self) -> None:
        """Raise UserError where the file of the tokenizer was missing."""
        if self.tokenizer is None:
            raise UserError(f"there is no {self.saved_apart['tokenizer']}")

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        """The tokenizer. Raises UserError for a damaged file."""
        return load_tokenizer(path)

    def learn_words(self, captions: Iterable[str], architecture: Any) -> None:
        """Learn the vocabulary."""
        self.tokenizer = TRAINERS[self.tokens](captions, self.vocabulary, self.lowercase)
        self.longest = architecture.max_length

    def read(self, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The inputs for the tokens of captions."""
        special = self.tokenizer.special
        end = [special.end] if self.with_end else []
        tokens, lengths = padded([np.array([special.start, *caption, *end]) for caption in captions], special.pad)
        return {"tokens": torch.as_tensor(tokens), "lengths": torch.as_tensor(lengths)}

    def names(self, tokens: Sequence[int]) -> list[str]:
        """What to call the start, each token, and the end."""
        return [START_SIGN, *self.tokenizer.pieces(tokens), *([END_SIGN] if self.with_end else [])]

    def checked(self, caption: str, purpose: str) -> list[int]:
        """The tokens of a caption that is not too long. Raises UserError as `known` does, and for one that is."""
        tokens, most = self.known(caption, purpose), self.longest - 2  # start and end
        if len(tokens) > most:
            raise UserError(f"the caption has {len(tokens)} tokens, but the model reads at most {most}")
        return tokens

    def known(self, caption: str, purpose: str) -> list[int]:
        """The tokens of a caption. Raises UserError for one that is empty, or has words that the model never saw;
        `purpose` ends the message for an empty one: "nothing to draw"."""
        (tokens,) = self.tokenizer.encode([caption])
        if not tokens:
            raise UserError(f"the caption is empty: there is {purpose}")
        if self.tokenizer.special.unknown in tokens:
            raise UserError(unknown_word(self.tokenizer, caption))
        return list(tokens)

    def without_commas(self, caption: str) -> str:
        """A caption as a list of things, "red apple, key", for a model whose captions had no commas."""
        known = {word.lstrip("▁") for word in self.tokenizer.vocabulary()}
        return caption if "," in known else " ".join(caption.replace(",", " ").split())


def unknown_word(tokenizer: Any, caption: str) -> str:
    """Which word of a caption the tokenizer does not know, and the nearest ones that it knows."""
    known = sorted(word.lstrip("▁") for word in tokenizer.vocabulary())
    word = next((word for word in caption.split() if tokenizer.special.unknown in tokenizer.encode([word])[0]), caption)
    near = difflib.get_close_matches(word.lower(), [one for one in known if len(one) > 1], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"the model never saw the word '{word}' in a caption{hint}"
