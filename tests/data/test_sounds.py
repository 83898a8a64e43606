"""Sound files and their spectrograms, against transformers' Whisper and values by hand."""

import builtins
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import transformers
from sound_files import tone, wav

from foveate.data.sounds import files as sounds
from foveate.data.sounds.cutting import cut_at_silences
from foveate.data.sounds.files import Waveform, decode_sound, read_sound, resample
from foveate.data.sounds.spectrograms import LogMel, SpecAugment, normalize
from foveate.errors import UserError


@pytest.mark.parametrize(("bits", "code"), [(8, 1), (16, 1), (24, 1), (32, 1), (32, 3), (64, 3)])
def test_wav_of_every_width(bits: int, code: int) -> None:
    """Stereo is averaged: a channel of silence halves the other."""
    channels = np.stack([tone(0.1, 8000), np.zeros(800)], 1)
    sound = decode_sound(wav(channels, 8000, bits, code), "tone.wav")
    assert (len(sound.samples), sound.rate, sound.seconds) == (800, 8000, 0.1)
    assert np.allclose(sound.samples, tone(0.1, 8000) / 2, atol=1 / 100 if bits == 8 else 1 / 30_000)


def test_wav_with_the_extensible_header() -> None:
    file = io.BytesIO()
    soundfile.write(file, tone(0.1, 8000), 8000, format="WAVEX", subtype="PCM_24")
    assert np.allclose(decode_sound(file.getvalue(), "x.wav").samples, tone(0.1, 8000), atol=1e-6)


def test_wav_from_a_pipe_does_not_know_its_length() -> None:
    data = wav(tone(0.1, 8000), 8000, size=2**32 - 1)
    assert len(decode_sound(data, "pipe").samples) == 800
    assert len(decode_sound(data[:-2], "pipe").samples) == 799  # cut within


