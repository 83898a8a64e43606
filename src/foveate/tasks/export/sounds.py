"""Models of sounds as Hugging Face folders: those that write what is said, and those that label sounds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveate.data.sounds.filter_banks import RATE as BANK_RATE
from foveate.data.sounds.whisper_features import RATE, SECONDS
from foveate.errors import UserError
from foveate.files import written
from foveate.forms.ctc import SpelledTranscript
from foveate.forms.sound import SoundClip
from foveate.forms.waves import Waves
from foveate.forms.whisper import GENERATION, WhisperSound, WhisperText
from foveate.interop.layout import written_labels
from foveate.interop.preprocessors import PREPROCESSOR
from foveate.interop.public_folder import layout_for, write_folder
from foveate.tasks.skill import Skill

TASKS = ("transcribe", "classify-sound")

CLASSES = {
    "Wav2Vec2FeatureExtractor": {"words": "AutoModelForCTC", "label": "AutoModelForAudioClassification"},
    "ASTFeatureExtractor": {"label": "AutoModelForAudioClassification"},
    "WhisperFeatureExtractor": {"words": "AutoModelForSpeechSeq2Seq"},
}
"""What transformers opens a model with, by what it predicts."""


def exports_sounds(skill: Any) -> bool:
    """Whether a skill writes what is said in sounds, or labels them."""
    return isinstance(skill, Skill) and skill.task.name in TASKS


def export_sounds(skill: Skill, folder: Path) -> str:
    """Write a model that transformers loads with the same logits; returns the class that loads it.

    Raises UserError for a family that transformers does not have, and for a model with spectrograms of our own.
    """
    family, config = str(skill.description["family"]), skill.model.config
    layout, reads, writes = layout_for(family, config), skill.processor.reads, skill.processor.writes
    settings = _preprocessing(reads)
    if settings is None:
        raise UserError(
            f"this {skill.recipe.model} reads spectrograms that transformers does not make: one that began from a "
            "Hugging Face folder is exported (--from)"
        )
    write_folder(folder, family, skill.model.to("cpu"), _more(writes))
    _write(folder / PREPROCESSOR, {"feature_extractor_type": layout.feature_extractor, **settings})
    if isinstance(writes, WhisperText):
        writes.tokenizer.config = {**writes.settings}
        writes.tokenizer.write_folder(folder)
        _write(folder / GENERATION, writes.generation)
    elif isinstance(writes, SpelledTranscript):
        writes.spelling.write_folder(folder)
    return CLASSES[layout.feature_extractor][skill.task.head or "label"]


def _more(writes: Any) -> dict[str, Any]:
    """What `config.json` says of the outputs."""
    if isinstance(writes, WhisperText):
        return dict(writes.config)
    if isinstance(writes, SpelledTranscript):
        return {"pad_token_id": writes.spelling.blank}
    return written_labels([*writes.labels], writes.scores)


def _preprocessing(reads: Any) -> dict[str, Any] | None:
    """How sounds become inputs, as a feature extractor of transformers reads it; None for spectrograms of our own."""
    if isinstance(reads, WhisperSound):
        sizes = {"feature_size": reads.features.bands, "n_fft": 400, "hop_length": 160, "chunk_length": SECONDS}
        return {**sizes, "sampling_rate": RATE, "n_samples": RATE * SECONDS, "nb_max_frames": SECONDS * 100}
    if isinstance(reads, Waves):
        own = {"sampling_rate": reads.samples, "do_normalize": reads.standard, "return_attention_mask": True}
        return {"feature_size": 1, "padding_value": 0.0, **own}
    if isinstance(reads, SoundClip) and reads.banks is not None:
        numbers = {"mean": reads.banks.mean, "std": reads.banks.spread, "do_normalize": True}
        return {"sampling_rate": BANK_RATE, "num_mel_bins": reads.banks.bands, "max_length": reads.frames, **numbers}
    return None


def _write(path: Path, values: Mapping[str, Any]) -> None:
    with written(path) as file:
        file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
