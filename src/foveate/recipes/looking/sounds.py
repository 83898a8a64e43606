"""Looking at models of sound that are given a spectrogram: Whisper and its like."""

import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from foveate.contracts import UserError
from foveate.recipes.looking.hugging_face import FROM_DISK, config_file, library, told
from foveate.recipes.looking.images import PROCESSOR
from foveate.recipes.looking.inputs import check_length, file_of
from foveate.recipes.looking.naming import one_side
from foveate.recipes.looking.texts import Words, read_and_write, run
from foveate.sight.page.sides import Audio
from foveate.sight.seen import File, Input, Seen, Takes


class Listener:
    """A model that is given the spectrogram of a sound."""

    takes: Takes = "audio"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.words = model, Words(folder)
        self.name = f"{type(model).__name__} from {folder}"
        transformers = library()
        with told(f"{folder / PROCESSOR} cannot be used"):
            if config_file(folder, PROCESSOR):
                self.ear = transformers.AutoFeatureExtractor.from_pretrained(folder, **FROM_DISK)
            else:
                self.ear = transformers.WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> Seen:
        file = file_of(given, self.name, self.takes)
        sound, rate = recorded(file)
        longest = getattr(self.ear, "chunk_length", None)
        if longest is not None and len(sound) > longest * rate:
            seconds = len(sound) / rate
            raise UserError(
                f"{file.name} lasts {seconds:,.1f} seconds, but {self.name} hears {longest} at most: cut it"
            )
        with told("the sound cannot be prepared"):
            sound = resampled(sound, rate, self.ear.sampling_rate)
            features = self.ear(sound, sampling_rate=self.ear.sampling_rate, return_tensors="pt")["input_features"]
        seconds = features.shape[-1] * self.ear.hop_length / self.ear.sampling_rate
        check_length(features.shape[-1], most, "the spectrogram", "frames")
        heard = Audio.of(features[0], seconds)
        inputs = {"input_features": features.to(self.model.device, self.model.dtype)}
        if self.model.config.is_encoder_decoder:
            sight, names, notes = read_and_write(self.model, inputs, lambda count: heard, self.words, sites)
        else:
            sight = run(self.model, self.model.base_model, inputs, sites)
            names, notes = one_side(sight, lambda count: heard), []
        return Seen(sight, names, file.name, [self.name, *notes, *sight.notes])


def recorded(file: File) -> tuple[Float32[np.ndarray, "N"], int]:
    """The samples of a .wav file, its channels mixed, from -1 to 1; and how many there are in a second.

    Raises UserError for what is no such file.
    """
    try:
        with wave.open(io.BytesIO(file.data)) as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError) as error:
        raise UserError(
            f"{file.name} is no .wav file of whole numbers (PCM): {str(error) or 'it ends too soon'}"
        ) from None
    frames = len(data) // (width * channels)
    if not frames or not rate:
        raise UserError(f"{file.name} holds no sound")
    samples = np.frombuffer(data, np.uint8, frames * channels * width).reshape(-1, width)
    if width == 1:  # the only width without a sign
        values = samples[:, 0].astype(np.float64) / 128 - 1
    else:
        padded = np.zeros((len(samples), 4), np.uint8)
        padded[:, 4 - width :] = samples
        values = padded.view("<i4")[:, 0] / 2**31
    return values.reshape(frames, channels).mean(1).astype(np.float32), rate


def resampled(sound: Float32[np.ndarray, "N"], rate: int, wanted: int) -> Float32[np.ndarray, "M"]:
    """The same sound with another number of samples in a second; what is too high for it is left out."""
    if rate == wanted:
        return sound
    count = max(1, round(len(sound) * wanted / rate))
    waves = np.fft.rfft(sound)
    kept = np.zeros(count // 2 + 1, complex)
    common = min(len(kept), len(waves))
    kept[:common] = waves[:common]
    return (np.fft.irfft(kept, count) * (count / len(sound))).astype(np.float32)
