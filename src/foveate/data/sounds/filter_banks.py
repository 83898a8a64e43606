"""The filter banks of Kaldi, which the audio spectrogram Transformer reads."""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from foveate.data.sounds.files import Waveform

RATE, WINDOW, STEP, SIZE = 16_000, 400, 160, 512
"""Samples of a second, of a window, from one window to the next, and of a Fourier transform."""

EMPHASIS, LOWEST, FLOOR = 0.97, 20.0, 1.192092955078125e-07
"""Share of the sample before that is taken off, the lowest frequency in Hz, and the least power of a band."""


@dataclass(frozen=True)
class FilterBanks:
    """The logarithm of the power in bands on the mel scale, standardised by the numbers of all training sounds.

    As `kaldi.fbank` of torchaudio makes them of samples from -1 to 1, with a Hann window (Povey et al. 2011).
    """

    bands: int = 128
    mean: float = -4.2677393
    spread: float = 4.5689974
    """The mean and the deviation of AudioSet's; half as much deviation is left (Gong et al. 2021, section 2.1)."""

    def __call__(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """The spectrogram: one frame for each whole window."""
        samples = torch.from_numpy(sound.at(RATE).samples).double()
        samples = torch.nn.functional.pad(samples, (0, max(0, WINDOW - len(samples))))
        frames = samples.unfold(0, WINDOW, STEP)
        frames = frames - frames.mean(1, keepdim=True)
        frames = frames - EMPHASIS * torch.cat([frames[:, :1], frames[:, :-1]], 1)
        frames = frames * torch.hann_window(WINDOW, periodic=False, dtype=torch.float64)
        power = torch.fft.rfft(frames, SIZE).abs().square() @ _filters(self.bands)
        found: np.ndarray = self.standard(power.clamp(min=FLOOR).log()).float().numpy()
        return found

    def standard(self, banks: Tensor) -> Tensor:
        """Banks by the numbers of the training sounds."""
        return (banks - self.mean) / (2 * self.spread)

    @property
    def silence(self) -> float:
        """What shorter sounds are padded with: a bank of 0, standardised."""
        return -self.mean / (2 * self.spread)


@functools.cache
def _filters(bands: int) -> Float[Tensor, "W F"]:
    """Triangles on Kaldi's mel scale."""
    frequencies = _mel(torch.arange(SIZE // 2 + 1, dtype=torch.float64) * RATE / SIZE)
    lowest, highest = _mel(torch.tensor([LOWEST, RATE / 2], dtype=torch.float64)).tolist()
    edges = torch.linspace(lowest, highest, bands + 2, dtype=torch.float64)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies[:, None] - left) / (centre - left)
    falling = (right - frequencies[:, None]) / (right - centre)
    return torch.minimum(rising, falling).clamp(min=0)


def _mel(hertz: Tensor) -> Tensor:
    return 1127.0 * (1.0 + hertz / 700.0).log()
