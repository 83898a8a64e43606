"""What a public Whisper reads and writes: windows of at most 30 seconds, and what is said in them.

B batch    S frames    F bands    T tokens    Z places of a sound that the model keeps
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from foveate.contracts import Generator
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.whisper_features import SECONDS, WhisperFeatures
from foveate.decoding import Decoding, generate
from foveate.decoding.sound_generator import SoundGenerator
from foveate.errors import UserError
from foveate.forms.form import MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.naming import DecoderNames, token_names
from foveate.forms.sound import Heard, Sound, SpokenSound
from foveate.forms.transcripts import END, TranscriptAnswer, TranscriptForm, check_raw
from foveate.forms.whisper_tokens import LanguageOptions, WhisperTokens, plain_words
from foveate.forms.word_times import most_decided
from foveate.forms.written import Written, WrittenAnswer
from foveate.sight import Sight
from foveate.viewer.protocol import Input
from foveate.viewer.sides import Audio

WINDOW = 512
"""Places that a window takes of those that are transcribed together: eight windows on a CPU."""

MOST_TOKENS = 224
"""Tokens that are written for a window at most, as in OpenAI's program."""

FRAMES = 100
"""Frames of a second; the model keeps half of them."""


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

    features: WhisperFeatures = field(default_factory=WhisperFeatures)
    longest: float = SECONDS

    def spectrogram(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """That of the whole window."""
        return self.features(sound)

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
        names = Audio.of(value.spectrogram.T, SECONDS)
        return lambda count: names

    def places(self, prepared: Heard) -> int:
        return WINDOW


@dataclass(kw_only=True)
class WhisperText(TranscriptForm, Written):
    """What is said, in the tokens of a folder."""

    options: ClassVar[type[Any]] = WhisperOptions
    eval_options: ClassVar[type[Any]] = LanguageOptions
    attending: ClassVar[tuple[str, ...]] = ("decoder.*.cross",)
    end_sign: ClassVar[str] = END
    decoding: ClassVar[Any] = None  # type: ignore[misc]

    tokenizer: Any = None
    known: WhisperTokens
    values: Mapping[str, Any]
    """Those of `config.json` and `generation_config.json`."""
    most: int
    """Positions of the decoder."""
    kept: int
    """Places of a window that the model keeps."""

    def check(self) -> None:
        """There are no settings."""

    def check_options(self, options: LanguageOptions) -> None:
        self.known.check(options)

    def run_options(self) -> WhisperOptions:
        return WhisperOptions()

    def measure_options(self) -> LanguageOptions:
        return LanguageOptions()

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
        """That of the alignment heads that the folder names, else of the head that looks most decidedly."""
        places = max(1, min(self.kept, round(answer.seconds * FRAMES / 2)))
        first = len(answer.prompt) - 1
        named = self.values.get("alignment_heads")
        if not named:
            return most_decided(sight, first)[None, :, :places]
        rows = [sight[f"decoder.{layer}.cross"].weights(heads=[head])[0, 0, first:, :places] for layer, head in named]
        return torch.stack(rows).float().cpu().numpy()

    def comparable(self, text: str) -> str:
        """Words without case and punctuation."""
        return plain_words(text)

    def notes(self, examples: Sequence[Any]) -> list[str]:
        return ["case and punctuation are not compared"]
