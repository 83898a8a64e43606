"""Looking at models of sound that are given a spectrogram: Whisper and its like."""

import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32
from torch import Tensor

from foveate.errors import UserError
from foveate.interop.huggingface import FROM_DISK, config_file, library, told
from foveate.recipes.looking.images import PROCESSOR
from foveate.recipes.looking.inputs import check_length, file_of
from foveate.recipes.looking.naming import one_side
from foveate.recipes.looking.texts import Words, read_and_write, run, writes
from foveate.viewer.protocol import File, Input, InputKind, LookResult
from foveate.viewer.sides import Audio


class Listener:
    """A model that is given the spectrogram of a sound."""

    takes: InputKind = "audio"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.words = model, Words(folder)
        self.ear, self.name = Ear(model.config, folder), f"{type(model).__name__} from {folder}"

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        file = file_of(given, self.name, self.takes)
        sound, rate = recorded(file)
        seconds, longest = len(sound) / rate, self.ear.longest
        if longest is not None and seconds > longest:
            raise UserError(
                f"{file.name} lasts {seconds:,.1f} seconds, but {self.name} hears {longest:g} at most: cut it"
            )
        features = self.ear.hear(sound, rate)
        spectrogram = self.ear.spectrogram(features[0])
        check_length(spectrogram.shape[1], most, "the spectrogram", "frames")
        heard = Audio.of(spectrogram, seconds if longest is None else longest)
        inputs = {"input_features": features.to(self.model.device, self.model.dtype)}
        if writes(self.model):
            sight, names, notes = read_and_write(self.model, inputs, lambda count: heard, self.words, sites)
        else:
            sight = run(self.model, self.model.base_model, inputs, sites)
            names, notes = one_side(sight, lambda count: heard), []
        return LookResult(sight, names, file.name, [self.name, *notes, *sight.notes])


class Ear:
    """How a sound becomes what a model is given: by the folder's own extractor, else by Whisper's."""

    def __init__(self, config: Any, folder: Path) -> None:
        transformers = library()
        with told(f"{folder / PROCESSOR} cannot be used"):
            if config_file(folder, PROCESSOR):
                self.extractor = transformers.AutoFeatureExtractor.from_pretrained(folder, **FROM_DISK)
            else:
                self.extractor = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins)
            self.bands = int(self.extractor.feature_size)
            chunk = getattr(self.extractor, "chunk_length", None)
            self.longest = None if chunk is None else float(chunk)  # Whisper's kind fills up to these seconds

    def hear(self, sound: Float32[np.ndarray, "N"], rate: int) -> Float[Tensor, "1 ..."]:
        """What the model is given: Whisper's kind (1, bands, frames), most others (1, frames, bands)."""
        with told("the sound cannot be prepared"):
            wanted = self.extractor.sampling_rate
            sound = resampled(sound, rate, wanted)
            return self.extractor(sound, sampling_rate=wanted, return_tensors="pt")["input_features"]

    def spectrogram(self, features: Float[Tensor, "..."]) -> Float[Tensor, "bands frames"]:
        """The same as a picture has it. Raises UserError where neither axis is that of the bands."""
        stacked = getattr(self.extractor, "stride", 1)  # so many frames are given as one
        if features.ndim == 2 and features.shape[1] == self.bands * stacked:
            return features.reshape(-1, self.bands).T
        if features.ndim == 2 and features.shape[0] == self.bands:
            return features
        shape = " x ".join(map(str, features.shape))
        raise UserError(
            f"the sound became {shape} numbers, but a spectrogram has {self.bands} bands: "
            "this kind cannot be looked at here (but from Python, by foveate.look)"
        )


def recorded(file: File) -> tuple[Float32[np.ndarray, "N"], int]:
    """The samples of a .wav file, its channels mixed, from -1 to 1; and how many there are in a second.

    Raises UserError for what is no such file.
    """
    try:
        with wave.open(io.BytesIO(file.data)) as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:  # the last where a part's length is wrong
        raise UserError(
            f"{file.name} is no .wav file of whole numbers (PCM): {str(error) or 'it ends too soon'}"
        ) from None
    if width > 4:
        raise UserError(f"{file.name} has samples of {8 * width} bits; at most 32 are read")
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
