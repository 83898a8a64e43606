"""Transcripts of sounds: how they are searched, printed and measured."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32

from foveate.contracts import Hypothesis
from foveate.data.sounds.cutting import SHORTEST, cut_at_silences
from foveate.data.sounds.files import Sound
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.sounds.speech_processor import SpeechProcessor
from foveate.data.sounds.stream import Read, sounds_from_pipe
from foveate.data.tokens.character_tokens import encode
from foveate.decoding import beam, greedy
from foveate.decoding.beam import check_width
from foveate.errors import UserError, one_line
from foveate.metrics.error_rates import error_rate
from foveate.sight import Sight, look
from foveate.tasks.answers.word_times import TimedWord, most_decided, word_times
from foveate.tasks.former.predictor import Predictor

BATCH = 16_000
"""Frames, padding included, that are transcribed together."""

FASTEST, EXTRA = 30, 10
"""Characters of a second that are written at most, and more characters of any sound."""


@dataclass
class Search:
    """How the transcript is searched."""

    width: int = 5
    """Width of the beam search; 1 is greedy search."""
    cut: float | None = None
    """Sounds of more seconds are cut at their quietest places. By default those longer than any in training."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_width(self.width)
        if self.cut is not None and not self.cut >= SHORTEST:
            raise UserError(f"cut is {self.cut}, but must be at least {SHORTEST} seconds")


@dataclass
class TimedSearch(Search):
    """How the transcript is searched, and whether its words get times."""

    times: bool = False
    """Tell when each word begins and ends, in seconds, by where the model looked."""
    raw: int | None = None
    """Piped sound has no header: it is 16-bit samples of one channel, so many in a second."""

    def check(self) -> None:
        super().check()
        check_raw(self.raw)


def check_raw(rate: int | None) -> None:
    """Raise UserError for a sampling rate that cannot be."""
    if rate is not None and not 1000 <= rate <= 1_000_000:
        raise UserError(f"raw is {rate:,}, but the samples of a second are at least 1,000 and at most 1,000,000")


@dataclass
class Transcript:
    """What a model heard in a sound."""

    place: str
    """The file of the sound."""
    text: str = ""
    log_prob: float = 0.0
    """Log-probability of the text."""
    seconds: float = 0.0
    error: str | None = None
    """What is wrong with a file that cannot be used."""
    times: list[TimedWord] | None = None
    """When each word was said, where that was asked for."""

    @property
    def line(self) -> str:
        """File and text with a tab between them; nothing for a file with an error."""
        text = self.text if self.times is None else " ".join(map(str, self.times))
        return "" if self.error else f"{one_line(self.place)}\t{one_line(text)}"

    def json_values(self) -> dict[str, Any]:
        """Place, text, seconds, log-probability and the times of words; or place and error."""
        if self.error:
            return {"place": self.place, "error": self.error}
        found = {"text": self.text, "seconds": round(self.seconds, 3), "log_prob": round(self.log_prob, 4)}
        times = {} if self.times is None else {"words": [one.json_values() for one in self.times]}
        return {"place": self.place, **found, **times}


