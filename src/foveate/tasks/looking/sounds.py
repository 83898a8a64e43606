"""The viewer of transformers' speech models that read a spectrogram, such as Whisper."""

import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32
from torch import Tensor

from foveate.errors import UserError
from foveate.interop.huggingface import LOCAL_ONLY, import_transformers, read_optional_json, short_errors
from foveate.tasks.looking.images import PROCESSOR
from foveate.tasks.looking.inputs import check_length, require_file
from foveate.tasks.looking.naming import single_input_names
from foveate.tasks.looking.texts import FolderTokenizer, generate_and_look, generates, run_and_look
from foveate.viewer.protocol import File, Input, InputKind, LookResult
from foveate.viewer.sides import Audio


class SoundViewer:
    """A model that reads the spectrogram of a sound."""

    takes: InputKind = "audio"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.tokenizer = model, FolderTokenizer(folder)
        self.preprocessor, self.name = SoundPreprocessor(model.config, folder), f"{type(model).__name__} from {folder}"

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        file = require_file(given, self.name, self.takes)
        sound, rate = read_wav(file)
        seconds, longest = len(sound) / rate, self.preprocessor.longest
        if longest is not None and seconds > longest:
            raise UserError(
                f"{file.name} lasts {seconds:,.1f} seconds, but {self.name} accepts {longest:g} at most: cut it"
            )
        features = self.preprocessor.prepare(sound, rate)
        spectrogram = self.preprocessor.spectrogram(features[0])
        check_length(spectrogram.shape[1], max_length, "the spectrogram", "frames")
        heard = Audio.of(spectrogram, seconds if longest is None else longest)
        inputs = {"input_features": features.to(self.model.device, self.model.dtype)}
        if generates(self.model):
            sight, names, notes = generate_and_look(self.model, inputs, lambda count: heard, self.tokenizer, sites)
        else:
            sight = run_and_look(self.model, self.model.base_model, inputs, sites)
            names, notes = single_input_names(sight, lambda count: heard), []
        return LookResult(sight, names, file.name, [self.name, *notes, *sight.notes])


class SoundPreprocessor:
    """Converts a sound into a model's input, with the folder's own feature extractor, or with Whisper's."""

    def __init__(self, config: Any, folder: Path) -> None:
        transformers = import_transformers()
        with short_errors(f"{folder / PROCESSOR} cannot be used"):
            if read_optional_json(folder, PROCESSOR):
                self.extractor = transformers.AutoFeatureExtractor.from_pretrained(folder, **LOCAL_ONLY)
            else:
                self.extractor = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins)
            self.bands = int(self.extractor.feature_size)
            chunk = getattr(self.extractor, "chunk_length", None)
            self.longest = None if chunk is None else float(chunk)  # Whisper and similar models pad to this duration

    def prepare(self, sound: Float32[np.ndarray, "N"], rate: int) -> Float[Tensor, "1 ..."]:
        """The model's input: (1, bands, frames) for Whisper and similar models, (1, frames, bands) for most others."""
        with short_errors("the sound cannot be processed"):
            wanted = self.extractor.sampling_rate
            sound = resample(sound, rate, wanted)
            return self.extractor(sound, sampling_rate=wanted, return_tensors="pt")["input_features"]

    def spectrogram(self, features: Float[Tensor, "..."]) -> Float[Tensor, "bands frames"]:
        """The spectrogram of an input. Raises UserError if neither axis has the size of the bands."""
        stacked = getattr(self.extractor, "stride", 1)  # number of frames that are stacked into one
        if features.ndim == 2 and features.shape[1] == self.bands * stacked:
            return features.reshape(-1, self.bands).T
        if features.ndim == 2 and features.shape[0] == self.bands:
            return features
        shape = " x ".join(map(str, features.shape))
        raise UserError(
            f"the sound became {shape} numbers, but a spectrogram has {self.bands} bands: "
            "this kind can only be looked at from Python, with foveate.look"
        )


def read_wav(file: File) -> tuple[Float32[np.ndarray, "N"], int]:
    """The samples of a .wav file from -1 to 1, averaged over its channels, and the sampling rate.

    Raises UserError for any other file.
    """
    try:
        with wave.open(io.BytesIO(file.data)) as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:  # RuntimeError if the length of a chunk is wrong
        raise UserError(f"{file.name} is no .wav file of integers (PCM): {str(error) or 'it is truncated'}") from None
    if width > 4:
        raise UserError(f"{file.name} has samples of {8 * width} bits; the limit is 32")
    frames = len(data) // (width * channels)
    if not frames or not rate:
        raise UserError(f"{file.name} has no samples")
    samples = np.frombuffer(data, np.uint8, frames * channels * width).reshape(-1, width)
    if width == 1:  # 8-bit samples are unsigned
        values = samples[:, 0].astype(np.float64) / 128 - 1
    else:
        padded = np.zeros((len(samples), 4), np.uint8)
        padded[:, 4 - width :] = samples
        values = padded.view("<i4")[:, 0] / 2**31
    return values.reshape(frames, channels).mean(1).astype(np.float32), rate


def resample(sound: Float32[np.ndarray, "N"], rate: int, wanted: int) -> Float32[np.ndarray, "M"]:
    """The sound at another sampling rate, without the frequencies that are too high for it."""
    if rate == wanted:
        return sound
    count = max(1, round(len(sound) * wanted / rate))
    waves = np.fft.rfft(sound)
    kept = np.zeros(count // 2 + 1, complex)
    common = min(len(kept), len(waves))
    kept[:common] = waves[:common]
    return (np.fft.irfft(kept, count) * (count / len(sound))).astype(np.float32)
