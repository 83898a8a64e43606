"""Makes sound files for tests."""

import struct

import numpy as np


def tone(seconds: float, rate: int, hertz: float = 440.0) -> np.ndarray:
    """A sine wave with an amplitude of a half."""
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def wav(samples: np.ndarray, rate: int, bits: int = 16, code: int = 1, size: int | None = None) -> bytes:
    """A WAV file of samples (N,) or (N, channels). `size` is what the header says about the length of the samples."""
    samples = samples[:, None] if samples.ndim == 1 else samples
    if code == 3:
        data = samples.astype(f"<f{bits // 8}").tobytes()
    elif bits == 8:
        data = np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    else:
        wide = np.round(samples * (2**31 - 1)).astype("<i4").reshape(-1, 1).view(np.uint8)
        data = wide[:, 4 - bits // 8 :].tobytes()
    channels, width = samples.shape[1], bits // 8
    header = struct.pack("<HHIIHH", code, channels, rate, rate * channels * width, channels * width, bits)
    body = b"fmt " + struct.pack("<I", len(header)) + header
    body += b"LIST" + struct.pack("<I", 3) + b"odd\0"
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
