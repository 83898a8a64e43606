"""The viewer of transformers' speech models that read a spectrogram, such as Whisper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from foveate.data.sounds.files import Waveform, decode_sound
from foveate.errors import UserError
from foveate.forms.inputs import check_length, require_file
from foveate.forms.naming import cut_padding, single_input_names
from foveate.interop.huggingface import LOCAL_ONLY, import_transformers, short_errors
from foveate.interop.preprocessors import OF_SOUNDS, read_preprocessor
from foveate.sight.measured_look import finished
from foveate.tasks.viewers.one_pass import look_and_predict
from foveate.tasks.viewers.texts import FolderTokenizer, generate_and_look, generates
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import Audio


class SoundViewer:
    """A model that reads the spectrogram of a sound."""

    takes: InputKind = "audio"

    def __init__(self, model: Any, folder: Path) -> None:
        self.model, self.tokenizer = model, FolderTokenizer(folder)
        self.preprocessor, self.name = SoundPreprocessor(model.config, folder), f"{type(model).__name__} from {folder}"

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        file = require_file(given, self.name, self.takes)
        sound = decode_sound(file.data, file.name)
        seconds, longest = sound.seconds, self.preprocessor.longest
        if longest is not None and seconds > longest:
            raise UserError(
                f"{file.name} lasts {seconds:,.1f} seconds, but {self.name} accepts {longest:g} at most: cut it"
            )
        features = self.preprocessor.prepare(sound)
        spectrogram = self.preprocessor.spectrogram(features[0])
        check_length(spectrogram.shape[1], max_length, "the spectrogram", "frames")
        heard = Audio.of(spectrogram, seconds, padded=longest)
        inputs = {"input_features": features.to(self.model.device, self.model.dtype)}
        if generates(self.model):
            sight, names, notes = generate_and_look(
                self.model, inputs, lambda count: heard, self.tokenizer, sites, measure
            )
        else:
            sight, notes = look_and_predict(self.model, inputs, sites, measure)
            names = single_input_names(sight, lambda count: heard)
        sight = cut_padding(finished(sight, measure), names)
        return LookResult(sight, names, file.name, [self.name, *notes, *sight.notes])


class SoundPreprocessor:
    """Converts a sound into a model's input, with the folder's own feature extractor, or with Whisper's."""

    def __init__(self, config: Any, folder: Path) -> None:
        transformers = import_transformers()
        found, where = read_preprocessor(folder, OF_SOUNDS)
        with short_errors(f"{where} cannot be used"):
            if found:
                self.extractor = transformers.AutoFeatureExtractor.from_pretrained(folder, **LOCAL_ONLY)
            else:
                self.extractor = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins)
            self.bands = int(self.extractor.feature_size)
            chunk = getattr(self.extractor, "chunk_length", None)
            self.longest = None if chunk is None else float(chunk)  # Whisper and similar models pad to this duration

    def prepare(self, sound: Waveform) -> Float[Tensor, "1 ..."]:
        """The model's input: (1, bands, frames) for Whisper and similar models, (1, frames, bands) for most others."""
        with short_errors("the sound cannot be processed"):
            wanted = self.extractor.sampling_rate
            return self.extractor(sound.at(wanted).samples, sampling_rate=wanted, return_tensors="pt")["input_features"]

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
