"""The words that fit best into the blanks of a text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foveate.data.text.masking import MASK
from foveate.errors import TextError, at_least, one_line, quoted
from foveate.tasks.former.predictor import Predictor


def check_blanks(texts: Sequence[str]) -> None:
    """Raise TextError for the first text that has words, but nothing to fill in."""
    for place, text in enumerate(texts):
        if text.strip() and MASK not in text:
            raise TextError(place, f"{quoted(text)} has no {MASK}: write it where a word is to be filled in")


@dataclass
class Filling:
    """How `foveate run` has hidden words filled in."""

    best: int = 5
    """How many words to name for each [MASK]."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "best", self.best)


@dataclass
class Blank:
    """The best words for one [MASK], the most probable first."""

    words: list[str]
    probabilities: list[float]

    @property
    def line(self) -> str:
        """Like "fried 0.31, roast 0.12"."""
        pairs = zip(self.words, self.probabilities, strict=True)
        return ", ".join(f"{word} {probability:.2f}" for word, probability in pairs)


@dataclass
class FilledText:
    """A text, and the best words for each [MASK] in it."""

    text: str
    blanks: list[Blank]

    @property
    def filled(self) -> str:
        """The text with the best word in each blank."""
        before, *after = self.text.split(MASK)
        return before + "".join(f"{blank.words[0]}{part}" for blank, part in zip(self.blanks, after, strict=True))

    @property
    def line(self) -> str:
        """The text with the best words, then a tab and the best words of each [MASK]."""
        return "\t".join([one_line(self.filled), *(one_line(blank.line) for blank in self.blanks)])


def blanks_of(predictor: Predictor, tokens: Sequence[int], places: Sequence[int], best: int) -> list[Blank]:
    """The best words for the masks at some places of a text; several are predicted at once, each without the others."""
    inputs = predictor.processor.way.ask([np.array(tokens)], [np.array(places)])
    first = predictor.processor.tokenizer.special.first_word
    probabilities = predictor.forward(inputs).logits[0].float().softmax(-1)
    probabilities[:, :first] = 0  # these are no words
    found = []
    for row in probabilities:
        shares, ids = row.topk(min(best, len(row) - first))
        words = [predictor.processor.tokenizer.pieces([token])[0] for token in ids.tolist()]
        found.append(Blank(words, shares.tolist()))
    return found
