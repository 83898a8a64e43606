"""Sentence embeddings: a BERT in a Hugging Face folder gives each text a vector, and finds the texts nearest to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle, models
from foveate.contracts import Tokenizer
from foveate.data.text.batches import surroundings, text_batches
from foveate.data.text.files import read_sentences
from foveate.errors import UserError, at_least, one_line
from foveate.files import read_json, read_json_value
from foveate.forms.checks import check_positions
from foveate.tasks.protocols import Evaluation, ModelInputs
from foveate.tasks.start.weights import open_start
from foveate.training.hardware import choose_device

MODULES, MODULES_READ = "modules.json", ("Transformer", "Pooling", "Normalize")
"""The file of the sentence-transformers project, and what it may list."""

_MODES = tuple(
    f"pooling_mode_{way}"
    for way in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
)


@dataclass
class Embedding:
    """What is asked of a model that embeds sentences."""

    near: Path | None = None
    """A file of sentences, one a line: print the nearest of them and their cosines, not the vector."""
    count: int = 5
    """How many of the nearest sentences to print."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "count", self.count)


@dataclass
class Embedded:
    """A text and its vector."""

    text: str
    vector: list[float] = field(repr=False)
    near: list[tuple[float, str]] = field(default_factory=list)
    """The cosine of each of the nearest sentences, and the sentence; the nearest first."""

    @property
    def line(self) -> str:
        """The nearest sentences, or else the numbers of the vector; nothing for an empty text."""
        if self.near:
            return "\t".join(f"{cosine:.3f} {one_line(sentence)}" for cosine, sentence in self.near)
        return " ".join(f"{number:.6f}" for number in self.vector)


@dataclass
class Embedder:
    """A BERT with its tokenizer, and how the vectors of tokens become one."""

    model: nn.Module
    tokenizer: Tokenizer
    description: dict[str, Any]
    normalized: bool = True
    """Whether vectors have a length of 1, so that their dot product is their cosine."""
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Embedder":
        """The model of a Hugging Face folder, in evaluation mode. Raises UserError for what is missing or damaged."""
        start = open_start(folder)
        if start.tokenizer is None or start.family != "bert":
            raise UserError(f"{folder} is no BERT, so it gives no vectors of sentences")
        pooling, normalized = read_pooling(start.folder)
        start.config.pooling = pooling
        model = models.build(start.family, start.config)
        start.fill(model)
        description = {"family": start.family, "recipe": {"model": str(folder)}}
        return cls(model.to(choose_device(device)).eval(), start.tokenizer, description, normalized)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Embedding:
        return Embedding()

    eval_options = run_options

    def run(self, text: str) -> Embedded:
        """The vector of one text."""
        return self.answer([text], Embedding())[0]

    def answer(self, texts: Sequence[str], options: Embedding) -> list[Embedded]:
        """The vector of each text, and with `near` the nearest sentences of that file."""
        options.check()
        vectors = self.embed(texts)
        found = [Embedded(text, vector) for text, vector in zip(texts, vectors.tolist(), strict=True)]
        if options.near is not None:
            sentences = [line for line in read_sentences(options.near) if line]
            cosines = F.normalize(vectors, dim=-1) @ F.normalize(self.embed(sentences), dim=-1).T
            best = cosines.topk(min(options.count, len(sentences)))
            for one, values, places in zip(found, best.values.tolist(), best.indices.tolist(), strict=True):
                one.near = [(value, sentences[place]) for value, place in zip(values, places, strict=True)]
        for one in found:
            if not one.text.strip():
                one.vector, one.near = [], []
        return found

    def embed(self, texts: Sequence[str]) -> Float[Tensor, "B C"]:
        """The vectors of texts, in batches of like length."""
        device, (begin, end) = next(self.model.parameters()).device, surroundings(self.tokenizer)
        tokens = self.tokenizer.encode(list(texts))
        check_positions(self.model, texts, enumerate(map(len, tokens)), len(begin) + len(end))
        vectors = torch.zeros(len(texts), self.model.config.width)  # type: ignore[union-attr, arg-type]
        for rows, inputs in text_batches(tokens, self.tokenizer, self.batch_tokens):
            with torch.inference_mode():
                pooled = self.model.vector(**{name: value.to(device) for name, value in inputs.items()})  # type: ignore[operator]
            vectors[rows] = pooled.float().cpu()
        return F.normalize(vectors, dim=-1) if self.normalized else vectors

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        return []

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places."""
        (begin, end), (tokens,) = surroundings(self.tokenizer), self.tokenizer.encode([text])
        ids = [*begin, *tokens, *end]
        inputs = {"tokens": torch.tensor([ids]), "lengths": torch.tensor([len(ids)])}
        device = next(self.model.parameters()).device
        return ModelInputs(
            {name: value.to(device) for name, value in inputs.items()}, self.tokenizer.pieces(ids), len(ids)
        )

    def picture(self, prediction: Embedded) -> None:
        """None: an embedding is of the whole text."""

    def evaluate(self, data: Sequence[Path], options: Embedding, console: Console) -> Evaluation:
        """UserError: vectors are neither right nor wrong."""
        raise UserError("a model that embeds sentences is measured by a task: train one with --from")


def embeds_sentences(folder: Path) -> bool:
    """Whether it is a folder of the sentence-transformers project, whose model gives one vector of many."""
    return "Pooling" in _modules(folder)


def read_pooling(folder: Path) -> tuple[str, bool]:
    """How such a folder makes one vector of many: "mean" or "first", and whether it is normalized.

    A folder without a word on this has the normalized mean. Raises UserError for another way, or a further layer.
    """
    kinds = _modules(folder)
    if not kinds:
        return "mean", True
    if further := sorted(kinds.keys() - {*MODULES_READ}):
        raise UserError(f"{folder / MODULES} names a {further[0]}; foveate reads {', '.join(MODULES_READ)}")
    config = folder / kinds.get("Pooling", "") / bundle.CONFIG
    values = read_json(config) if "Pooling" in kinds and config.is_file() else {}
    ways = [name.removeprefix("pooling_mode_") for name, on in values.items() if on is True and name in _MODES]
    ways += [values["pooling_mode"]] if isinstance(values.get("pooling_mode"), str) else []
    known = {"mean_tokens": "mean", "mean": "mean", "cls_token": "first", "cls": "first"}
    if len(ways) > 1 or (ways and ways[0] not in known):
        raise UserError(f"{config} names a way to make one vector that foveate has not: it has mean and first token")
    return known[ways[0]] if ways else "mean", "Normalize" in kinds


def _modules(folder: Path) -> dict[str, str]:
    """What `modules.json` lists, each with its folder; nothing where there is no such file."""
    if not (folder / MODULES).is_file():
        return {}
    try:
        modules = read_json_value(folder / MODULES)
        return {str(module["type"]).rpartition(".")[2]: str(module.get("path", "")) for module in modules}
    except UserError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / MODULES} is damaged: {error}") from None
