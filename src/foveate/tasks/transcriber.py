"""A transcriber in use: it cuts long sounds, hears a stream, and tells when words were said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from rich.console import Console

from foveate.contracts import Picture
from foveate.data.sounds.cutting import cut_at_silences
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.stream import Read, sounds_from_pipe
from foveate.decoding.sound_generator import SoundGenerator
from foveate.errors import at_most
from foveate.forms.grids import find_grid
from foveate.forms.processor import Processor
from foveate.forms.sound import Heard
from foveate.forms.transcripts import TranscriptAnswer, join_parts
from foveate.forms.whisper import WhisperText
from foveate.forms.whisper_tokens import LanguageOptions
from foveate.forms.word_times import TimedWord
from foveate.tasks.skill import Skill

TOGETHER = 8
"""Windows whose languages are found together."""


@dataclass(repr=False)
class Transcriber(Skill):
    """What is read are sounds of any length; those that are longer than all of the training are cut."""

    @classmethod
    def suited(cls, processor: Processor) -> type[Skill]:
        return WhisperTranscriber if isinstance(processor.writes, WhisperText) else cls

    def __post_init__(self) -> None:
        super().__post_init__()
        if hasattr(self.model, "speller"):
            self.processor.writes.decoder = "speller"

    def answers_as_they_come(self, prepared: Sequence[Heard], options: Any) -> Iterator[tuple[int, TranscriptAnswer]]:
        """The transcript of each sound, of those of its parts."""
        writes = self.processor.writes
        writes.check_options(options)
        cut = self.with_languages([self.parts(one, options) for one in prepared], options)
        heard = [part for parts in cut for part in parts if not part.sound.is_silent]
        found = dict(super().answers_as_they_come(heard, options))
        first = 0
        for row, parts in enumerate(cut):
            own = []
            for part in parts:
                own.append(TranscriptAnswer(seconds=part.seconds) if part.sound.is_silent else found[first])
                first += not part.sound.is_silent
            answer = join_parts(own)
            if getattr(options, "times", False):
                answer.times = self.times(parts, own)
            yield row, answer

    def parts(self, heard: Heard, options: Any) -> list[Heard]:
        """The parts of a sound that are transcribed each by itself."""
        return [Heard(part, heard.form) for part in cut_at_silences(heard.sound, self.longest(options))]

    def with_languages(self, cut: Sequence[list[Heard]], options: Any) -> Sequence[list[Heard]]:
        """The parts of each sound, with its language where the model is asked to find that."""
        return cut

    def longest(self, options: Any) -> float:
        """Seconds of the longest sound that is not cut. Raises UserError for more than the model can read."""
        reads, cut = self.processor.reads, getattr(options, "cut", None)
        if cut is not None:
            at_most(reads.most_seconds, "cut", cut)
        longest: float = cut or reads.longest
        return longest

    def times(self, parts: Sequence[Heard], answers: Sequence[TranscriptAnswer]) -> list[TimedWord]:
        """When each word of a sound was said, by where the model looked."""
        reads, writes = self.processor.reads, self.processor.writes
        found, offset = [], 0.0
        for part, answer in zip(parts, answers, strict=True):
            inputs = {**reads.tensors([part])[0], **writes.teach(answer)}
            timed = writes.timed_words(answer, partial(self.watch, inputs, writes.attending))
            answer.times = [one for one in timed if one.word.strip()]
            found += [one.later(offset) for one in answer.times]
            offset += part.seconds
        return found

    def hear(self, read: Read, options: Any) -> Iterator[TranscriptAnswer]:
        """What is said in a stream of sound, part by part, as soon as each is there. Places and times count from the
        first sample."""
        options.check()
        for start, sound in sounds_from_pipe(read, self.longest(options), options.raw):
            (found,) = self.answer_prepared([Heard(sound, self.processor.reads)], options)
            options = self.after(found, options)
            found.prefix = (f"{start:.2f}",)
            found.times = None if found.times is None else [one.later(start) for one in found.times]
            yield found

    def after(self, answer: TranscriptAnswer, options: Any) -> Any:
        """The options for what follows a part of a stream."""
        return options

    def measure(
        self, examples: Sequence[Any], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """Texts without the places of their sounds."""
        answers = self.answer_examples(examples, options, console)
        return [one.text for one in answers], self.processor.writes.metrics(answers, examples)

    def notes(self, examples: Sequence[Any]) -> list[str]:
        """How many sounds are longer than those of the training, and which characters it had none of."""
        longest = self.processor.reads.longest
        count = sum(one.seconds > longest for one in examples)
        long = [f"{count:,} are longer than any in training ({longest:.1f} seconds)"] if count else []
        return [*long, *super().notes(examples)]

    def picture(self, answer: TranscriptAnswer) -> Picture | None:
        """The whole sound, above where the model looked when it wrote the whole text; or the first of its parts, where
        the model reads no longer ones."""
        writes = self.processor.writes
        if writes.whole:
            return super().picture(replace(answer, tokens=writes.tokenizer.encode([answer.text])[0]))
        first, reads = answer.parts[0], self.processor.reads
        sound = reads.open(answer.given).sound
        heard = Heard(Waveform(sound.samples[: round(first.seconds * sound.rate)], sound.rate), reads)
        inputs = {**reads.tensors([heard])[0], **writes.teach(first)}
        found = self._picture_of(heard, first, self.watch(inputs, writes.attending), find_grid(self.model, inputs))
        return None if found is None else found()


@dataclass(repr=False)
class WhisperTranscriber(Transcriber):
    """A Whisper that others trained, perhaps trained further."""

    def with_languages(self, cut: Sequence[list[Heard]], options: LanguageOptions) -> Sequence[list[Heard]]:
        """The language of a sound is that of its first window in which anything is heard."""
        writes = self.processor.writes
        if options.language is not None or not writes.known.multilingual:
            return cut
        firsts = [next((part for part in parts if not part.sound.is_silent), parts[0]) for parts in cut]
        languages = self._languages(firsts, options)
        return [[replace(part, language=own) for part in parts] for parts, own in zip(cut, languages, strict=True)]

    def _languages(self, windows: Sequence[Heard], options: LanguageOptions) -> Iterator[str | None]:
        for first in range(0, len(windows), TOGETHER):
            some = windows[first : first + TOGETHER]
            source = self.on_device(self.processor.reads.tensors(some)[0])["source"]
            with torch.inference_mode():
                model: Any = self._in_use(len(windows), options)
                generator = SoundGenerator(model, source, self.processor.writes.values)
                yield from self.processor.writes.languages(generator, some, options)

    def after(self, answer: TranscriptAnswer, options: Any) -> Any:
        """A stream keeps the language of its first part."""
        return replace(options, language=answer.language)

    def notes(self, examples: Sequence[Any]) -> list[str]:
        found: list[str] = self.processor.writes.notes(examples)
        return found
