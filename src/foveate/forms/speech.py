"""Texts that are said: a model reads characters and writes audio tokens, which become a sound.

    SpokenText   what is read: a text, said in one go or word by word
    Speech       what is written: a token for each frame of a spectrogram

B batch    S characters    T audio tokens    K codes    F bands
"""

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from foveate.contracts import Output, Picture, count_labels
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.sounds.codec import AudioCodec, learn_codec
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.sounds.wav import check_wave_file, write_wave
from foveate.data.tokens.character_tokens import SPECIAL, encode, find_characters, teacher_forcing
from foveate.decoding import sample
from foveate.decoding.sampling import check_sampling
from foveate.errors import UserError, at_least, one_line
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, InputForm, Learned, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_text
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.scored import ScoredForm
from foveate.forms.sound_files import choose_log_mel
from foveate.sight import Sight
from foveate.special_tokens import LEARNED
from foveate.training.settings import check_seed
from foveate.viewer.protocol import Input
from foveate.viewer.sides import Audio

KNOWN = 1000
"""Different texts that are kept, at most."""

WINDOW, STEP = 0.04, 0.0125
"""Seconds of a window and from one to the next, of which each is a token."""

PAUSE = 0.15
"""Seconds of silence between words."""

BATCH = 100
"""Sounds that are made together."""

PLACES = 40
"""Places that a text takes of those that are said together, whatever its length: they stay in their order."""

START, END = "[START]", "[END]"


@dataclass
class PreparedText:
    """The parts of a text that are said in one go: their words, and the tokens of their characters and the end."""

    words: list[str]
    tokens: list[list[int]]


