"""What a folder says of images and sounds is read from a file of its own, and from a part of that of a whole processor,
as transformers 5 writes it."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import foveate
from foveate.errors import UserError
from foveate.forms.public_image import PublicImage
from foveate.forms.sound_files import read_banks
from foveate.forms.waves import SpokenWaves
from foveate.forms.whisper import WhisperSound
from foveate.interop.preprocessors import OF_IMAGES, OF_SOUNDS, PREPROCESSOR, PROCESSOR
from foveate.models.speech.whisper import WhisperConfig
from foveate.tasks.viewers.images import ImagePreprocessor
from foveate.tasks.viewers.sounds import SoundPreprocessor

IMAGES = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 14},
    "crop_size": {"height": 13, "width": 13},
    "image_mean": [0.1, 0.2, 0.3],
    "image_std": [0.5, 0.6, 0.7],
    "resample": 3,
}

WAVES = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "do_normalize": False, "sampling_rate": 16_000}

BANKS = {"mean": -3.5, "std": 2.5, "num_mel_bins": 17, "max_length": 19}

WHISPER = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 11}


def _pixels(folder: Path) -> Any:
    pytest.importorskip("transformers")
    found = ImagePreprocessor(SimpleNamespace(image_size=13), folder)
    return found.mean.tolist(), found.spread.tolist()


def _bands(folder: Path) -> Any:
    pytest.importorskip("transformers")
    return SoundPreprocessor(SimpleNamespace(num_mel_bins=80), folder).bands


READERS: dict[str, tuple[tuple[str, ...], dict[str, Any], Callable[[Path], Any]]] = {
    "images": (OF_IMAGES, IMAGES, lambda folder: PublicImage.of_folder(folder, 224, 3)),
    "images of transformers": (OF_IMAGES, IMAGES, _pixels),
    "waves": (OF_SOUNDS, WAVES, SpokenWaves.of_folder),
    "filter banks": (OF_SOUNDS, BANKS, lambda folder: read_banks(folder, SimpleNamespace(bands=17, frames=19))),
    "Whisper": (OF_SOUNDS, WHISPER, lambda folder: WhisperSound.of_folder(folder, WhisperConfig(11, 9))),
    "sounds of transformers": (OF_SOUNDS, WHISPER, _bands),
}


def _equal(one: Any, other: Any) -> bool:
    """With arrays that are equal, number by number."""
    fields = [vars(each) if hasattr(each, "__dict__") else {"": each} for each in (one, other)]
    return fields[0].keys() == fields[1].keys() and all(
        np.array_equal(value, fields[1][name]) if isinstance(value, np.ndarray) else _same(value, fields[1][name])
        for name, value in fields[0].items()
    )


def _same(one: Any, other: Any) -> bool:
    return _equal(one, other) if hasattr(one, "__dict__") and not isinstance(one, type) else bool(one == other)


@pytest.mark.parametrize("name", READERS)
def test_a_part_of_a_processor_says_what_a_file_of_its_own_does(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, values, read = READERS[name]
    folders = [tmp_path / each for each in ("alone", *parts, "both")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / PREPROCESSOR).write_text(json.dumps(values))
    for folder, part in zip(folders[1:], (*parts, parts[0]), strict=True):
        (folder / PROCESSOR).write_text(json.dumps({"processor_class": "X", part: values}))
    (folders[-1] / PREPROCESSOR).write_text(json.dumps({"size": 5, "feature_size": 3, "mean": 9}))
    first, *others = [read(folder) for folder in folders]
    assert all(_equal(first, other) for other in others)
    assert "has no" not in capsys.readouterr().err


@pytest.mark.parametrize("name", READERS)
def test_a_part_that_is_no_table_is_refused(name: str, tmp_path: Path) -> None:
    parts, _, read = READERS[name]
    (tmp_path / PROCESSOR).write_text(json.dumps({parts[0]: [1]}))
    with pytest.raises(UserError, match=f"{PROCESSOR}: {parts[0]} holds no table of settings"):
        read(tmp_path)


def test_no_other_module_names_the_files() -> None:
    root = Path(foveate.__file__).parent
    naming = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if PREPROCESSOR in path.read_text()}
    assert naming == {"interop/preprocessors.py", "files.py"}
