"""What is said in a sound, by CTC (Graves et al. 2006): a character at each place of the sound, or none.

B batch    T characters    Z places of the sound that a model keeps    N characters that there are
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output, count_labels
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.text.scripts import begins_word
from foveate.data.tokens.spelling import Spelling
from foveate.errors import UserError
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Learned, MapRow, OutputForm
from foveate.forms.scored import ScoredForm, ctc_score
from foveate.forms.sound import Heard
from foveate.forms.transcripts import (
    CutOptions,
    StreamOptions,
    TranscriptAnswer,
    TranscriptForm,
    check_no_language,
    most_frequent_transcript,
)
from foveate.forms.word_times import TimedWord
from foveate.metrics.error_rates import transcript_errors
from foveate.sight import Sight


@dataclass(kw_only=True)
class SpelledAnswer(TranscriptAnswer):
    """What a model heard in a sound, and where."""

    places: list[int] = field(default_factory=list, repr=False)
    """The first place of each token."""


@dataclass
class SpelledTranscript(ScoredForm, TranscriptForm, OutputForm):
    """The characters of what is said, which a model gives places of a sound: targets `labels` (B, T), and the `blank`
    of each row."""

    options: ClassVar[type[Any]] = StreamOptions
    eval_options: ClassVar[type[Any]] = CutOptions
    attending: ClassVar[tuple[str, ...]] = ("blocks.*", "listener.*")
    whole: ClassVar[bool] = False
    metric: ClassVar[str] = "character_error_rate"
    higher_is_better: ClassVar[bool] = False

    language: str | None = None
    """That of a Whisper alone."""
    spelling: Learned[Spelling] = field(default_factory=Spelling)
    """What the model can write."""
    frequent: Learned[str] = ""
    """The most frequent transcript in training."""

    @classmethod
    def of_folder(cls, folder: Path, size: int) -> "SpelledTranscript":
        """As a folder says, whose model has this many outputs. Raises UserError for what is damaged."""
        return cls(spelling=Spelling.of_folder(folder, size))

    def check(self) -> None:
        check_no_language(self)

    def check_learned(self) -> None:
        if not 0 <= self.spelling.blank < len(self.spelling):
            raise UserError(f"the blank is {self.spelling.blank}, but there are {len(self.spelling)} characters")

    @property
    def tokenizer(self) -> Spelling:
        """What cuts texts into characters."""
        return self.spelling

    def learn(self, train: Dataset[LabelledSound], reads: Any, architecture: Any) -> "SpelledTranscript":
        return self._counting(Spelling.of_texts(one.label for one in train), train)

    def extend(self, trained: "SpelledTranscript", train: Dataset[LabelledSound]) -> "SpelledTranscript":
        """With new characters behind the known ones; where none are known, with those of the examples."""
        if not trained.spelling.pieces:
            return self.learn(train, None, None)
        return self._counting(trained.spelling.extend(one.label for one in train), train)

    def _counting(self, spelling: Spelling, train: Dataset[LabelledSound]) -> "SpelledTranscript":
        found = copy(self)
        found.spelling = spelling
        found.frequent = most_frequent_transcript(train)
        return found

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.spelling)}

    def prepare(self, example: LabelledSound) -> list[np.ndarray]:
        return [np.array(row, np.int32) for row in self.spelling.encode([example.label])]

    def tensors(
        self, prepared: Sequence[Any], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels, _ = padded(prepared, IGNORE)
        blank = torch.full((len(prepared),), self.spelling.blank)
        return {}, {"labels": labels, "blank": blank}, count_labels(labels)

    # -- writing

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Heard], options: Any
    ) -> list[SpelledAnswer]:
        """The likeliest character of each place, without repetitions and blanks."""
        output = model(**inputs)
        log_probs, best = output.logits.float().log_softmax(-1).max(-1)
        rows = zip(log_probs.tolist(), best.tolist(), output.ctc_lengths.tolist(), prepared, strict=True)
        return [self._answer(own[:count], ids[:count], heard) for own, ids, count, heard in rows]

    def _answer(self, log_probs: Sequence[float], ids: Sequence[int], heard: Heard) -> SpelledAnswer:
        found = self.spelling.collapse(ids)
        tokens = [token for token, _ in found]
        (text,) = self.spelling.decode([tokens])
        places = [*(place for _, place in found), len(ids) - 1]
        return SpelledAnswer(text=text, log_prob=sum(log_probs), tokens=tokens, seconds=heard.seconds, places=places)

    def nothing(self) -> SpelledAnswer:
        return SpelledAnswer()

    def comparable(self, text: str) -> str:
        """A text in the case of the characters."""
        return " ".join(self.spelling.fold(text).split())

    def notes(self, examples: Sequence[Any]) -> list[str]:
        texts = (" ".join(self.spelling.fold(one.label).split()) for one in examples)
        characters = [character for text in texts for character in text]
        return unseen_labels("characters", characters, [" ", *self.spelling.pieces])

    def baselines(
        self, reads: Any, examples: Sequence[LabelledSound], train: Callable[[], Dataset[LabelledSound]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent transcript of the training part; nothing where that is not known."""
        if not self.frequent:
            return {}
        right = [self.comparable(one.label) for one in examples]
        found = [self.comparable(self.frequent)] * len(right)
        return {"the most frequent transcript": transcript_errors(found, right)}

    # -- looking

    def rows(self, sight: Sight, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """Where the place of each character looked in the last layer, as the mean of its heads."""
        if not sight.sites or not answer.tokens:
            return []
        site = sight.sites[-1]
        heads = sight[site].weights(queries=answer.places[:-1])[0].float().cpu()
        where = f"{site}, mean of {len(heads)} heads"
        names = [self.spelling.text(token) for token in answer.tokens]
        return [MapRow(name, weights, site=where) for name, weights in zip(names, heads.mean(0), strict=True)]

    def scored_labels(self, output: Output, answer: Any) -> Tensor:
        return torch.tensor([answer.tokens], dtype=torch.long).reshape(1, -1)

    def named(self, text: str, answer: Any) -> Any:
        (tokens,) = self.spelling.encode([text])
        return replace(answer, text=text, tokens=[*tokens])

    def score(self, output: Any, labels: Tensor, copies: int = 1) -> Tensor:
        log_probs = output.logits.float().log_softmax(-1)
        return ctc_score(log_probs, output.ctc_lengths, labels, self.spelling.blank)

    def words(self, answer: TranscriptAnswer) -> list[tuple[str, int]]:
        words, counts = list[str](), list[int]()
        for token in answer.tokens:
            text = self.spelling.text(token)
            if not words or begins_word(words[-1], text):
                words.append("")
                counts.append(0)
            words[-1] += text.lower() if self.spelling.lowercase else text
            counts[-1] += 1
        return [*zip(words, counts, strict=True)]

    def timed_words(self, answer: Any, look: Callable[[], Sight]) -> list[TimedWord]:
        """By the places of the characters, which need no look."""
        second = answer.seconds / (answer.places[-1] + 1)
        found, first = [], 0
        for word, count in self.words(answer):
            start, end = (second * answer.places[place] for place in (first, first + count))
            found.append(TimedWord(word, start, end))
            first += count
        return found
