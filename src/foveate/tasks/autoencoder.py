"""A trained auto-encoder: what it keeps of a text in a vector, and how faithfully it writes the text again."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import Picture, Tokenizer
from foveate.data import Passage, Prose, joined, sentences
from foveate.decoding import Decoding
from foveate.errors import UserError, at_least
from foveate.sight import look
from foveate.tasks.fidelity import fidelity
from foveate.tasks.nearest import nearest, nearest_by_words
from foveate.tasks.prose_text import AutoencodeText
from foveate.tasks.rewriting import REWRITINGS, Rewriting
from foveate.tasks.texts import spread
from foveate.tasks.trained import Evaluation, Reading, Writing, check_unchanged, opened, said
from foveate.tasks.translator import END_SIGN
from foveate.viewer import Alignment, plot_alignments

TOKENIZER = "tokenizer.json"

NAMED = 3
"""So many words stand for a sentence in pictures."""


@dataclass
class Answering(Writing):
    """What `foveate run` has an auto-encoder tell of each text."""

    show: Literal["text", "vector", "neighbours"] = "text"
    """The text as it is written again, its vector (numbers parted by tabs), or the nearest texts that the model learned
    from (by the cosine of the vectors, which stands before each)."""
    neighbours: int = 3
    """How many of the nearest texts."""


@dataclass
class Measuring(Writing):
    """How `foveate eval` measures an auto-encoder."""

    examples: int = 500
    """Measure at most so many sentences or passages, from all over the text."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "examples", self.examples)


@dataclass
class Answer:
    """What was told of a text."""

    text: str
    line: str


