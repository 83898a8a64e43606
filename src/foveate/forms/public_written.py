"""Texts about images in the tokens of a folder, or of a tokenizer that is learned.

PublicLineText   what is written in an image
PublicCaption    a caption of an image
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveate.contracts import Hypothesis
from foveate.data.dataset import Dataset
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import TRAINERS
from foveate.decoding import Decoding
from foveate.decoding.token_rules import TokenRules
from foveate.forms.caption import CaptionOptions, CaptionText
from foveate.forms.form import Learned
from foveate.forms.reading import LineText
from foveate.forms.written import VOCABULARY, WriteOptions, Written, require_tokenizer


@dataclass
class PromptOptions(WriteOptions):
    """How a model is asked to write what is in an image."""

    prompt: str = ""
    """What the text begins with, such as "<s_cord-v2>" for a Donut."""


@dataclass
class PromptCaptionOptions(CaptionOptions):
    """How captions are written, and what a picture shows."""

    prompt: str = ""
    """What each caption begins with, such as "a photo of"."""


@dataclass(kw_only=True)
class PublicTokens(Written):
    """What such texts have in common. Comes first among the bases of a class."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    decoder: ClassVar[str] = Written.decoder
    attending: ClassVar[tuple[str, ...]] = Written.attending

    tokenizer: Learned[Any] = None
    rules: Learned[TokenRules | None] = None
    """What the folder that the model is from says of the tokens that may follow each other."""

    public: Learned[bool] = False
    """Whether the model is a folder's, whose training data nobody knows."""

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    @property
    def token_rules(self) -> TokenRules | None:
        return self.rules

    def decoded(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """With the tags of a document, such as `<s_total>`, which are special tokens without a role."""
        own = self.tokenizer
        return own.decode_tagged(rows) if isinstance(own, TextTokenizer) else super().decoded(rows)

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        return {} if self.public else super().baselines(reads, examples, train)

    def prompt_tokens(self, options: Any) -> list[int]:
        """Those of the prompt that the options name, without the start."""
        prompt, own = getattr(options, "prompt", ""), self.tokenizer
        tokens = own.encode_tagged(prompt) if isinstance(own, TextTokenizer) else own.encode([prompt])[0]
        return list(tokens[1:] if tokens and tokens[0] == own.special.start else tokens)

    def search(
        self, model: Any, batches: Iterable[dict[str, Tensor]], options: Any, at_once: int = 1
    ) -> Iterator[list[list[Hypothesis]]]:
        """A prompt is the beginning of what is found."""
        prompt = self.prompt_tokens(options)
        if not prompt:
            return super().search(model, batches, options, at_once)
        begin = torch.tensor([[self.tokenizer.special.start, *prompt]])
        given = ({"tokens": _repeated(begin, inputs["pixels"]), **inputs} for inputs in batches)
        return (
            [[replace(one, tokens=[*prompt, *one.tokens]) for one in found] for found in batch]
            for batch in super().search(model, given, options, at_once)
        )

    def longest(self, model: nn.Module, inputs: Mapping[str, Tensor], decoding: Decoding) -> Int[Tensor, "B"]:
        """Without the prompt, which counts."""
        found = super().longest(model, inputs, decoding)
        return (found - (inputs["tokens"].shape[1] - 1)).clamp_min(1) if "tokens" in inputs else found


def _repeated(row: Tensor, rows: Tensor) -> Tensor:
    return row.to(rows.device).expand(len(rows), -1)


@dataclass
class PublicLineText(PublicTokens, LineText):
    """The text in an image."""

    options: ClassVar[type[Any]] = PromptOptions

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "PublicLineText":
        found = copy(self)
        found.tokenizer = TRAINERS["characters"]((one.label for one in train), VOCABULARY, False)
        return found

    def extend(self, trained: Any, train: Dataset[Any]) -> "PublicLineText":
        """The vocabulary stays as it is."""
        found: PublicLineText = trained.with_settings(self)
        return found

    def notes(self, examples: Sequence[Any]) -> list[str]:
        return []


@dataclass
class PublicCaption(PublicTokens, CaptionText):
    """A caption of an image."""

    options: ClassVar[type[Any]] = PromptCaptionOptions

    def notes(self, examples: Sequence[Any]) -> list[str]:
        return super().notes(examples) if "unknown" in self.tokenizer.special else []
