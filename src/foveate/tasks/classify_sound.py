"""Sound classification: a sound gets one of several labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from foveate.data.dataset import Dataset
from foveate.data.labelled_sounds import LabelledSound, count_labels, labelled_sounds
from foveate.data.sound_processor import SoundProcessor
from foveate.data.sounds import Sound, read_sound
from foveate.errors import UserError, printable
from foveate.sight import look
from foveate.tasks.labelling import check_labels, choose_label, label_baseline, label_metrics
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.sound_files import choose_log_mel, read_or_report, sound_files
from foveate.tasks.task import Examples, Task
from foveate.tasks.trained import NoOptions, unlearned
from foveate.training import Training
from foveate.viewer.figures import plot_image_attention

BATCH = 128
"""Sounds that are decided about together."""

MULTIPLE = 16
"""Spectrograms have a multiple of so many frames, which patches and strides divide."""

LONGEST = 10.0
"""Seconds of spectrograms, where sounds are longer and nothing is said."""


@dataclass
class Sounds(Examples):
    """Which sounds to learn from, a folder with one folder for each class or a table with path<TAB>label on each line,
    and what becomes of them."""

    batch: int = 64
    """Sounds of a batch."""
    seconds: float | None = None
    """Length that sounds are cropped or padded to. By default that of the longest but one in twenty, at most 10."""
    rate: int | None = None
    """Sampling rate that sounds are resampled to. By default that of the first sound, at most 16,000 Hz."""
    bands: int | None = None
    """Bands of the spectrogram. By default 40 up to 8,000 Hz, else 80."""
    augment: bool = True
    """Shift sounds and mask bands and stretches of time in training, at random."""

    def check(self) -> None:
        super().check()
        if self.seconds is not None and not 0 < self.seconds <= 600:
            raise UserError(f"seconds is {self.seconds}, but must be above 0 and at most 600")


@dataclass
class SoundDecision:
    """The label of a sound."""

    place: str
    """The file of the sound."""
    label: str = ""
    """The most probable label; empty for a file that could not be used."""
    probability: float = 0.0
    probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The file, the label and its probability, with tabs between them."""
        return f"{printable(self.place)}\t{printable(self.label)}\t{self.probability:.3f}" if self.label else ""


@dataclass
class ClassifySound(Task[Architecture]):
    """Train a sound classifier, which gives a sound one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify-sound"
    families = ("audio-transformer", "cnn", "resnet")
    unit = "sounds"
    files = "FOLDER"
    takes = "audio"
    processor = SoundProcessor
    usual = Training(
        epochs=15,
        learning_rate=3e-3,
        schedule="cosine",
        warmup=50,
        weight_decay=0.05,
        label_smoothing=0.1,
        validate_every=100,
        save_every=100,
    )

    examples: Annotated[Sounds, tyro.conf.arg(name="")] = field(default_factory=Sounds)
    model: str = "cnn-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/classify-sound")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledSound]:
        return labelled_sounds(paths)

    def hold_out(self, learn: Dataset[LabelledSound], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return learn.held_out(every, lambda example: example.label)

    def check_examples(self, learn: Dataset[LabelledSound], check: Dataset[LabelledSound]) -> None:
        check_labels(learn.name, [one.label for one in learn], check.name, [one.label for one in check], "sound")

    def fit(self, learn: Dataset[LabelledSound]) -> SoundProcessor:
        chosen = self.examples
        log_mel = choose_log_mel(learn[0].rate, chosen.rate, chosen.bands)
        usual = min(LONGEST, float(np.quantile([one.seconds for one in learn], 0.95)))
        seconds = usual if chosen.seconds is None else chosen.seconds
        frames = MULTIPLE * max(1, round(seconds / log_mel.step / MULTIPLE))
        return SoundProcessor(log_mel, frames, count_labels(learn), chosen.augment)

    def expand(self, places: Sequence[str]) -> list[str]:
        return sound_files(places)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[SoundDecision]:
        """The decision about the sound in each file; a file that cannot be used is reported and gets no label."""
        sounds, _ = read_or_report(texts)
        found = {one.place: one for one in _decide(predictor, [*sounds.values()], [*sounds])}
        return [found.get(place) or SoundDecision(place) for place in texts]

    def measure(self, predictor: Predictor, examples: Sequence[LabelledSound], options: NoOptions) -> Measured:
        decisions: list[SoundDecision] = []
        for begin in range(0, len(examples), BATCH):
            group = examples[begin : begin + BATCH]
            decisions += _decide(predictor, [one.read() for one in group], [one.place for one in group])
        metrics = label_metrics([one.label for one in decisions], [one.label for one in examples])
        return Measured([one.line for one in decisions], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledSound], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        return label_baseline(predictor.processor.labels, [one.label for one in examples])

    def notes(self, predictor: Predictor, examples: Sequence[LabelledSound]) -> list[str]:
        return unlearned("labels", [one.label for one in examples], predictor.processor.labels)

    def picture(self, predictor: Predictor, prediction: SoundDecision) -> Any:
        """The spectrogram under the attention of the model's last site: where its first token looks, the mean of all
        heads."""
        processor: SoundProcessor = predictor.processor
        spectrogram = processor.spectrogram(read_sound(Path(prediction.place)))
        pixels = processor.pixels([spectrogram])
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.forward({"pixels": pixels})
        model: Any = predictor.model
        if not sight.sites or not hasattr(model, "grid_size"):
            return None
        rows, columns = model.grid_size(*pixels.shape[2:])
        weights = sight[sight.sites[-1]].weights()[0].mean(0)[0, -rows * columns :].reshape(rows, columns)
        bands = pixels[0, 0].flip(0).numpy()  # low frequencies at the bottom
        shown = (255 * (bands - bands.min()) / (np.ptp(bands) + 1e-6)).astype(np.uint8)[..., None]
        title = f"{prediction.label} {prediction.probability:.2f}"
        return plot_image_attention(shown, weights.flip(0).cpu().numpy(), title)


def _decide(predictor: Predictor, sounds: Sequence[Sound], places: Sequence[str]) -> list[SoundDecision]:
    found: list[SoundDecision] = []
    processor: SoundProcessor = predictor.processor
    for begin in range(0, len(sounds), BATCH):
        pixels = processor.pixels([processor.spectrogram(sound) for sound in sounds[begin : begin + BATCH]])
        output = predictor.forward({"pixels": pixels})
        for place, shares in zip(places[begin:], output.logits.float().softmax(-1).tolist(), strict=False):
            found.append(SoundDecision(place, *choose_label(processor.labels, shares)))
    return found
