"""A Whisper of a Hugging Face folder in use: it transcribes sounds, in windows of at most 30 seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.grids import find_grid
from foveate.forms.processor import Processor
from foveate.forms.sound import Heard
from foveate.forms.transcripts import TranscriptAnswer
from foveate.forms.whisper import WhisperOptions, WhisperSound, WhisperText
from foveate.forms.whisper_tokens import LanguageOptions, WhisperTokens
from foveate.interop.public_folder import header_of, read_folder
from foveate.tasks.recipe import Examples, Recipe
from foveate.tasks.transcribe import TASK
from foveate.tasks.transcriber import Transcriber
from foveate.training.hardware import choose_device

GENERATION = "generation_config.json"


@dataclass(repr=False)
class WhisperTranscriber(Transcriber):
    """A Whisper that others trained."""

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        if not data:
            raise UserError("this model was trained elsewhere: give --data TABLE to measure it on")
        return labelled_sounds(data)

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
            examples=Examples(),
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
