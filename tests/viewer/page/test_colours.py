"""What the page draws can be read and told apart, by whoever looks at it."""

import re
from importlib import resources

import numpy as np
import pytest

from foveate.viewer import page

ASSETS = resources.files(page).joinpath("assets")

SEEN_BY = {
    "most": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
"""What linear red, green and blue are to them (Machado, Oliveira and Fernandes 2009, severity 1)."""


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_can_be_read(theme: str) -> None:
    """A contrast of at least 4.5 to 1 (WCAG AA) of all texts, on all that they stand on."""
    style = ASSETS.joinpath("base.css").read_text()
    block = re.findall(r":root[^{]*\{([^}]*)\}", style)[["light", "dark"].index(theme)]
    colours = dict(re.findall(r"--(\w+): (#\w{6});", block))
    for text in ("text", "muted", "query", "key", "found"):
        for ground in ("ground", "surface", "raised", "soft"):
            light, dark = sorted([luminance(colours[text]), luminance(colours[ground])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN_BY)
def test_the_scale_goes_in_even_steps_of_lightness(theme: str, eyes: str) -> None:
    """From the ground of the theme on, so that weights can be compared in grey print and by colour-blind eyes."""
    (stops,) = re.findall(rf"{theme}: \[(.*?)\]", ASSETS.joinpath("colours.js").read_text())
    channels = np.array([[int(stop[place : place + 2], 16) for place in (1, 3, 5)] for stop in stops.split('"')[1::2]])
    light = np.where(channels <= 0.04045 * 255, channels / 255 / 12.92, ((channels / 255 + 0.055) / 1.055) ** 2.4)
    seen = (light @ np.array(SEEN_BY[eyes]).T).clip(0, 1)
    lightness = 116 * np.cbrt(seen @ [0.2126, 0.7152, 0.0722]) - 16
    steps = np.diff(lightness) * (-1 if theme == "light" else 1)
    assert len(steps) == 8
    assert steps.min() > 0.7 * steps.mean()
    assert steps.max() < 1.3 * steps.mean()