def text_metrics(found: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """WER, CER and wrong transcripts, in percent."""
    wrong = sum(one != other for one, other in zip(found, right, strict=True))
    return {
        "word_error_rate": error_rate([text.split() for text in found], [text.split() for text in right]),
        "character_error_rate": error_rate(found, right),
        "wrong_transcripts": 100 * wrong / max(1, len(right)),
    }


@dataclass
class Part:
    """A part of a sound that was transcribed on its own."""

    sound: Sound
    found: Hypothesis


def transcribe_parts(predictor: Predictor, sounds: Sequence[Sound], options: Search) -> list[list[Part]]:
    """The parts of each sound, cut where it is longer than those in training, and the best transcript of each."""
    processor: SpeechProcessor = predictor.processor
    longest = processor.longest if options.cut is None else options.cut
    parts = [cut_at_silences(sound, longest) for sound in sounds]
    found = iter(_search(predictor, [part for some in parts for part in some], options))
    return [[Part(part, next(found)) for part in some] for some in parts]


def joined(processor: SpeechProcessor, parts: Sequence[Part]) -> tuple[str, float]:
    """The transcript of a sound and its log-probability. The texts of parts are joined by spaces."""
    text = " ".join(filter(None, (processor.text(part.found.tokens).strip() for part in parts)))
    return text, sum(part.found.log_prob for part in parts)


def transcribe_sounds(predictor: Predictor, sounds: Sequence[Sound], options: Search) -> list[tuple[str, float]]:
    """The best transcript of each sound and its log-probability."""
    return [joined(predictor.processor, parts) for parts in transcribe_parts(predictor, sounds, options)]


def part_times(predictor: Predictor, parts: Sequence[Part]) -> list[TimedWord]:
    """When each word of a sound was said, by the head that looks most decidedly."""
    found, offset = [], 0.0
    for part in parts:
        characters = predictor.processor.text(part.found.tokens)
        runs = [(run, len(run)) for run in re.findall(r"\s+|\S+", characters)]
        if len(characters) == len(part.found.tokens) and runs:
            _, weights = look_at(predictor, part.sound, characters)
            for one in word_times(most_decided(weights)[None], runs, part.sound.seconds):
                if one.word.strip():
                    found.append(TimedWord(one.word, offset + one.start, offset + one.end))
        offset += part.sound.seconds
    return found


def transcripts_as_they_come(
    read: Read, longest: float, raw: int | None, transcribe: Callable[[Sound], Transcript]
) -> Iterator[Transcript]:
    """The transcript of each part of a stream (see `sounds_from_pipe`); its place and the times of words count from the
    first sample."""
    for start, sound in sounds_from_pipe(read, longest, raw):
        found = transcribe(sound)
        times = None if found.times is None else [one.later(start) for one in found.times]
        yield replace(found, place=f"{start:.2f}", times=times)


def look_at(predictor: Predictor, sound: Sound, text: str) -> tuple[Float32[np.ndarray, "S F"], Sight]:
    """The spectrogram of a sound, and the attention to it when the model writes a text."""
    processor: SpeechProcessor = predictor.processor
    spectrogram = processor.spectrogram(sound)
    tokens = [processor.special.start, *encode(text, processor.characters)]
    inputs = {**processor.inputs([spectrogram]), "target": torch.tensor([tokens])}
    with torch.inference_mode(), look(predictor.model, sites=["speller", "*cross"]) as sight:
        predictor.forward(inputs)
    return spectrogram, sight


def _search(predictor: Predictor, sounds: Sequence[Sound], options: Search) -> list[Hypothesis]:
    """The best tokens for each sound. Sounds of like length are decoded together."""
    model: Any = predictor.model
    processor: SpeechProcessor = predictor.processor
    spectrograms = [processor.spectrogram(sound) for sound in sounds]
    found: dict[int, Hypothesis] = {}
    for rows in _batches([len(one) for one in spectrograms]):
        inputs = predictor.on_device(processor.inputs([spectrograms[row] for row in rows]))
        most = torch.tensor([most_characters(sounds[row].seconds) for row in rows], device=predictor.device)
        if options.width == 1:
            best = greedy(model, inputs, processor.special, most)
        else:
            best = [some[0] for some in beam(model, inputs, processor.special, most, options.width)]
        found.update(zip(rows, best, strict=True))
    return [found[row] for row in range(len(sounds))]


def most_characters(seconds: float) -> int:
    """Characters that are written of a sound at most."""
    return math.ceil(FASTEST * seconds) + EXTRA


def why_too_long(sound: LabelledSound) -> str | None:
    """What is wrong with a transcript that nobody can have said in its sound; None for all others."""
    if len(sound.label) <= most_characters(sound.seconds):
        return None
    return f"{sound.path} lasts {sound.seconds:.2f} seconds, too short for its {len(sound.label):,} characters"


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of like length, with at most `BATCH` frames together, or alone."""
    batches: list[list[int]] = []
    for row in np.argsort(lengths, kind="stable").tolist():
        if not batches or (len(batches[-1]) + 1) * lengths[row] > BATCH:
            batches.append([])
        batches[-1].append(row)
    return batches
