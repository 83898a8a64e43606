"""What a public Whisper reads and writes: windows of at most 30 seconds, and what is said in them.

B batch    S frames    F bands    T tokens    Z places of a sound that the model keeps
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from foveate.contracts import IGNORE, Generator, Output
from foveate.data.dataset import Dataset, Prepared
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.whisper_features import RATE, SECONDS, WhisperFeatures
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.decoding import Decoding, generate
from foveate.decoding.sound_generator import SoundGenerator
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.form import Changes, Learned, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.sound import Heard, Sound, SpokenSound
from foveate.forms.sound_files import read_sound_settings
from foveate.forms.transcripts import END, TranscriptAnswer, TranscriptForm, check_raw
from foveate.forms.whisper_tokens import LanguageOptions, WhisperTokens, plain_words
from foveate.forms.written import Written, WrittenAnswer, require_tokenizer
from foveate.models.speech.whisper import WhisperConfig
from foveate.run_dir import CONFIG
from foveate.sight import Sight
from foveate.viewer.protocol import Input
from foveate.viewer.sides import Audio

WINDOW = 512
"""Places that a window takes of those that are transcribed together: eight windows on a CPU."""

MOST_TOKENS = 224
"""Tokens that are written for a window at most, as in OpenAI's program."""

FRAMES = 100
"""Frames of a second; the model keeps half of them."""

BLURRED = 4
"""Frames behind a sound whose windows reach into it."""

GENERATION = "generation_config.json"

KEPT = ("_token_id", "_tokens", "is_multilingual", "lang_to_id", "alignment_heads", "forced_decoder_ids")
"""How the fields of a `config.json` end that are of the tokens, not of the sizes."""


@dataclass
class WhisperOptions(LanguageOptions):
    """What is written of a sound."""

    times: bool = False
    """Tell when each word begins and ends, in seconds."""
    raw: int | None = None
    """Piped sound has no header: it is 16-bit samples of one channel, this many in a second."""

    def check(self) -> None:
        check_raw(self.raw)


