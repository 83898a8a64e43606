"""An auto-encoder in use: texts are written again, or become vectors, by which the nearest ones are found."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor

from foveate.baselines.nearest import nearest, nearest_by_words
from foveate.data.text.documents import Passage
from foveate.errors import UserError
from foveate.forms.rewriting import NeighboursAnswer, PassageVector, ReadPassage, Rewritten, Sentences, passage_of
from foveate.metrics.resampling import Measured
from foveate.tasks.examples.data_options import subsample
from foveate.tasks.skill import Skill
from foveate.tasks.training_data import lost

TOGETHER = 64
"""Passages that are read into vectors together."""


class Autoencoder(Skill):
    """A model that reads passages into vectors."""

    _learned: tuple[list[Passage], Tensor] | None = None

    @property
    def reads(self) -> ReadPassage:
        """The form that is read."""
        found: ReadPassage = self.processor.reads
        return found

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """What the model keeps of each text: (number of texts, width). None may be empty."""
        return self.vectors([self.reads.prepare(passage_of(text)) for text in texts]).cpu().numpy()

    def vectors(self, prepared: Sequence[Sentences]) -> Float[Tensor, "M C"]:
        """What the model keeps of each passage."""
        model: Any = self.model
        found = torch.zeros(len(prepared), model.config.width, device=self.device)
        order = sorted(range(len(prepared)), key=lambda row: -self.reads.places(prepared[row]))
        for begin in range(0, len(order), TOGETHER):
            rows = order[begin : begin + TOGETHER]
            inputs, _ = self.reads.tensors([prepared[row] for row in rows])
            with torch.inference_mode():
                found[rows] = model.vectors(**self.on_device(inputs))
        return found

    def answer_prepared(self, prepared: Sequence[Sentences], options: Any) -> list[Any]:
        """What the options ask for, of each passage."""
        if getattr(options, "show", "text") == "text" or not prepared:
            return super().answer_prepared(prepared, options)
        vectors = self.vectors(prepared)
        if options.show == "vector":
            return [PassageVector(vector=vector) for vector in vectors.tolist()]
        known, known_vectors = self.learned()
        places, cosines = nearest(vectors, known_vectors, options.neighbours)
        return [
            NeighboursAnswer(
                neighbours=[(cosine, known[place].text) for place, cosine in zip(*row, strict=True)],
            )
            for row in zip(places.tolist(), cosines.tolist(), strict=True)
        ]

    def picture(self, answer: Any) -> Any:
        """Which sentences each one looked at while the text was read and written."""
        (again,) = super().answer_prepared([self.reads.prepare(passage_of(answer.given))], self.options_with())
        again.given = answer.given
        return super().picture(again)

    def measure(
        self, examples: Sequence[Passage], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """What is written again faithfully."""
        return super().measure(self._measured(examples, options), options, console)

    def measured(self, examples: Sequence[Passage], options: Any, console: Console | None = None) -> Measured | None:
        return super().measured(self._measured(examples, options), options, console)

    def baselines(self, examples: Sequence[Passage], options: Any) -> dict[str, dict[str, float]]:
        """Two ways that know the words of a text, but not their order: its most frequent token over and over, and the
        training text that shares the most words."""
        if lost(self):
            return {}
        writes: Rewritten = self.processor.writes
        passages, tokenizer = self._measured(examples, options), writes.tokenizer
        learned = tokenizer.encode([passage.text for passage in self.learned()[0]])
        asked = tokenizer.encode([passage.text for passage in passages])
        ((frequent, _),) = Counter(token for tokens in learned for token in tokens).most_common(1)
        places = nearest_by_words(asked, learned, len(tokenizer)).tolist()
        ways = {
            "the most frequent token": [[frequent] * len(tokens) for tokens in asked],
            "the nearest training text": [learned[place] for place in places],
        }
        return {name: writes.fidelity(tokens, passages) for name, tokens in ways.items()}

    def notes(self, examples: Sequence[Passage]) -> list[str]:
        why = lost(self)
        fit = f"{len(self.fitting(examples)):,} have at most {self.reads.max_length:,} tokens"
        return [fit, *([f"nothing to compare with: {why}"] if why else [])]

    def fitting(self, passages: Sequence[Passage]) -> list[Passage]:
        """The passages that are not longer than those the model learns from."""
        encoded = self.reads.encode(passages)
        return [
            one for one, own in zip(passages, encoded, strict=True) if self.reads.longest(own) <= self.reads.max_length
        ]

    def learned(self) -> tuple[list[Passage], Float[Tensor, "M C"]]:
        """What the model learned from, and the vectors. Raises UserError where that is not there any more."""
        if self._learned is None:
            passages = self.fitting(list(self.train_examples()))
            self._learned = passages, self.vectors([self.reads.prepare(one) for one in passages])
        return self._learned

    def _measured(self, examples: Sequence[Passage], options: Any) -> list[Passage]:
        """Some of the passages that fit, from all over. Raises UserError where none does."""
        fitting = self.fitting(examples)
        if not fitting:
            raise UserError(f"nothing has at most {self.reads.max_length} tokens, as what was learned has")
        return subsample(fitting, len(fitting), options.examples)
