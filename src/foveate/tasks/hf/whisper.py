"""A Whisper of a Hugging Face folder in use: it transcribes sounds, in windows of at most 30 seconds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.decoding.sound_generator import SoundGenerator
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.grids import find_grid
from foveate.forms.processor import Processor
from foveate.forms.sound import Heard
from foveate.forms.transcripts import TranscriptAnswer
from foveate.forms.whisper import WhisperOptions, WhisperSound, WhisperText
from foveate.forms.whisper_tokens import LanguageOptions, WhisperTokens
from foveate.interop.public_folder import header_of, read_folder
from foveate.tasks.recipe import FileExamples, Recipe
from foveate.tasks.transcribe import TASK
from foveate.tasks.transcriber import Transcriber
from foveate.training.hardware import choose_device

GENERATION = "generation_config.json"

TOGETHER = 8
"""Windows whose languages are found together."""


@dataclass(repr=False)
class WhisperTranscriber(Transcriber):
    """A Whisper that others trained."""

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        if not data:
            raise UserError("this model was trained elsewhere: give --data TABLE to measure it on")
        return labelled_sounds(data, spoken=True)

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

    def picture(self, answer: TranscriptAnswer) -> Picture | None:
        """The first window of a sound, above where the model looked."""
        reads, writes, first = self.processor.reads, self.processor.writes, answer.parts[0]
        sound = reads.open(answer.given).sound
        heard = Heard(Waveform(sound.samples[: round(first.seconds * sound.rate)], sound.rate), reads)
        inputs = {**reads.tensors([heard])[0], **writes.teach(first)}
        found = self._picture_of(heard, first, self.watch(inputs, writes.attending), find_grid(self.model, inputs))
        return None if found is None else found()

    def save(self, folder: Path | str) -> None:
        raise UserError(f"{self.folder} is a folder of Hugging Face's: copy it to {folder}")


@dataclass(frozen=True)
class Whispers:
    """Opens the folders of Whispers."""

    def run_options(self, recipe: Mapping[str, Any], where: str) -> WhisperOptions:
        """The flags of `foveate run`."""
        return WhisperOptions()

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> LanguageOptions:
        """The flags of `foveate eval`."""
        return LanguageOptions()

    def load(self, folder: Path | str, device: str = "cpu") -> WhisperTranscriber:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder = Path(folder)
        found = read_folder(folder)
        more = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else {}
        model: Any = found.model.to(choose_device(device))
        config, tokenizer, values = model.config, PublicTokenizer.load(folder), {**found.values, **more}
        known = WhisperTokens(tokenizer, values, config.vocabulary, folder)
        reads = WhisperSound(features=WhisperFeatures(config.bands))
        writes = WhisperText(
            tokenizer=tokenizer, known=known, values=values, most=config.max_length, kept=config.max_source
        )
        recipe = Recipe(
            task=TASK.name,
            examples=FileExamples(),
            reads=reads,
            writes=writes,
            objective=TASK.objective,
            model=folder.name,
            out=folder,
            architecture=config,
        )
        description = {"family": "whisper", "recipe": {"model": str(folder), "examples": {}}}
        return WhisperTranscriber(TASK, recipe, model, Processor(reads, writes), description, folder)


def opener(folder: Path) -> Whispers:
    """What loads the model of a folder. Raises UserError for a Whisper with another head."""
    named = header_of(folder).architectures or ()
    if wrong := [name for name in named if name != "WhisperForConditionalGeneration"]:
        raise UserError(f"{folder} is a {wrong[0]}; foveate runs WhisperForConditionalGeneration")
    return Whispers()
