"""Transcripts: what is said in a sound, one character after the other.

B batch    S frames    T characters    Z places of the sound that a model keeps
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.sounds.cutting import SHORTEST
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.text.scripts import begins_word, join_texts
from foveate.decoding import beam, greedy
from foveate.decoding.beam import check_width
from foveate.errors import UserError
from foveate.forms.form import Learned, MapRow, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.sound import Heard
from foveate.forms.word_times import TimedWord, most_decided, word_times
from foveate.forms.written import WrittenAnswer, WrittenCharacters
from foveate.metrics.error_rates import transcript_errors
from foveate.sight import Sight

FASTEST, EXTRA = 30, 10
"""Characters of a second that are written at most, and more characters of any sound."""

END = "[END]"


@dataclass
class CutOptions:
    """How sounds are cut."""

    cut: float | None = None
    """Sounds of more seconds are cut at their quietest places. By default those longer than any in training."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.cut is not None and not self.cut >= SHORTEST:
            raise UserError(f"cut is {self.cut}, but must be at least {SHORTEST} seconds")


@dataclass
class SearchOptions(CutOptions):
    """How the transcript is searched."""

    width: int = 5
    """Width of the beam search; 1 is greedy search."""

    def check(self) -> None:
        super().check()
        check_width(self.width)


@dataclass
class StreamOptions(CutOptions):
    """Whether words get times, and what a stream holds."""

    times: bool = False
    """Tell when each word begins and ends, in seconds, by where the model looked."""
    raw: int | None = None
    """Piped sound has no header: it is 16-bit samples of one channel, this many in a second."""

    def check(self) -> None:
        super().check()
        check_raw(self.raw)


@dataclass
class TimeOptions(StreamOptions, SearchOptions):
    """How the transcript is searched, and whether its words get times."""


def check_raw(rate: int | None) -> None:
    """Raise UserError for a sampling rate that cannot be."""
    if rate is not None and not 1000 <= rate <= 1_000_000:
        raise UserError(f"raw is {rate:,}, but the samples of a second are at least 1,000 and at most 1,000,000")


@dataclass(kw_only=True)
class TranscriptAnswer(WrittenAnswer):
    """What a model heard in a sound."""

    seconds: float = 0.0
    times: list[TimedWord] | None = None
    """When each word was said, where that was asked for."""
    prompt: list[int] = field(default_factory=list, repr=False)
    """The tokens before those of the text."""
    language: str | None = field(default=None, repr=False)
    """The code of the language that was spoken, in a model for several."""
    parts: list["TranscriptAnswer"] = field(default_factory=list, repr=False)
    """Those of the parts into which a long sound was cut, of which each was transcribed by itself."""

    @property
    def cells(self) -> list[str]:
        """The text; with the times of its words, where they were asked for."""
        return [self.text if self.times is None else " ".join(map(str, self.times))]

    @property
    def look_line(self) -> str:
        return f"Transcript: {self.text}"

    def json_values(self) -> dict[str, Any]:
        """The place, the text, its log-probability, the seconds, and the times of words."""
        place = {"place": self.prefix[0]} if self.prefix else {}
        found = {"text": self.text, "seconds": round(self.seconds, 3), "log_prob": round(self.log_prob, 4)}
        times = {} if self.times is None else {"words": [one.json_values() for one in self.times]}
        return {**place, **found, **times}


def join_parts(parts: Sequence[TranscriptAnswer]) -> TranscriptAnswer:
    """The transcript of a sound of those of its parts; their texts are joined as their script joins words."""
    text = join_texts(part.text for part in parts)
    return replace(
        parts[0],
        text=text,
        log_prob=sum(part.log_prob for part in parts),
        ended=all(part.ended for part in parts),
        seconds=sum(part.seconds for part in parts),
        parts=[*parts],
    )


class TranscriptForm:
    """What transcripts have in common, whatever their tokens are."""

    attending: ClassVar[tuple[str, ...]] = ("speller", "*cross")
    whole: ClassVar[bool] = True
    """A picture is of a whole sound, else of the first of its parts."""

    def check_options(self, options: Any) -> None:
        """Raise UserError for options that do not fit the model."""

    decide_all: ClassVar[Any] = OutputForm.decide_all
    """Batch after batch, unlike other texts: a search through a sound keeps no place free for another one."""

    def words(self, answer: TranscriptAnswer) -> list[tuple[str, int]]:
        """The words of a text and what stands between them, each with its number of tokens; none if it is unclear."""
        raise NotImplementedError

    def alignment(self, sight: Sight, answer: TranscriptAnswer) -> Float[np.ndarray, "H T Z"]:
        """Where the heads that follow the sound looked for each token and the end."""
        raise NotImplementedError

    def timed_words(self, answer: TranscriptAnswer, look: Callable[[], Sight]) -> list[TimedWord]:
        """When each word was said; `look` gives a sight of the model as it wrote the text."""
        words = self.words(answer)
        return word_times(self.alignment(look(), answer), words, answer.seconds) if words else []

    def comparable(self, text: str) -> str:
        """A text as it is compared with another."""
        return text

    def metrics(self, answers: Sequence[TranscriptAnswer], examples: Sequence[LabelledSound]) -> dict[str, float]:
        return transcript_errors(
            [self.comparable(one.text) for one in answers], [self.comparable(one.label) for one in examples]
        )

    def draw(self, answer: TranscriptAnswer, value: Heard, rows: Sequence[MapRow], grid: GridFinder) -> Picture:
        """The spectrogram, and below it where the model looked when it wrote each token; with the times of words,
        where they were asked for."""
        from foveate.viewer.speech_figure import draw  # imports matplotlib, which takes a while

        weights = np.stack([np.asarray(row.weights) for row in rows])
        words = [(one.word, one.start, one.end) for one in answer.times or []]
        names = [row.name for row in rows]
        return draw(value.shown, weights, names, value.seconds, answer.text, words)