@pytest.mark.parametrize("kind", ["FLAC", "OGG"])
def test_other_formats_by_the_extra(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    soundfile.write(path, np.stack([tone(0.5, 8000)] * 2, 1), 8000, format=kind)
    sound = read_sound(path)
    assert (len(sound.samples), sound.rate) == (4000, 8000)
    assert np.abs(sound.samples - tone(0.5, 8000)).mean() < 0.01


def test_hours_of_silence_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed, they are a small file; of a sound that is too long, the beginning is decoded."""
    monkeypatch.setattr(sounds, "MOST_SAMPLES", 200_000)
    monkeypatch.setattr(sounds, "AT_ONCE", 1_000)
    file = io.BytesIO()
    soundfile.write(file, np.zeros((2_000_000, 3), np.float32), 192_000, format="FLAC")
    read = []
    own = soundfile.SoundFile.read
    monkeypatch.setattr(soundfile.SoundFile, "read", lambda *args, **more: read.append(own(*args, **more)) or read[-1])
    with pytest.raises(UserError, match=r"long\.flac has more than 200,000 samples: cut it"):
        decode_sound(file.getvalue(), "long.flac")
    assert sum(map(len, read)) == 201_000


def test_other_formats_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, *rest: Any) -> Any:
        if name == "soundfile":
            raise ImportError
        return original(name, *rest)

    original = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(UserError, match=r"^x.ogg is not a .wav file; other formats .* need the extra: pip install"):
        decode_sound(b"OggS", "x.ogg")


SHORT = wav(tone(0.1, 8000), 8000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (wav(np.zeros(0), 8000), "x has no samples"),
        (wav(np.full(800, 0.2), 8000), "x is silent"),
        (wav(tone(0.1, 8000), 2**32 - 1, 8), "x claims 4,294,967,295 samples a second; the limit is 1,000,000"),
        (wav(np.array([0.1, np.nan, 0.2]), 8000, 32, 3), r"x has samples that are not numbers \(NaN or infinite\)"),
        (SHORT[:40], "x is not a .wav file of integers .* it is truncated"),
        (
            SHORT[:20] + b"\x02" + SHORT[21:],
            ".* not a .wav file .* its header says format 2, 16 bits, 1 channels, 8000",
        ),
        (wav(tone(4, 8000), 8000), "x lasts 4 seconds; the limit is 3: cut it"),
        (b"OggS and more", "x cannot be read as a sound: .*"),
        (b"", "x cannot be read as a sound: .*"),
    ],
    ids=["no samples", "silence", "rate", "NaN", "truncated", "compressed", "too long", "broken ogg", "empty"],
)
def test_what_cannot_be_used(data: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "LONGEST", 3)
    with pytest.raises(UserError, match=f"^{message}"):
        decode_sound(data, "x")


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^there is no file .*missing.wav$"):
        read_sound(tmp_path / "missing.wav")
    with pytest.raises(UserError, match=r"^could not read .*: it is a folder$"):
        read_sound(tmp_path)
    os.mkfifo(tmp_path / "pipe.wav")  # whose writer would be waited for
    with pytest.raises(UserError, match=r"^could not read .*pipe.wav: it is not a regular file$"):
        read_sound(tmp_path / "pipe.wav")
    monkeypatch.setattr(sounds, "LARGEST", 2**20)
    (tmp_path / "large.wav").write_bytes(bytes(2**20 + 1))
    with pytest.raises(UserError, match=r"large.wav has 1 MiB; the limit is 1 MiB$"):
        read_sound(tmp_path / "large.wav")


def test_resampled() -> None:
    """A tone stays the tone. What the new rate cannot hold is left out, not folded."""
    for rate, wanted in ((44_100, 16_000), (8000, 16_000)):
        high = tone(1, rate, 0.45 * rate) * (rate > wanted)
        found = resample((tone(1, rate) + high).astype(np.float32), rate, wanted)
        assert np.allclose(found, tone(1, wanted), atol=1e-3)


@pytest.mark.parametrize(("rate", "wanted"), [(48_000, 16_000), (44_100, 16_000), (11_113, 16_000), (96_001, 7_919)])
def test_a_long_sound_at_another_rate(rate: int, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prime number of samples takes no more memory than others; at its end, there is silence."""
    monkeypatch.setattr(sounds, "LONG", 1_000)
    lengths = []
    own = np.fft.rfft
    monkeypatch.setattr(np.fft, "rfft", lambda values: lengths.append(len(values)) or own(values))
    samples = tone(0.5, rate)[:-1].astype(np.float32)
    found = resample(samples, rate, wanted)
    assert len(found) == round(len(samples) * wanted / rate)
    inner = slice(len(found) // 10, -len(found) // 10)
    np.testing.assert_allclose(found[inner], tone(0.5, wanted)[: len(found)][inner], atol=0.01)
    assert max(factors(lengths[0])) < 1_000


def factors(number: int) -> list[int]:
    """Its prime factors."""
    found, prime = [1], 2
    while number > 1:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    return found


def test_spectrogram_as_whispers() -> None:
    samples = np.random.default_rng(3).normal(size=7919).astype(np.float32) * np.linspace(0, 1, 7919, dtype=np.float32)
    extractor = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    padded = np.pad(samples, (0, 16_000 - len(samples)))  # Whisper's padding is part of what it hears
    expected = extractor(padded, sampling_rate=16_000, return_tensors="np")["input_features"][0].T
    found = LogMel()(Waveform(padded, 16_000))
    assert found.shape == (100, 80)
    assert np.allclose(found / 4 + 1, expected, atol=1e-4)


def test_spectrogram_of_a_tone_at_another_rate() -> None:
    """440 Hz are 6.6 mels, and the centres of 20 bands up to 4 kHz (35.2 mels) are 1.68 mels apart."""
    log_mel = LogMel(rate=8000, bands=20)
    log_mel.check()
    spectrogram = log_mel(Waveform(tone(0.5, 44_100).astype(np.float32), 44_100))
    assert spectrogram.shape == (50, 20)
    assert set(spectrogram.argmax(1)[3:-3]) == {3}
    assert log_mel(Waveform(tone(0.01, 8000).astype(np.float32), 8000)).shape == (2, 20)  # as long as one window


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bands": 300}, "300 bands are too many for 16,000 Hz: a band has no frequency"),
        ({"step": 0.03}, "a step of 0.03 s and windows of 0.025 s do not fit 16,000 Hz"),
        ({"bands": 0}, "bands is 0, but must be at least 1"),
    ],
)
def test_spectrograms_that_cannot_be(values: dict, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        LogMel(**values).check()


def test_normalized() -> None:
    spectrogram = np.random.default_rng(5).normal(3, 2, (997, 7)).astype(np.float32)
    spectrogram[:, 2] = 5  # a band without changes
    found = normalize(spectrogram, each_band=True)
    assert np.allclose(found.mean(0), 0, atol=1e-4)
    assert np.allclose(found.std(0), [0.95, 0.95, 0, 0.95, 0.95, 0.95, 0.95], atol=0.02)
    whole = normalize(spectrogram, each_band=False)
    assert np.allclose([whole.mean(), whole.std()], [0, 0.95], atol=0.02)
    assert (whole[:, 2] > 0.5).all()


def test_masks_by_a_generator() -> None:
    """At most two stretches of time of 5 frames each and two of 3 bands, drawn by the generator alone."""
    spectrogram = np.ones((53, 17), np.float32)
    augment = SpecAugment()
    found = [augment(spectrogram, np.random.default_rng(seed)) for seed in range(23)]
    assert np.array_equal(found[0], augment(spectrogram, np.random.default_rng(0)))
    assert len({one.tobytes() for one in found}) > 20
    frames = [(one == 0).all(1).sum() for one in found]
    bands = [(one == 0).all(0).sum() for one in found]
    assert max(frames) <= 10
    assert max(bands) <= 6
    assert min(max(frames), max(bands)) >= 3
    for one in found:  # nothing else is masked
        kept = np.outer(~(one == 0).all(1), ~(one == 0).all(0))
        assert np.array_equal(one, kept)
    assert spectrogram.all()


def test_cut_at_the_quietest_places() -> None:
    """Pauses are around 1.0 and 2.5 s; a part of at most 2 s lasts at least 1, so the one at 0.3 s is none."""
    samples = tone(4, 8000).astype(np.float32)
    for second in (0.3, 1.05, 2.5):
        samples[int(8000 * second) - 400 : int(8000 * second) + 400] = 0
    parts = cut_at_silences(Waveform(samples, 8000), 2.0)
    assert [part.seconds for part in parts] == pytest.approx([1.05, 1.45, 1.5], abs=0.05)
    assert np.array_equal(np.concatenate([part.samples for part in parts]), samples)
    assert [part.seconds for part in cut_at_silences(Waveform(samples, 8000), 4.0)] == [4.0]
