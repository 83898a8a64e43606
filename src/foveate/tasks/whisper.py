"""A Whisper of a Hugging Face folder in use: it transcribes sounds, in windows of at most 30 seconds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.contracts import Generator, Picture
from foveate.data.cutting import cut_at_silences
from foveate.data.labelled_sounds import labelled_sounds
from foveate.data.public_tokenizer import PublicTokenizer
from foveate.data.sound_stream import Read
from foveate.data.sounds import Sound, read_sound
from foveate.data.whisper_features import SECONDS, WhisperFeatures
from foveate.decoding import Generation, generate
from foveate.errors import UserError, unknown
from foveate.files import read_json
from foveate.interop.public_folder import read_folder
from foveate.models.speech.whisper import Whisper
from foveate.nn import DecoderStackState
from foveate.sight import look
from foveate.tasks.predictor import evaluation_rows
from foveate.tasks.sound_files import read_or_report, sound_files
from foveate.tasks.trained import Evaluation
from foveate.tasks.transcripts import Transcript, text_metrics, transcripts_as_they_come
from foveate.tasks.word_times import TimedWord, most_decided, word_times
from foveate.training.hardware import choose_device

WINDOWS = 8
"""Windows that are transcribed together."""

MOST_TOKENS = 224
"""Tokens that are written for a window at most, as in OpenAI's program."""

START, END, SILENT = "<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>"

GENERATION = "generation_config.json"


@dataclass
class Spoken:
    """What is said to the model of a sound."""

    language: str | None = None
    """Code of the language that is spoken, such as "en". By default a model for several languages finds it itself."""
    translate: bool = False
    """Write what is said in English. Only for models for several languages."""

    def check(self) -> None:
        """Values are checked by the model."""


@dataclass
class WhisperOptions(Spoken):
    """What is written of a sound."""

    times: bool = False
    """Tell when each word begins and ends, in seconds."""
    json: bool = False
    """Print a JSON object for each sound: file, text, seconds and log-probability, or file and error."""


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
        self.start, self.end, self.silent = (self._number(name) for name in (START, END, SILENT))

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

    @property
    def multilingual(self) -> bool:
        """Whether the model knows several languages; those for English alone have a smaller vocabulary."""
        return bool(self.values.get("is_multilingual", self.model.config.vocabulary >= 51865))

    @property
    def languages(self) -> dict[str, int]:
        """The token of each language, by its code."""
        named = self.values.get("lang_to_id")
        if isinstance(named, dict):
            return {str(name).strip("<|>"): int(number) for name, number in named.items()}
        codes = re.findall(r"<\|([a-z]{2,3})\|>", " ".join(self.tokenizer.pieces(range(self.start, self.silent))))
        return {code: number for code in codes if (number := self.tokenizer.number(f"<|{code}|>")) is not None}

    def expand(self, places: Sequence[str]) -> list[str]:
        return sound_files(places)

    def run(self, text: str | Path, options: WhisperOptions | None = None) -> Transcript:
        """What is said in the sound of one file."""
        return self.answer([str(text)], options or WhisperOptions())[0]

    def answer(self, texts: Sequence[str], options: WhisperOptions) -> list[Transcript]:
        """What is said in the sound of each file; a file that cannot be used is reported and gets no text."""
        self._check(options)
        sounds, errors = read_or_report(texts)
        found = {place: Transcript(place, as_json=options.json, error=error) for place, error in errors.items()}
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
            found.append(Transcript("", text, total, sound.seconds, options.json, times=times))
        return found

    def hear(self, read: Read, options: WhisperOptions) -> Iterator[Transcript]:
        """What is said in a WAV stream, part by part, as soon as each is there."""
        self._check(options)
        return transcripts_as_they_come(read, SECONDS, lambda sound: self.transcribe([sound], options)[0])

    def _windows(self, sounds: Sequence[Sound], options: Spoken) -> Iterator[Window]:
        ends = {self.end}
        for first in range(0, len(sounds), WINDOWS):
            some = sounds[first : first + WINDOWS]
            source = torch.stack([torch.from_numpy(self.features(sound)) for sound in some]).to(self._device)
            reader = _SoundReader(self, source)
            prompts = [[self.start, *self._task(options, language)] for language in self._spoken(reader, options)]
            most = min(MOST_TOKENS, self.model.config.max_length - len(prompts[0]))
            with torch.inference_mode():
                written = generate(cast(Generator, reader), prompts, Generation(max_new_tokens=most), ends)
            for sound, prompt, one in zip(some, prompts, written, strict=True):
                yield Window(sound, prompt, one.tokens, sum(one.log_probs))

    def _spoken(self, reader: "_SoundReader", options: Spoken) -> list[int | None]:
        """The token of the language of each sound; None for a model of English alone."""
        if not self.multilingual:
            return [None] * len(reader.source)
        known = self.languages
        if options.language is not None:
            return [known[options.language]] * len(reader.source)
        numbers = torch.tensor(sorted(known.values()), device=self._device)
        with torch.inference_mode():
            logits = self.model.step(torch.full((len(reader.source),), self.start, device=self._device), reader.state())
        return [int(one) for one in numbers[logits[:, numbers].argmax(1)]]

    def _task(self, options: Spoken, language: int | None) -> list[int]:
        if language is None:
            return [self.silent]
        return [language, self._number("<|translate|>" if options.translate else "<|transcribe|>"), self.silent]

    def _times(self, windows: Sequence[Window]) -> list[TimedWord]:
        """When each word was said, by the attention of the alignment heads."""
        found, offset = [], 0.0
        for window in windows:
            if words := list(self._words(window.tokens)):
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

    def _words(self, tokens: Sequence[int]) -> Iterator[tuple[str, int]]:
        """The words of tokens, each with its number of tokens. A token that begins with a space begins a word."""
        first = 0
        names = [self.tokenizer.decode([[token]])[0] for token in tokens]
        for place in range(1, len(tokens) + 1):
            if place == len(tokens) or names[place].startswith(" "):
                yield self.tokenizer.decode([tokens[first:place]])[0].strip(), place - first
                first = place

    def too_long(self, texts: Sequence[str]) -> list[int]:
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
        self._check(options)
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

    def _check(self, options: Spoken) -> None:
        if (options.translate or options.language is not None) and not self.multilingual:
            raise UserError(f"{self.folder} knows English alone: leave out --language and --translate")
        if options.language is not None and options.language not in self.languages:
            raise unknown("language", options.language, self.languages)

    def _number(self, token: str) -> int:
        number = self.tokenizer.number(token)
        if number is None:
            raise UserError(f"the tokenizer in {self.folder} has no {token}: it is not that of a Whisper")
        if number >= self.model.config.vocabulary:
            raise UserError(f"the token {token} has the number {number}, but the model {self.model.config.vocabulary}")
        return number

    @property
    def _device(self) -> torch.device:
        return self.model.embedding.weight.device


