"""A Whisper of a Hugging Face folder in use: it transcribes sounds, in windows of at most 30 seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Console

from foveate.contracts import Generator, Picture
from foveate.data.sounds.cutting import cut_at_silences
from foveate.data.sounds.files import Sound, read_sound
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.stream import Read
from foveate.data.sounds.whisper_features import SECONDS, WhisperFeatures
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.decoding import Decoding, generate
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.sound_files import read_or_report, sound_files
from foveate.inference.cpu import optimize_for_cpu
from foveate.interop.public_folder import header_of, read_folder
from foveate.models.speech.whisper import Whisper
from foveate.sight import look
from foveate.tasks.answers.transcripts import Transcript, check_raw, text_metrics, transcripts_as_they_come
from foveate.tasks.answers.word_times import TimedWord, most_decided, word_times
from foveate.tasks.former.predictor import evaluation_rows
from foveate.tasks.protocols import Evaluation
from foveate.tasks.public.whisper_generator import SoundGenerator
from foveate.tasks.public.whisper_tokens import Spoken, WhisperTokens, plain_words
from foveate.training.hardware import choose_device

WINDOWS = 8
"""Windows that are transcribed together."""

MOST_TOKENS = 224
"""Tokens that are written for a window at most, as in OpenAI's program."""

GENERATION = "generation_config.json"


@dataclass
class WhisperOptions(Spoken):
    """What is written of a sound."""

    times: bool = False
    """Tell when each word begins and ends, in seconds."""
    raw: int | None = None
    """Piped sound has no header: it is 16-bit samples of one channel, so many in a second."""


@dataclass
class Window:
    """A part of a sound with its transcript."""

    sound: Sound
    prompt: list[int]
    tokens: list[int]
    log_prob: float


