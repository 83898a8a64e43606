"""A Whisper of a Hugging Face folder in use: it transcribes sounds, in windows of at most 30 seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from foveate.decoding.sound_generator import SoundGenerator
from foveate.forms.sound import Heard
from foveate.forms.transcripts import TranscriptAnswer
from foveate.forms.whisper_tokens import LanguageOptions
from foveate.tasks.transcriber import Transcriber

TOGETHER = 8
"""Windows whose languages are found together."""


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