@dataclass
class SpokenText(InputForm):
    """The characters of texts: inputs `source` (B, S) and `source_lengths` (B,), a row for each part of a text."""

    name: ClassVar[str] = "text to say"

    characters: Learned[str] = ""
    """The characters that can be read; token ids are their places, after the special ones."""
    texts: Learned[tuple[str, ...]] = ()
    """The different texts of the training, the most frequent ones."""

    def learn(self, train: Dataset[LabelledSound], architecture: Any) -> "SpokenText":
        counts = Counter(one.label for one in train)
        known = tuple(text for text, _ in counts.most_common(KNOWN))
        return SpokenText(find_characters(counts.elements()), known)

    def sizes(self) -> dict[str, int]:
        return {"src_vocab": SPECIAL + len(self.characters)}

    def open(self, given: str) -> list[str] | None:
        """What of a text is said in one go: all of it, if the training had such a text, else its words.

        Raises UserError for characters that the model never saw.
        """
        words = [given.strip()] if given.strip() in self.texts else given.split()
        for word in words:
            if strange := sorted(set(word) - set(self.characters)):
                known = ", ".join(self.texts[:10])
                raise UserError(f"'{one_line(strange[0])}' was in no text of the training; it had such as {known}")
        return words or None

    def receive(self, given: Input, name: str) -> list[str]:
        """The first part of a text: each is said by itself."""
        words = self.open(require_text(given, name))
        assert words, "an empty text is refused before"
        return words[:1]

    def value(self, example: LabelledSound) -> list[str]:
        return [example.label]

    def group(self, example: LabelledSound) -> Hashable:
        return hashlib.blake2b(example.path.read_bytes(), digest_size=8).digest()

    def prepare(self, value: list[str]) -> PreparedText:
        return PreparedText(value, [[*encode(word, self.characters), LEARNED.end] for word in value])

    def cost(self, prepared: PreparedText) -> int:
        """Nothing: audio tokens are counted."""
        return 0

    def places(self, prepared: PreparedText) -> int:
        return PLACES

    def tensors(
        self, prepared: Sequence[PreparedText], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        rows = [np.array(tokens) for one in prepared for tokens in one.tokens]
        source, lengths = padded(rows, LEARNED.pad)
        return {"source": source, "source_lengths": lengths}, Changes()

    def axis(self, value: list[str], prepared: PreparedText, grid: GridFinder) -> Naming:
        return token_names([*value[0], END])


@dataclass
class AudioSampling:
    """How audio tokens are drawn."""

    temperature: float = 0.8
    """Below 1 prefers likely tokens: sounds become longer, because the end is seldom the likeliest. Above 1 is more
    random."""
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_sampling(1, self.temperature, None, None)
        check_seed(self.seed)


@dataclass
class SpeakOptions(AudioSampling):
    """How texts are spoken."""

    out: Path = Path("speech.wav")
    """The file to write (.wav). Words are said one after the other, several texts too."""

    def check(self) -> None:
        super().check()
        check_wave_file(self.out)


@dataclass
class ListenOptions(AudioSampling):
    """With `foveate eval`: how texts are said, and what listens."""

    judge: Path | None = None
    """A run of classify-sound: also measure how many sounds it recognises as their text."""


@dataclass(kw_only=True)
class Said(Answer):
    """A text that was said into a file."""

    file: Path
    words: list[str] = field(repr=False)
    """The parts that were said in one go."""
    codes: list[list[int]] = field(repr=False)
    """The codes of each."""
    sounds: list[Waveform] = field(repr=False)

    @property
    def seconds(self) -> float:
        """The length of all sounds, without the pauses between them."""
        return sum(one.seconds for one in self.sounds)

    @property
    def cells(self) -> list[str]:
        """The file and the text."""
        return [str(self.file), self.given]

    @property
    def title(self) -> str:
        return self.words[0]

    @property
    def look_line(self) -> str:
        return f"Sound: {self.seconds:.2f} seconds"

    def json_values(self) -> dict[str, Any]:
        """The file and its seconds."""
        return {"file": str(self.file), "seconds": round(self.seconds, 3)}


@dataclass
class Speech(ScoredForm, OutputForm):
    """Audio tokens: inputs `target` (B, T) and targets `labels` (B, T)."""

    options: ClassVar[type[Any]] = SpeakOptions
    eval_options: ClassVar[type[Any]] = ListenOptions
    rare_kinds: ClassVar[bool] = True
    metric: ClassVar[str] = "nats"
    higher_is_better: ClassVar[bool] = False

    rate: int | None = None
    """Sampling rate that sounds are resampled to. By default that of the first sound, at most 16,000 Hz."""
    bands: int | None = None
    """Bands of the spectrogram. By default 40 up to 8,000 Hz, else 80."""
    codes: int = 256
    """Audio tokens to choose from, at most; learned by k-means from spectrograms."""
    codec: Learned[AudioCodec | None] = None
    """What makes tokens of sounds, and sounds of tokens."""
    longest: Learned[int] = 0
    """Audio tokens of the longest sound in training."""

    def check(self) -> None:
        at_least(2, "codes", self.codes)

    def check_learned(self) -> None:
        self.learned_codec.check()
        at_least(1, "longest", self.longest)

    @property
    def learned_codec(self) -> AudioCodec:
        """The codec, once it is learned."""
        if self.codec is None:
            raise UserError("the codes of sounds are missing")
        return self.codec

    def learn(self, train: Dataset[LabelledSound], reads: Any, architecture: Any) -> "Speech":
        found = copy(self)
        log_mel = replace(choose_log_mel(train[0].rate, self.rate, self.bands), window=WINDOW, step=STEP)
        found.codec = learn_codec(log_mel, [one.read() for one in train], self.codes)
        found.longest = 1 + round(max(one.seconds for one in train) / log_mel.step)
        return found

    def sizes(self) -> dict[str, int]:
        return {"tgt_vocab": SPECIAL + len(self.learned_codec.codes)}

    def kinds(self, example: LabelledSound) -> set[str]:
        """Its characters: the last sound with one is never held out."""
        return set(example.label)

    def prepare(self, example: LabelledSound) -> list[list[int]]:
        return [[SPECIAL + int(code) for code in self.learned_codec.encode(example.read())]]

    def cost(self, prepared: list[int]) -> int:
        return len(prepared) + 1

    def tensors(
        self, prepared: Sequence[list[int]], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        target, labels = teacher_forcing(list(prepared))
        return {"target": target}, {"labels": labels}, count_labels(labels)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[PreparedText], options: Any
    ) -> list[Said]:
        rows = iter(self.draw_codes(model, inputs, options))
        answers = []
        for one in prepared:
            codes = [next(rows) for _ in one.words]
            sounds = [self.learned_codec.decode(own, options.seed) for own in codes]
            answers.append(Said(file=options.out, words=one.words, codes=codes, sounds=sounds))
        return answers

    def draw_codes(self, model: Any, inputs: dict[str, Tensor], options: AudioSampling) -> list[list[int]]:
        """The codes of a sound for each row of the inputs."""
        generator = torch.Generator(next(model.parameters()).device).manual_seed(options.seed)
        found: list[list[int]] = []
        for begin in range(0, len(inputs["source"]), BATCH):
            own = {name: part[begin : begin + BATCH] for name, part in inputs.items()}
            own["source"] = own["source"][:, : int(own["source_lengths"].max())]
            limit = self.longest + 1
            drawn = sample(model, own, LEARNED, limit, 1, options.temperature, generator=generator)
            found += [[token - SPECIAL for token in one.tokens if token >= SPECIAL] or [0] for (one,) in drawn]
        return found

    def write(self, answers: Sequence[Said], options: SpeakOptions) -> None:
        samples = []
        for sound in (sound for answer in answers for sound in answer.sounds):
            samples += [sound.samples, np.zeros(round(PAUSE * sound.rate))]
        write_wave(options.out, np.concatenate(samples).astype(np.float32), self.learned_codec.log_mel.rate)

    def frequency_nats(self, codes: Sequence[np.ndarray]) -> float:
        """Nats of a token of sounds where each is as likely as it is frequent in them."""
        counts = np.bincount(np.concatenate(codes), minlength=len(self.learned_codec.codes)) + 0.1
        return -float((counts / counts.sum() * np.log(counts / counts.sum())).sum())

    # -- looking, at the first part of a text

    def teach(self, answer: Said) -> dict[str, Tensor]:
        return {"target": torch.tensor([[LEARNED.start, *(SPECIAL + code for code in answer.codes[0])]])}

    def scored_labels(self, output: Output, answer: Said) -> Tensor:
        """The codes of the first word, and their end."""
        return torch.tensor([[*(SPECIAL + code for code in answer.codes[0]), LEARNED.end]])

    def spectrogram(self, answer: Said) -> np.ndarray:
        """That of the codes (T, F)."""
        return np.array(self.learned_codec.codes, np.float32)[answer.codes[0]]

    def axis(self, answer: Said) -> DecoderNames:
        """The spectrogram of the tokens that are read; the times of those that are written."""
        step, count = self.learned_codec.log_mel.step, len(answer.codes[0])
        read = Audio.of(self.spectrogram(answer).T, count * step, [START])
        written = [*(f"{place * step:.2f} s" for place in range(count)), END]
        return DecoderNames(
            lambda places: read if places == count + 1 else None, token_names(written), "decoder", count + 1
        )

    def rows(self, sight: Sight, model: nn.Module, answer: Said, before: int) -> list[MapRow]:
        """The last layer of self-attention, the mean of its heads: each token over those before it."""
        sites = [name for name in sight.sites if fnmatchcase(name, "decoder.*.self")]
        if not sites:
            return []
        weights = sight[sites[-1]].weights()[0].mean(0).float().cpu()
        return [MapRow("", of) for of in weights[:-1, 1:]]  # the end is not a sound, and the start no frame

    def draw(self, answer: Said, value: list[str], rows: Sequence[MapRow], grid: GridFinder) -> Picture:
        """The spectrogram above the attention of each token to those before it."""
        from foveate.viewer.speech_figure import draw  # imports matplotlib, which takes a while

        weights = np.stack([np.asarray(row.weights) for row in rows])
        seconds = len(rows) * self.learned_codec.log_mel.step
        return draw(self.spectrogram(answer), weights, [row.name for row in rows], seconds, answer.title)
