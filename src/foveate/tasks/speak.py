"""Text to sound: a model says a text, one audio token after the other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch.nn.functional import cross_entropy

from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.sounds.codec import learn_codec
from foveate.data.sounds.files import Sound
from foveate.data.sounds.labelled import LabelledSound, labelled_sounds
from foveate.data.sounds.speaking_processor import SpeakingProcessor
from foveate.data.sounds.wav import check_wave_file, write_wave
from foveate.data.tokens.character_tokens import SPECIAL, find_characters
from foveate.errors import at_least, one_line
from foveate.forms.sound_files import choose_log_mel
from foveate.sight import look
from foveate.tasks.answers.judges import recognised
from foveate.tasks.answers.spoken_texts import BATCH, Drawing, say, split_words
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.training import CrossEntropy, Objective

KNOWN = 1000
"""Different texts that are kept, at most."""

WINDOW, STEP = 0.04, 0.0125
"""Seconds of a window and from one to the next, of which each is a token."""

PAUSE = 0.15
"""Seconds of silence between words."""


@dataclass
class SaidTexts(Examples):
    """Which sounds to learn from, a table with sound<TAB>text on each line or a folder with one folder for each text,
    and what becomes of them."""

    batch: int = 1000
    """Audio tokens of a batch, padding included."""
    validation_examples: int = 200
    """Sounds that each validation during training measures."""
    rate: int | None = None
    """Sampling rate that sounds are resampled to. By default that of the first sound, at most 16,000 Hz."""
    bands: int | None = None
    """Bands of the spectrogram. By default 40 up to 8,000 Hz, else 80."""
    codes: int = 256
    """Audio tokens to choose from, at most; learned by k-means from spectrograms."""

    def check(self) -> None:
        super().check()
        at_least(2, "codes", self.codes)


@dataclass
class Saying(Drawing):
    """How texts are said."""

    out: Path = Path("speech.wav")
    """The file to write (.wav). Words are said one after the other, several texts too."""


@dataclass
class Listening(Drawing):
    """With `foveate eval`: how texts are said, and what listens."""

    judge: Path | None = None
    """A run of classify-sound: also measure how many sounds it recognises as their text."""


@dataclass
class Said:
    """A text that was said into a file."""

    text: str
    file: Path
    seconds: float
    tokens: list[int] = field(repr=False, default_factory=list)
    """Audio tokens of its first word."""

    @property
    def line(self) -> str:
        """The file and the text, with a tab between them."""
        return f"{one_line(self.file)}\t{one_line(self.text)}" if self.text.strip() else ""


@dataclass
class Speak(Task[Architecture]):
    """Train a model that says texts.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "speak"
    unit = "tokens"
    files = "TABLE"
    metric = "nats"
    higher_is_better = False
    processor = SpeakingProcessor
    options = Saying
    default_training = Training(
        epochs=12,
        optimizer="muon",
        learning_rate=8e-3,
        schedule="cosine",
        warmup=20,
        label_smoothing=0.0,
        validate_every=200,
        save_every=200,
    )

    examples: Annotated[SaidTexts, tyro.conf.arg(name="")] = field(default_factory=SaidTexts)
    model: str = "speaker-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/speak")
    """Folder for the trained model; a training that it holds is resumed."""

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Listening:
        return Listening()

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledSound]:
        return labelled_sounds(paths)

    def hold_out(self, train: Dataset[Any], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return train.held_out_of_kinds(every, lambda example: example.label)

    def fit(self, train: Dataset[LabelledSound]) -> SpeakingProcessor:
        chosen, texts = self.examples, Counter(one.label for one in train)
        chosen_bands = choose_log_mel(train[0].rate, chosen.rate, chosen.bands)
        log_mel = replace(chosen_bands, window=WINDOW, step=STEP)
        codec = learn_codec(log_mel, [one.read() for one in train], chosen.codes)
        longest = 1 + round(max(one.seconds for one in train) / log_mel.step)
        known = tuple(text for text, _ in texts.most_common(KNOWN))
        return SpeakingProcessor(codec, find_characters(texts.elements()), longest, known)

    def objective(self) -> Objective:
        return CrossEntropy(self.training.label_smoothing)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Saying) -> list[Said]:
        """Say the texts into one file. Raises TextError for characters that the model never saw."""
        options.check()
        check_wave_file(options.out)
        parts = [split_words(predictor.processor, text, place) for place, text in enumerate(texts)]
        tokens = iter(say(predictor, [word for words in parts for word in words], options))
        said, samples = [], []
        for text, words in zip(texts, parts, strict=True):
            own = [next(tokens) for _ in words]
            sounds = [predictor.processor.codec.decode(one, options.seed) for one in own]
            samples += [piece for sound in sounds for piece in (sound.samples, np.zeros(round(PAUSE * sound.rate)))]
            said.append(Said(text, options.out, sum(one.seconds for one in sounds), own[0] if own else []))
        if samples:
            write_wave(options.out, np.concatenate(samples).astype(np.float32), predictor.processor.codec.log_mel.rate)
        return said

    def measure(self, predictor: Predictor, examples: Sequence[LabelledSound], options: Drawing) -> Measured:
        """Nats of each audio token; with a judge, the share of sounds that it recognises."""
        processor: SpeakingProcessor = predictor.processor
        prepared, nats, count = processor.prepare(Dataset("examples", examples)), 0.0, 0
        for begin in range(0, len(prepared), BATCH):
            batch = processor.batch(prepared[begin : begin + BATCH], None)
            logits = predictor.forward(batch.inputs).logits.float().cpu()
            nats += float(cross_entropy(logits.mT, batch.labels, ignore_index=IGNORE, reduction="sum"))
            count += batch.total_weight
        metrics = {"nats": nats / count}
        texts = [one.label for one in examples]
        if isinstance(options, Listening) and options.judge is not None:
            made = say(predictor, texts, options)
            sounds = [processor.codec.decode(tokens, options.seed) for tokens in made]
            metrics["recognised"] = self._recognised(options.judge, sounds, texts)
        return Measured(texts, metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledSound], options: Drawing
    ) -> dict[str, dict[str, float]]:
        """The most frequent tokens; with a judge, real sounds, and real sounds that went through the codebook."""
        processor: SpeakingProcessor = predictor.processor
        sounds, texts = [one.read() for one in examples], [one.label for one in examples]
        codes = [processor.codec.encode(sound) for sound in sounds]
        counts = np.bincount(np.concatenate(codes), minlength=len(processor.codec.codes)) + 0.1
        entropy = -float((counts / counts.sum() * np.log(counts / counts.sum())).sum())
        found = {"frequency of each token": {"nats": entropy}}
        if isinstance(options, Listening) and options.judge is not None:
            through = [processor.codec.decode(one.tolist(), options.seed) for one in codes]
            found["real sounds through the codebook"] = {"recognised": self._recognised(options.judge, through, texts)}
            found["real sounds"] = {"recognised": self._recognised(options.judge, sounds, texts)}
        return found

    def picture(self, predictor: Predictor, prediction: Said) -> Any:
        """The first word's spectrogram above the attention of each audio token to those before it, the mean of the
        heads of the last layer."""
        from foveate.viewer.speech_figure import draw

        if not prediction.tokens:
            return None
        processor: SpeakingProcessor = predictor.processor
        word = prediction.text.split()[0]
        tokens = [processor.special.start, *(SPECIAL + code for code in prediction.tokens)]
        inputs = {**processor.inputs([processor.read(word)]), "target": torch.tensor([tokens[:-1]])}
        with torch.inference_mode(), look(predictor.model, sites=["decoder.*.self"]) as sight:
            predictor.forward(inputs)
        weights = sight[sight.sites[-1]].weights()[0].mean(0).float().cpu().numpy()
        spectrogram = np.array(processor.codec.codes, np.float32)[prediction.tokens]
        seconds = len(prediction.tokens) * processor.codec.log_mel.step
        return draw(spectrogram, weights, [""] * len(weights), seconds, word)

    def _recognised(self, judge: Path, sounds: Sequence[Sound], texts: Sequence[str]) -> float:
        return recognised(judge, "classify-sound", sounds, texts)