@dataclass
class Transcript(TranscriptForm, WrittenCharacters):
    """The characters of what is said."""

    options: ClassVar[type[Any]] = TimeOptions
    eval_options: ClassVar[type[Any]] = SearchOptions
    metric: ClassVar[str] = "character_error_rate"
    higher_is_better: ClassVar[bool] = False
    worth_optimizing: ClassVar[float] = math.inf
    start_sign: ClassVar[str] = "[START]"
    end_sign: ClassVar[str] = END
    characters_from: ClassVar[int] = 2**62
    decoding: ClassVar[Any] = None  # type: ignore[misc]
    """The search has options of its own, and transcripts are bounded by the seconds of their sounds."""

    language: str | None = None
    """Code of the language that is spoken, where a Whisper that knows several is trained further (--from)."""
    frequent: Learned[str] = ""
    """The most frequent transcript in training."""

    def check(self) -> None:
        check_no_language(self)

    def learn(self, train: Dataset[LabelledSound], reads: Any, architecture: Any) -> "Transcript":
        found: Any = super().learn(train, reads, architecture)
        found.frequent = most_frequent_transcript(train)
        return found

    def extend(self, trained: Any, train: Dataset[LabelledSound]) -> "Transcript":
        found: Any = super().extend(trained, train)
        found.frequent = most_frequent_transcript(train)
        return cast(Transcript, found)

    def nothing(self) -> TranscriptAnswer:
        return TranscriptAnswer()

    def run_options(self) -> TimeOptions:
        return TimeOptions()

    def measure_options(self) -> SearchOptions:
        return SearchOptions()

    def at_once(self, device: torch.device) -> int:
        return 1

    def decide(
        self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[Heard], options: SearchOptions
    ) -> list[WrittenAnswer]:
        """The best transcript of each sound."""
        special, device = self.tokenizer.special, inputs["source"].device
        most = torch.tensor([most_characters(one.seconds) for one in prepared], device=device)
        if options.width == 1:
            best = greedy(model, inputs, special, most)
        else:
            best = [some[0] for some in beam(model, inputs, special, most, options.width)]
        return [
            TranscriptAnswer(
                text=self.tokenizer.decode([one.tokens])[0],
                log_prob=one.log_prob,
                ended=one.ended,
                tokens=list(one.tokens),
                seconds=heard.seconds,
            )
            for one, heard in zip(best, prepared, strict=True)
        ]

    def words(self, answer: TranscriptAnswer) -> list[tuple[str, int]]:
        words: list[str] = []
        for character in answer.text:
            if not words or begins_word(words[-1], character):
                words.append("")
            words[-1] += character
        return [(word, len(word)) for word in words] if len(answer.text) == len(answer.tokens) else []

    def alignment(self, sight: Sight, answer: TranscriptAnswer) -> Float[np.ndarray, "H T Z"]:
        """That of the head that looks most decidedly."""
        return most_decided(sight)[None]

    def baselines(
        self, reads: Any, examples: Sequence[LabelledSound], train: Callable[[], Dataset[LabelledSound]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent transcript of the training part."""
        right = [one.label for one in examples]
        return {"the most frequent transcript": transcript_errors([self.frequent] * len(right), right)}


def most_frequent_transcript(train: Dataset[LabelledSound]) -> str:
    """The transcript that most sounds have."""
    ((found, _),) = Counter(one.label for one in train).most_common(1)
    return found


def check_no_language(form: Any) -> None:
    """Raise UserError for a form that names a language, which only a Whisper does."""
    if form.language is not None:
        raise UserError("writes.language does nothing here: only a Whisper that is trained further knows languages")


def most_characters(seconds: float) -> int:
    """Characters that are written of a sound at most."""
    return math.ceil(FASTEST * seconds) + EXTRA


def why_too_long(sound: LabelledSound) -> str | None:
    """What is wrong with a transcript that nobody can have said in its sound; None for all others."""
    if len(sound.label) <= most_characters(sound.seconds):
        return None
    return f"{sound.path} lasts {sound.seconds:.2f} seconds, too short for its {len(sound.label):,} characters"