class WhisperTranscriber:
    """A Whisper with its tokenizer, and what its folder says of it."""

    def __init__(self, model: Whisper, tokenizer: PublicTokenizer, values: dict[str, Any], folder: Path) -> None:
        """`values` are those of `config.json` and `generation_config.json`. Raises UserError for missing tokens."""
        self.model, self.tokenizer, self.values, self.folder = model, tokenizer, values, folder
        self.features = WhisperFeatures(model.config.bands)
        self.description: dict[str, Any] = {"family": "whisper", "recipe": {"model": str(folder)}}
        self.tokens = WhisperTokens(tokenizer, values, model.config.vocabulary, folder)

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "WhisperTranscriber":
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder = Path(folder)
        found = read_folder(folder)
        more = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else {}
        model: Any = found.model.to(choose_device(device))
        return cls(model, PublicTokenizer.load(folder), {**found.values, **more}, folder)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> WhisperOptions:
        return WhisperOptions()

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> Spoken:
        return Spoken()

    def expand(self, places: Sequence[str]) -> list[str]:
        return sound_files(places)

    def run(self, text: str | Path, options: WhisperOptions | None = None) -> Transcript:
        """What is said in the sound of one file."""
        return self.answer([str(text)], options or WhisperOptions())[0]

    def answer(self, texts: Sequence[str], options: WhisperOptions) -> list[Transcript]:
        """What is said in the sound of each file; a file that cannot be used is reported and gets no text."""
        self.tokens.check(options)
        sounds, errors = read_or_report(texts)
        found = {place: Transcript(place, error=error) for place, error in errors.items()}
        for place, transcript in zip(sounds, self.transcribe([*sounds.values()], options), strict=True):
            found[place] = replace(transcript, place=place)
        return [found[place] for place in texts]

    def transcribe(self, sounds: Sequence[Sound], options: WhisperOptions) -> list[Transcript]:
        """The transcript of each sound; those longer than a window are cut at their quietest places."""
        parts = [cut_at_silences(sound, SECONDS) for sound in sounds]
        windows = self._windows([part for some in parts for part in some], options)
        found = []
        for sound, some in zip(sounds, parts, strict=True):
            own = [next(windows) for _ in some]
            texts = self.tokenizer.decode([window.tokens for window in own])
            text = " ".join(filter(None, (one.strip() for one in texts)))
            times = self._times(own) if options.times else None
            total = sum(window.log_prob for window in own)
            found.append(Transcript("", text, total, sound.seconds, times=times))
        return found

    def hear(self, read: Read, options: WhisperOptions) -> Iterator[Transcript]:
        """What is said in a stream of sound, part by part, as soon as each is there."""
        self.tokens.check(options)
        check_raw(options.raw)
        return transcripts_as_they_come(read, SECONDS, options.raw, lambda sound: self.transcribe([sound], options)[0])

    def _windows(self, sounds: Sequence[Sound], options: Spoken) -> Iterator[Window]:
        for first in range(0, len(sounds), WINDOWS):
            some = sounds[first : first + WINDOWS]
            source = torch.stack([torch.from_numpy(self.features(sound)) for sound in some]).to(self._device)
            generator = SoundGenerator(self._optimized, source, self.values)
            prompts = [self.tokens.prompt(code, options.translate) for code in self._languages(generator, options)]
            most = min(MOST_TOKENS, self.model.config.max_length - len(prompts[0]))
            with torch.inference_mode():
                written = generate(
                    cast(Generator, generator), prompts, Decoding("greedy", max_new_tokens=most), {self.tokens.end}
                )
            for sound, prompt, one in zip(some, prompts, written, strict=True):
                yield Window(sound, prompt, one.tokens, sum(one.log_probs))

    def _languages(self, generator: SoundGenerator, options: Spoken) -> list[str | None]:
        """The code of the language of each sound; None for a model of English alone."""
        count = len(generator.source)
        if options.language is not None or not self.tokens.multilingual:
            return [options.language] * count
        codes = {number: code for code, number in self.tokens.languages.items()}
        numbers = torch.tensor(sorted(codes), device=self._device)
        starts = torch.full((count,), self.tokens.start, device=self._device)
        with torch.inference_mode():
            logits = generator.model.step(starts, generator.state())
        return [codes[int(one)] for one in numbers[logits[:, numbers].argmax(1)]]

    def _times(self, windows: Sequence[Window]) -> list[TimedWord]:
        """When each word was said, by the attention of the alignment heads."""
        found, offset = [], 0.0
        for window in windows:
            if words := list(self.tokens.words(window.tokens)):
                weights = self.alignment(window)
                for one in word_times(weights, words, window.sound.seconds):
                    found.append(TimedWord(one.word, offset + one.start, offset + one.end))
            offset += window.sound.seconds
        return found

    def alignment(self, window: Window) -> Float[np.ndarray, "H T Z"]:
        """Where the heads that follow the sound look when the model writes each token and the end.

        They are the alignment heads that the folder names, else the head that looks most decidedly.
        """
        inputs = {
            "source": torch.from_numpy(self.features(window.sound))[None].to(self._device),
            "source_lengths": torch.tensor([2 * self.model.config.max_source], device=self._device),
            "target": torch.tensor([[*window.prompt, *window.tokens]], device=self._device),
        }
        with torch.inference_mode(), look(self.model, sites=["decoder.*.cross"]) as sight:
            self.model(**inputs)
        places = max(1, min(self.model.config.max_source, round(window.sound.seconds * 50)))
        first = len(window.prompt) - 1
        named = self.values.get("alignment_heads")
        if not named:
            return most_decided(sight, first)[None, :, :places]
        rows = [sight[f"decoder.{layer}.cross"].weights(heads=[head])[0, 0, first:, :places] for layer, head in named]
        return torch.stack(rows).float().cpu().numpy()

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        """None: long sounds are cut."""
        return []

    def picture(self, prediction: Transcript) -> Picture | None:
        """The first window's spectrogram above its alignment, with the times of the words."""
        from foveate.viewer.speech_figure import draw

        sound = cut_at_silences(read_sound(Path(prediction.place)), SECONDS)[0]
        (window,) = self._windows([sound], WhisperOptions())
        weights = self.alignment(window)
        words = [(one.word, one.start, one.end) for one in self._times([window])]
        names = [*self.tokenizer.pieces(window.tokens), "end"]
        spectrogram = self.features(sound)[: round(sound.seconds * 100)]
        return draw(spectrogram, weights.mean(0), names, sound.seconds, prediction.text, words)

    def evaluate(self, data: Sequence[Path], options: Spoken, console: Console) -> Evaluation:
        """Error rates on a user's table of sounds and texts, of words without case and punctuation.

        Raises UserError without a table.
        """
        if not data:
            raise UserError("this model was trained elsewhere: give --data TABLE to measure it on")
        self.tokens.check(options)
        dataset = labelled_sounds(data)
        console.print(dataset.report, markup=False, highlight=False)
        asked = WhisperOptions(options.language, options.translate)
        transcripts = self.transcribe([one.read() for one in dataset], asked)
        right = [plain_words(one.label) for one in dataset]
        ways = {self.folder.name: text_metrics([plain_words(one.text) for one in transcripts], right)}
        names, rows = evaluation_rows(ways)
        return Evaluation(
            answers=[one.text for one in transcripts],
            figures={dataset.unit: len(right), "ways": ways},
            headings=["answers by", *names],
            rows=rows,
            notes=[f"{len(right):,} {dataset.unit}; case and punctuation are not compared"],
        )

    @cached_property
    def _optimized(self) -> Any:
        """The model as it runs fastest on a CPU."""
        return optimize_for_cpu(self.model)

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.weight.device


def opener(folder: Path) -> type[WhisperTranscriber]:
    """What loads the model of a folder. Raises UserError for a Whisper with another head."""
    named = header_of(folder).architectures or ()
    if wrong := [name for name in named if name != "WhisperForConditionalGeneration"]:
        raise UserError(f"{folder} is a {wrong[0]}; foveate runs WhisperForConditionalGeneration")
    return WhisperTranscriber