@dataclass
class Autoencoder:
    """An auto-encoder with its tokenizer."""

    model: nn.Module
    tokenizer: Tokenizer
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    decoding: Decoding = field(default_factory=Decoding)
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Autoencoder":
        """The auto-encoder of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        decoding = cls.run_options(found.description.recipe, found.where).decoding
        return cls(found.model, found.tokenizer(TOKENIZER, "vocabulary"), found.files.description, decoding)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Answering:
        return Answering(decoding=from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> Measuring:
        return Measuring(decoding=cls.run_options(recipe, where).decoding)

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        bundle.save(folder, self.description, self.model.state_dict(), {TOKENIZER: self.tokenizer.save})

    def run(self, text: str, **decoding: Any) -> str:
        """The text as the model writes it again; keyword arguments replace fields of `decoding`."""
        return self.rewritten([_passage(text)], replace(self.decoding, **decoding))[0]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """What the model keeps of each text: (number of texts, width). None may be empty."""
        return self._vectors([_passage(text) for text in texts]).cpu().numpy()

    def answer(self, texts: Sequence[str], options: Answering) -> list[Answer]:
        """What the options ask for, of each text; nothing of an empty one."""
        options.check()
        passages = [_passage(text) for text in texts if text.strip()]
        lines = iter(self._lines(passages, options) if passages else [])
        return [Answer(text, next(lines) if text.strip() else "") for text in texts]

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """The places of texts that are longer than any the model learned from."""
        lengths = self.rewriting.lengths([_passage(text) for text in texts])
        return [place for place, length in enumerate(lengths) if length > self._text.max_length]

    def reading(self, text: str) -> Reading:
        """What the model is given to read a text and to write it again, and what to call its sentences: their first
        words."""
        passage = _passage(text)
        (batch,) = self.rewriting.training_batches([passage], self.batch_tokens, sys.maxsize, seed=0).epoch(0)
        names = [*(" ".join(sentence.split()[:NAMED]) for sentence in passage.sentences), END_SIGN]
        inputs = batch.to(next(self.model.parameters()).device).inputs
        return Reading(inputs, names, int(inputs["source_lengths"].sum()))

    def picture(self, prediction: Answer) -> Picture | None:
        """Which sentences each one looked at while the text was read and written; None if the model does not attend."""
        reading = self.reading(prediction.text)
        with torch.inference_mode(), look(self.model) as sight:
            self.model(**reading.inputs)
        names = reading.pieces
        maps = [Alignment(sight[site].weights()[0].mean(0).cpu(), names, names, site) for site in sight.sites]
        return plot_alignments(maps) if maps else None

    @property
    def rewriting(self) -> Rewriting:
        """How the model reads and writes."""
        return REWRITINGS[self.description["family"]](self.model, self.tokenizer)

    def fitting(self, prose: Prose) -> list[Passage]:
        """The passages of a text that are not longer than those the model learns from."""
        passages = list(self.rewriting.passages(prose, self._text.passage_words))
        lengths = self.rewriting.lengths(passages)
        return [one for one, length in zip(passages, lengths, strict=True) if length <= self._text.max_length]

    def rewritten(
        self, passages: Sequence[Passage], decoding: Decoding | None = None, seed: int | None = None
    ) -> list[str]:
        """Each passage as the model writes it again from its vector; without a `seed` torch's own generator draws."""
        found, device = [""] * len(passages), next(self.model.parameters()).device
        generator = None if seed is None else torch.Generator(device).manual_seed(seed)
        for places, inputs in self._read(passages):
            with torch.inference_mode():
                written = self.rewriting.write(inputs, decoding or self.decoding, generator)
            for place, parts in zip(places, written, strict=True):
                found[place] = joined(self.tokenizer.decode(parts))
        return found

    def evaluate(self, data: Sequence[Path], options: Measuring, console: Console) -> Evaluation:
        """What is written again faithfully, beside two ways that know the words of a text, but not their order."""
        prose = self._text.test(data, "autoencode")
        console.print(prose.report, markup=False, highlight=False)
        fitting = self.fitting(prose)
        passages = spread(fitting, len(fitting), options.examples)
        if not passages:
            raise UserError(
                f"{prose.name}: nothing has at most {self._text.max_length} tokens, as what was learned has"
            )
        texts, notes = [passage.text for passage in passages], [f"{len(passages):,} of {len(fitting):,} that fit"]
        answers = self.rewritten(passages, options.decoding, options.seed)
        found = {"this model": self.tokenizer.encode(answers)}
        try:
            found = {**self._without_order(texts), **found}
        except UserError as error:
            notes.append(f"nothing to compare with: {error}")
        measured = {name: fidelity(tokens, texts, self.tokenizer) for name, tokens in found.items()}
        return Evaluation(
            answers=answers,
            figures={name: asdict(one) for name, one in measured.items()},
            headings=["", "tokens in place", "whole texts", "BLEU"],
            rows=[
                [name, f"{one.tokens:.1f}%", f"{one.whole:.1f}%", f"{one.bleu:.1f}"] for name, one in measured.items()
            ],
            notes=notes,
        )

    def _without_order(self, texts: Sequence[str]) -> dict[str, list[list[int]]]:
        """Each text as its most frequent token over and over, and as the training text that shares the most words."""
        learned = self.tokenizer.encode([passage.text for passage in self._learned])
        asked = self.tokenizer.encode(list(texts))
        ((frequent, _),) = Counter(token for tokens in learned for token in tokens).most_common(1)
        places = nearest_by_words(asked, learned, len(self.tokenizer)).tolist()
        return {
            "the most frequent token": [[frequent] * len(tokens) for tokens in asked],
            "the nearest training text": [learned[place] for place in places],
        }

    def _lines(self, passages: Sequence[Passage], options: Answering) -> list[str]:
        if options.show == "text":
            return self.rewritten(passages, options.decoding, options.seed)
        vectors = self._vectors(passages)
        if options.show == "vector":
            return ["\t".join(f"{number:.6g}" for number in vector) for vector in vectors.tolist()]
        at_least(1, "neighbours", options.neighbours)
        known, known_vectors = self._learned, self._learned_vectors
        places, cosines = nearest(vectors, known_vectors, options.neighbours)
        return [
            "\t".join(f"{cosine:.3f} {known[place].text}" for place, cosine in zip(*row, strict=True))
            for row in zip(places.tolist(), cosines.tolist(), strict=True)
        ]

    @cached_property
    def _learned(self) -> list[Passage]:
        """What the model learned from. Raises UserError where that is not there any more."""
        check_unchanged(self.description)
        learn, _ = self._text.open("autoencode")
        return self.fitting(learn)

    @cached_property
    def _learned_vectors(self) -> Float[Tensor, "M C"]:
        return self._vectors(self._learned)

    def _vectors(self, passages: Sequence[Passage]) -> Float[Tensor, "M C"]:
        model: Any = self.model
        found = torch.zeros(len(passages), model.config.width, device=next(model.parameters()).device)
        for places, inputs in self._read(passages):
            with torch.inference_mode():
                found[places] = model.vectors(**inputs)
        return found

    def _read(self, passages: Sequence[Passage]) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        device = next(self.model.parameters()).device
        for places, inputs in self.rewriting.read(passages, self.batch_tokens):
            yield places, {name: value.to(device) for name, value in inputs.items()}

    @property
    def _text(self) -> AutoencodeText:
        return from_dict(AutoencodeText, said(self.description, "examples"), bundle.CONFIG)


def _passage(text: str) -> Passage:
    """A user's text; its sentences are told by their marks."""
    return Passage("the input", "", tuple(sentences(" ".join(text.split()))))
