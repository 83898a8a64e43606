"""Sound classification: a sound gets one of several labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.data.sounds.files import Sound, read_sound
from foveate.data.sounds.labelled import LabelledSound, labelled_sounds
from foveate.data.sounds.processor import SoundProcessor
from foveate.errors import UserError
from foveate.sight import look
from foveate.tasks.answers.label_files import FileDecision, LabelFiles, label_counts
from foveate.tasks.examples.sound_files import choose_log_mel, read_or_report, sound_files
from foveate.tasks.predictor import Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.start.parts import Body, FromBody
from foveate.tasks.task import Examples
from foveate.training import Training
from foveate.viewer.figures import plot_image_attention

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
class ClassifySound(LabelFiles[Architecture]):
    """Train a sound classifier, which gives a sound one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify-sound"
    unit = "sounds"
    takes = "audio"
    example = "sound"
    decided_together = 128
    processor = SoundProcessor
    start_parts = Body()
    default_training = Training(
        usual_epochs=15,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
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
    start: FromBody = None

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledSound]:
        return labelled_sounds(paths)

    def fit(self, train: Dataset[LabelledSound]) -> SoundProcessor:
        chosen = self.examples
        log_mel = choose_log_mel(train[0].rate, chosen.rate, chosen.bands)
        usual = min(LONGEST, float(np.quantile([one.seconds for one in train], 0.95)))
        seconds = usual if chosen.seconds is None else chosen.seconds
        frames = MULTIPLE * max(1, round(seconds / log_mel.step / MULTIPLE))
        return SoundProcessor(log_mel, frames, label_counts(train), chosen.augment)

    def expand(self, places: Sequence[str]) -> list[str]:
        return sound_files(places)

    def read_files(self, places: Sequence[str]) -> dict[str, Sound]:
        return read_or_report(places)[0]

    def inputs(self, predictor: Predictor, contents: Sequence[Sound]) -> dict[str, Tensor]:
        processor: SoundProcessor = predictor.processor
        return {"pixels": processor.pixels([processor.spectrogram(sound) for sound in contents])}

    def picture(self, predictor: Predictor, prediction: FileDecision) -> Any:
        """The spectrogram under the attention of the model's last site: where its first token looks, the mean of all
        heads."""
        inputs = self.inputs(predictor, [read_sound(Path(prediction.place))])
        pixels = inputs["pixels"]
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.forward(inputs)
        model: Any = predictor.model
        if not sight.sites or not hasattr(model, "grid_size"):
            return None
        rows, columns = model.grid_size(*pixels.shape[2:])
        weights = sight[sight.sites[-1]].weights()[0].mean(0)[0, -rows * columns :].reshape(rows, columns)
        bands = pixels[0, 0].flip(0).numpy()  # low frequencies at the bottom
        picture = (255 * (bands - bands.min()) / (np.ptp(bands) + 1e-6)).astype(np.uint8)[..., None]
        return plot_image_attention(picture, weights.flip(0).cpu().numpy(), prediction.title)