class _SoundReader(nn.Module):
    """A `Generator` that writes what is said in given sounds, without the tokens that the folder suppresses."""

    def __init__(self, transcriber: WhisperTranscriber, source: Float[Tensor, "B S F"]) -> None:
        super().__init__()
        self.model, self.source = transcriber.model, source
        values, size = transcriber.values, transcriber.model.config.vocabulary
        self.never, self.not_first = (
            torch.tensor([token for token in values.get(name) or [] if 0 <= token < size], dtype=torch.long)
            for name in ("suppress_tokens", "begin_suppress_tokens")
        )
        lengths = torch.full((len(source),), source.shape[1], device=source.device)
        with torch.inference_mode():
            self.encoded = transcriber.model.encode(source, lengths)

    def state(self) -> DecoderStackState:
        """The state before the first token."""
        return self.model.decoder.start(*self.encoded, expected=64)

    def prefill(
        self, tokens: Tensor, lengths: Tensor, padding_side: str = "left"
    ) -> tuple[Float[Tensor, "B N"], DecoderStackState]:
        """Read prompts of one length."""
        state = self.state()
        for place in range(tokens.shape[1]):
            logits = self.step(tokens[:, place], state)
        logits[:, self.not_first.to(logits.device)] = -torch.inf
        return logits, state

    def step(self, tokens: Tensor, state: DecoderStackState) -> Float[Tensor, "R N"]:
        logits = self.model.step(tokens, state)
        logits[:, self.never.to(logits.device)] = -torch.inf
        return logits


def plain_words(text: str) -> str:
    """A text in small letters, without signs other than apostrophes within words."""
    return " ".join(re.findall(r"[\w']+", text.lower().replace("’", "'"))).replace(" '", " ").strip("'")


def opener(folder: Path) -> type[WhisperTranscriber]:
    """What loads the model of a folder. Raises UserError for a Whisper with another head."""
    named = read_json(folder / bundle.CONFIG).get("architectures") or []
    if wrong := [name for name in named if name != "WhisperForConditionalGeneration"]:
        raise UserError(f"{folder} is a {wrong[0]}; foveate runs WhisperForConditionalGeneration")
    return WhisperTranscriber