@dataclass
class WhisperSound(SpokenSound):
    """A sound of at most 30 seconds, padded to that."""

    worth_optimizing: ClassVar[float] = 1
    most_seconds: ClassVar[float] = SECONDS

    features: Learned[WhisperFeatures] = field(default_factory=WhisperFeatures)
    longest: Learned[float] = SECONDS

    @classmethod
    def of_folder(cls, folder: Path, config: WhisperConfig) -> "WhisperSound":
        """As a folder says, whose model has this config. Raises UserError for what foveate does not do."""
        read = read_sound_settings(folder)
        read.require(sampling_rate=RATE, n_fft=400, hop_length=160, chunk_length=SECONDS, feature_size=config.bands)
        return cls(features=WhisperFeatures(config.bands))

    def check(self) -> None:
        for name in ("rate", "bands"):
            if getattr(self, name) is not None:
                raise UserError(f"reads.{name} does nothing here: a Whisper reads spectrograms of its own")

    def check_learned(self) -> None:
        """There is nothing that cannot be."""

    def learn(self, train: Dataset[Any], architecture: Any) -> "WhisperSound":
        raise UserError("architecture.windows is for weights that others trained: name them with --from")

    def extend(self, trained: Any, train: Dataset[Any]) -> "WhisperSound":
        found: WhisperSound = trained.with_settings(self)
        return found

    def sizes(self) -> dict[str, int]:
        return {"bands": self.features.bands}

    def spectrogram(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """That of the whole window."""
        return self.features(sound)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """Spectrograms in half precision, without the silence behind their sounds; none of longer ones."""
        self.check_memory(dataset, self.features.bands)
        kept = [number for number, one in enumerate(dataset) if one.seconds <= SECONDS]
        left = (
            f"{dataset.name}: {len(dataset) - len(kept):,} last more than {SECONDS} seconds, and are not learned from"
        )
        found = [self.audible(dataset[number].read()).astype(np.float16) for number in kept]
        return Prepared(found, kept, left if len(kept) < len(dataset) else "")

    def audible(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """What is kept in memory of a sound."""
        return self.spectrogram(sound)[: math.ceil(sound.seconds * FRAMES) + BLURRED]

    def cost(self, prepared: np.ndarray) -> int:
        """Frames of a window."""
        return SECONDS * FRAMES

    def tensors(
        self, prepared: Sequence[Heard | np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        source = torch.empty(len(prepared), SECONDS * FRAMES, self.features.bands)
        for row, one in enumerate(prepared):
            audible = one.spectrogram if isinstance(one, Heard) else one.astype(np.float32)
            silence = float(audible.min())
            if generator is not None and self.augment:
                audible = self.masked(audible, generator)
            source[row, : len(audible)] = torch.from_numpy(audible)
            source[row, len(audible) :] = silence
        return {"source": source, "source_lengths": torch.full((len(prepared),), source.shape[1])}, Changes()

    def masked(
        self, spectrogram: Float32[np.ndarray, "S F"], generator: np.random.Generator
    ) -> Float32[np.ndarray, "S F"]:
        middle = spectrogram.mean()
        return super().masked(spectrogram - middle, generator) + middle

    @property
    def frames(self) -> float:
        return FRAMES

    def receive(self, given: Input, name: str) -> Heard:
        heard = Heard(Sound.receive(self, given, name), self)
        if heard.seconds > SECONDS:
            raise UserError(
                f"{self.title(given)} lasts {heard.seconds:,.1f} seconds, but {name} accepts {SECONDS} at most: cut it"
            )
        return heard

    def axis(self, value: Heard, prepared: Heard, grid: GridFinder) -> Naming:
        names = Audio.of(value.spectrogram.T, value.seconds, padded=SECONDS)
        return lambda count: names

    def places(self, prepared: Heard) -> int:
        return WINDOW


@dataclass(kw_only=True)
class WhisperText(TranscriptForm, Written):
    """What is said, in the tokens of a folder."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    options: ClassVar[type[Any]] = WhisperOptions
    eval_options: ClassVar[type[Any]] = LanguageOptions
    attending: ClassVar[tuple[str, ...]] = ("decoder.*.cross",)
    whole: ClassVar[bool] = False
    with_lengths: ClassVar[bool] = False
    metric: ClassVar[str] = "word_error_rate"
    higher_is_better: ClassVar[bool] = False
    end_sign: ClassVar[str] = END
    decoding: ClassVar[Any] = None  # type: ignore[misc]

    language: str | None = None
    """Code of the language that is spoken, for the training of a model that knows several."""
    tokenizer: Learned[Any] = None
    config: Learned[dict[str, Any]] = field(default_factory=dict)
    """What the folder's `config.json` says beside the sizes, such as the numbers of special tokens."""
    generation: Learned[dict[str, Any]] = field(default_factory=dict)
    """What its `generation_config.json` says."""
    settings: Learned[dict[str, Any]] = field(default_factory=dict)
    """What its `tokenizer_config.json` says."""
    origin: Learned[str] = ""
    """The folder."""
    vocabulary: Learned[int] = 0
    """Tokens that the model writes; its tokenizer may have fewer."""
    most: Learned[int] = 0
    """Positions of the decoder."""
    kept: Learned[int] = 0
    """Places of a window that the model keeps."""

    @classmethod
    def of_folder(cls, folder: Path, config: WhisperConfig) -> "WhisperText":
        """As a folder says, whose model has this config. Raises UserError for what is missing or damaged."""
        values, where = read_json(folder / CONFIG), folder / GENERATION
        tokenizer = PublicTokenizer.load(folder)
        found = cls(
            tokenizer=tokenizer,
            config={name: value for name, value in values.items() if name.endswith(KEPT)},
            generation=read_json(where) if where.is_file() else {},
            settings=dict(tokenizer.config),
            origin=str(folder),
            vocabulary=config.vocabulary,
            most=config.max_length,
            kept=config.max_source,
        )
        _ = found.known  # raises UserError for missing tokens
        return found

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return PublicTokenizer.load(path.parent)

    @property
    def values(self) -> Mapping[str, Any]:
        """Those of both files."""
        return {**self.config, **self.generation}

    @cached_property
    def known(self) -> WhisperTokens:
        """The tokens that have a meaning for the model."""
        return WhisperTokens(self.tokenizer, self.values, self.vocabulary, Path(self.origin))

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "WhisperText":
        raise UserError("architecture.windows is for weights that others trained: name them with --from")

    def extend(self, trained: Any, train: Dataset[Any]) -> "WhisperText":
        found: WhisperText = trained.with_settings(self)
        if found.known.multilingual and found.language is None:
            raise UserError(f"{found.origin} knows several languages: say which is spoken, as --writes.language fr")
        found.known.check(LanguageOptions(found.language))
        return found

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": self.vocabulary}

    def prepare(self, example: Any) -> list[np.ndarray]:
        """The tokens of a transcript, between those of its prompt and the end. Raises UserError for too many."""
        tokens = self.tokenizer.encode_inside([f" {example.label.strip()}"])[0]
        row = [*self.known.prompt(self.language, False), *tokens, self.known.end]
        if len(row) > self.most + 1:
            raise UserError(
                f"{example.path}: the transcript has {len(row) - 1} tokens, but a Whisper writes {self.most}"
            )
        return [np.array(row, np.int32)]

    def check(self) -> None:
        """There are no settings."""

    def check_options(self, options: LanguageOptions) -> None:
        self.known.check(options)

    def run_options(self) -> WhisperOptions:
        return WhisperOptions(language=self.language)

    def measure_options(self) -> LanguageOptions:
        return LanguageOptions(language=self.language)

    def at_once(self, device: torch.device) -> int:
        return 1

    def nothing(self) -> TranscriptAnswer:
        return TranscriptAnswer()

    def decide(
        self, model: Any, inputs: dict[str, Tensor], prepared: Sequence[Heard], options: LanguageOptions
    ) -> list[WrittenAnswer]:
        """What is said in each window, greedily."""
        generator = SoundGenerator(model, inputs["source"], self.values)
        languages = self.languages(generator, prepared, options)
        prompts = [self.known.prompt(code, options.translate) for code in languages]
        limit = Decoding("greedy", max_new_tokens=min(MOST_TOKENS, self.most - len(prompts[0])))
        written = generate(cast(Generator, generator), prompts, limit, {self.known.end})
        texts = self.tokenizer.decode([one.tokens for one in written])
        return [
            TranscriptAnswer(
                text=text,
                log_prob=sum(one.log_probs),
                ended=one.ended,
                tokens=list(one.tokens),
                prompt=prompt,
                language=language,
                seconds=heard.seconds,
            )
            for text, one, prompt, language, heard in zip(texts, written, prompts, languages, prepared, strict=True)
        ]

    def languages(
        self, generator: SoundGenerator, prepared: Sequence[Heard], options: LanguageOptions
    ) -> list[str | None]:
        """The code of the language of each window; None for a model of English alone."""
        count, device = len(generator.source), generator.source.device
        if options.language is not None or not self.known.multilingual:
            return [options.language] * count
        if all(heard.language for heard in prepared):
            return [heard.language for heard in prepared]
        codes = {number: code for code, number in self.known.languages.items()}
        numbers = torch.tensor(sorted(codes), device=device)
        starts = torch.full((count,), self.known.start, device=device)
        logits = generator.model.step(starts, generator.state())
        return [codes[int(one)] for one in numbers[logits[:, numbers].argmax(1)]]

    # -- looking

    def teach(self, answer: Any) -> dict[str, Tensor]:
        return {"target": torch.tensor([[*answer.prompt, *answer.tokens]])}

    def scored_labels(self, output: Output, answer: Any) -> Tensor:
        end = self.known.end if answer.ended else IGNORE
        return torch.tensor([[*[IGNORE] * (len(answer.prompt) - 1), *answer.tokens, end]])

    def axis(self, answer: Any) -> DecoderNames:
        pieces = self.tokenizer.pieces([*answer.prompt, *answer.tokens])
        return DecoderNames(token_names(pieces), token_names([*pieces[1:], END]), self.decoder, len(pieces))

    def rows(self, sight: Sight, model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """Each token and the end, as the mean of the heads that follow the sound."""
        if not answer.tokens:
            return []
        names = [*self.tokenizer.pieces(answer.tokens), END]
        weights = self.alignment(sight, answer).mean(0)
        return [MapRow(name, of) for name, of in zip(names, weights, strict=True)]

    def words(self, answer: TranscriptAnswer) -> list[tuple[str, int]]:
        return list(self.known.words(answer.tokens))

    def alignment(self, sight: Sight, answer: TranscriptAnswer) -> Float[np.ndarray, "H T Z"]:
        """That of the alignment heads that the folder names, else of all heads of the upper half of the layers."""
        places = max(1, min(self.kept, round(answer.seconds * FRAMES / 2)))
        first = len(answer.prompt) - 1
        named = self.values.get("alignment_heads")
        if not named:  # as OpenAI's own program
            count = sum(fnmatchcase(site, "decoder.*.cross") for site in sight.sites)
            layers = range(count // 2, count)
            named = [(at, head) for at in layers for head in range(sight[f"decoder.{at}.cross"].shape[1])]
        rows = [sight[f"decoder.{layer}.cross"].weights(heads=[head])[0, 0, first:, :places] for layer, head in named]
        return torch.stack(rows).float().cpu().numpy()

    def comparable(self, text: str) -> str:
        """Words without case and punctuation."""
        return plain_words(text)

    def notes(self, examples: Sequence[Any]) -> list[str]:
        return ["case and punctuation are not compared"]
