"""Sights whose weights are known: heads such as trained models have them, on texts, an image and a sound."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.attention import PointScore, Soft, attend, grid_places, point_queries
from foveate.sight import Sight, Windows, from_weights, look
from foveate.viewer.beside import place_beside
from foveate.viewer.difference import subtract
from foveate.viewer.document import Document, make_document, set_units
from foveate.viewer.measures import join_measures
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Audio, Image


def words(text: str) -> list[str]:
    return text.split()


STORY = words(
    "When the old lighthouse keeper died , nobody in the village wanted the job , so they gave it to the girl who "
    "mended the nets . She climbed the hundred and twelve steps each evening , lit the lamp , and wrote down in a "
    "small blue book what she had seen : ships , seals , once a whale , and every night the same light answering from "
    "across the water ."
)

SOURCE = words("▁The ▁small ▁dog ▁that ▁chas ed ▁the ▁cat ▁was ▁tired ▁. </s>")
TARGET = words("<s> ▁Der ▁kleine ▁Hund , ▁der ▁die ▁Katze ▁jag te , ▁war ▁müde ▁.")

CAPTION = words("<s> a red boat on calm water under the evening sun </s>")

SPOKEN = words("<|en|> the lamp is lit and the water answers <|end|>")

EVIL = [
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=document.title='ran'>",
    "--><!--<script>",
    "\"quotes' and \\ backslash",
    "&lt;entity&gt;",
    "{{script}}",
    "\u202eoverridden\u202c",
    "\x00\x07\x1b[31m",
    "שלום",
    "👩‍🔬",
    "\ud83d",  # half an emoji, as a tokenizer of bytes may give it
    "\ufe0f",
    "\u2028\n\t ",
    "",
]


class Top(NamedTuple):
    weights: Tensor
    keys: Tensor


class FakeSite:
    """A map that is all there, with the measures that a page asks for."""

    def __init__(
        self, name: str, weights: Float[Tensor, "B H T S"], windows: tuple[Windows, Windows] | None = None
    ) -> None:
        self.name, self.dense, self.windows = name, weights, windows
        self.asked: list[str] = []

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return tuple(self.dense.shape)  # type: ignore[return-value]

    def weights(self) -> Tensor:
        self.asked.append("weights")
        return self.dense

    def measure(self, *names: str, top: int) -> None:
        """Nothing to prepare."""

    def top(self, k: int) -> Top:
        self.asked.append("top")
        weights, keys = self.dense.topk(k, -1)
        return Top(weights, torch.where(weights > 0, keys, -1))

    def entropy(self) -> Tensor:
        return -torch.xlogy(self.dense, self.dense).sum(-1)

    def pooled(self, rows: int, columns: int) -> Tensor:
        _, _, queries, keys = self.dense.shape
        over, along = np.arange(rows) * queries // rows, np.arange(columns) * keys // columns
        sums = np.add.reduceat(np.add.reduceat(self.dense.double().numpy(), along, 3), over, 2)
        return torch.from_numpy(sums / np.diff([*over, queries])[:, None])


class FakeSight:
    """Sites by name."""

    def __init__(self, **maps: Tensor) -> None:
        self.maps = {name: FakeSite(name, weights) for name, weights in maps.items()}

    @property
    def sites(self) -> list[str]:
        return list(self.maps)

    def __getitem__(self, name: str) -> FakeSite:
        return self.maps[name]


def sight_of(maps: dict[str, Tensor]) -> FakeSight:
    return FakeSight(**maps)


def heads(kinds: str, queries: int, keys: int, causal: bool, seed: int) -> Float[Tensor, "1 H T S"]:
    """Heads of the kinds that a text names by a letter each: p previous place, s same, f first, n near, b blocks,
    c a few certain keys, d decaying, r like content, u undecided."""
    random = torch.Generator().manual_seed(seed)
    place, target = torch.arange(queries)[:, None] * (keys / queries), torch.arange(keys)[None]
    content = torch.randint(0, 9, (max(queries, keys),), generator=random)
    found = []
    for kind in kinds:
        noise = torch.randn(queries, keys, generator=random)
        width = 1 + 3 * torch.rand(1, generator=random)
        scores = {
            "p": 6.0 * (target == (place - 1).round()),
            "s": 5.0 * (target == place.round()),
            "f": 5.0 * (target == 0) + 0.5 * noise,
            "n": -((target - place) ** 2) / (2 * width**2),
            "b": 3.5 * ((target // 7) == (place // 7)),
            "c": 4.0 * (content[:keys] == 3)[None] + 0.0 * place,
            "d": -(place - target).abs() / (6 * width),
            "r": 4.5 * (content[:queries, None] == content[None, :keys]),
            "u": 0.7 * noise,
        }[kind]
        found.append(scores + 0.6 * noise + 1.2 * (target == 0))
    scores = torch.stack(found)
    if causal:
        scores = scores.masked_fill(target > place, -torch.inf)
    return scores.softmax(-1)[None]


def text_model(layers: int = 6, kinds: str = "psfnbcdu", tokens: int | None = None) -> FakeSight:
    """A causal model of this many layers, on a story or on this many tokens."""
    count = len(STORY) if tokens is None else tokens
    turned = (kinds[layer % len(kinds) :] + kinds[: layer % len(kinds)] for layer in range(layers))
    return sight_of({f"h.{layer}.attn": heads(each, count, count, True, layer) for layer, each in enumerate(turned)})


def translator() -> FakeSight:
    maps = {}
    for layer in range(3):
        maps[f"encoder.{layer}.self"] = heads("nsbr", len(SOURCE), len(SOURCE), False, layer)
    for layer in range(3):
        maps[f"decoder.{layer}.self"] = heads("pfdu", len(TARGET), len(TARGET), True, 7 + layer)
        maps[f"decoder.{layer}.cross"] = heads("nncu", len(TARGET), len(SOURCE), False, 17 + layer)
    return sight_of(maps)


def boat() -> Float[np.ndarray, "224 224 3"]:
    """A red boat on water under the sun, painted with a few formulas."""
    y, x = np.mgrid[0:224, 0:224] / 224
    sky = np.stack([0.95 - 0.5 * (0.55 - y), 0.72 - 0.3 * (0.55 - y), 0.55 + 0.5 * (0.55 - y)], 2)
    waves = 0.05 * np.sin(60 * y + 5 * np.sin(9 * x))
    water = np.stack([0.16 + waves, 0.36 + waves, 0.5 + waves], 2)
    picture = np.where((y > 0.58)[..., None], water, sky)
    picture[(x - 0.74) ** 2 + (y - 0.3) ** 2 < 0.007] = (1.0, 0.93, 0.62)
    hull = (y > 0.56) & (y < 0.68) & (np.abs(x - 0.36) < 0.24 - (y - 0.56))
    picture[hull] = (0.74, 0.13, 0.12)
    sail = (y > 0.2) & (y < 0.54) & (x > 0.36) & (x < 0.36 + 0.55 * (y - 0.2))
    picture[sail] = (0.97, 0.95, 0.9)
    picture[(np.abs(x - 0.35) < 0.006) & (y > 0.16) & (y < 0.58)] = (0.3, 0.2, 0.15)
    return (255 * picture.clip(0, 1)).astype(np.uint8)


def image_model() -> FakeSight:
    """A patch model of 14 x 14 patches after one token, and a captioner that looks at them."""
    y, x = (part.flatten() for part in torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij"))
    spots = torch.tensor(
        [[7, 7], [8, 5], [8.5, 5], [8, 4], [9, 6], [10, 9], [11, 8], [5, 8], [4, 10], [2, 7], [4, 10], [7, 7]]
    )
    random = torch.Generator().manual_seed(5)
    maps = {}
    for layer in range(3):
        each = []
        for head in range(3):
            near = -((y[:, None] - y) ** 2 + (x[:, None] - x) ** 2) / (1.5 + 4 * head)
            scores = torch.zeros(197, 197)
            scores[1:, 1:] = near if head < 2 else 2.5 * torch.exp(-((y - 8) ** 2 + (x - 5) ** 2) / 9)
            scores[0, 1:] = 2.5 * torch.exp(-((y - 7) ** 2 + (x - 5) ** 2) / 14)
            each.append(scores + 0.4 * torch.randn(197, 197, generator=random))
        maps[f"blocks.{layer}.attn"] = torch.stack(each).softmax(-1)[None]
        scores = torch.stack([-((y - spot[0]) ** 2 + (x - spot[1]) ** 2) / (2 + 2 * layer) for spot in spots])
        scores = torch.cat([torch.full((len(spots), 1), -1.5), scores], 1)
        noise = 0.4 * torch.randn(3, *scores.shape, generator=random)
        maps[f"caption.{layer}.cross"] = (scores + noise).softmax(-1)[None]
    return sight_of(maps)


WINDOWS = [Windows(30, 22, (7, 7), (3, 2)), Windows(30, 22, (12, 12)), Windows(30, 22, (12, 12), (5, 6))]
"""Neither size divides the picture; of the first a page keeps every weight, of the others some of each row."""


def same_window(layout: Windows) -> Bool[Tensor, "P P"]:
    """Which patches may look at which, by their rows and columns alone: what was rolled around an edge stands apart."""
    parts = []
    for count, size, shift in zip((layout.height, layout.width), layout.window, layout.shift, strict=True):
        padded, place = count + -count % size, torch.arange(count)
        parts.append(torch.stack([(place - shift) % padded // size, place < shift], 1))
    down = parts[0].repeat_interleave(layout.width, 0)
    own = torch.cat([down, parts[1].repeat(layout.height, 1)], 1)
    return (own[:, None] == own).all(-1)


def windowed_model() -> FakeSight:
    """Layers that look within windows of a picture, put back in place."""
    sight = FakeSight()
    for layer, layout in enumerate(WINDOWS):
        scores = 2 * torch.randn(1, 2, 660, 660, generator=torch.Generator().manual_seed(layer))
        weights = scores.masked_fill(~same_window(layout), -torch.inf).softmax(-1)
        sight.maps[f"blocks.{layer}.attn"] = FakeSite(f"blocks.{layer}.attn", weights, (layout, layout))
    return sight


def spectrogram() -> Float[np.ndarray, "80 300"]:
    """Words spoken: bands of harmonics with silence between."""
    time, pitch = np.arange(300)[None], np.arange(80)[:, None]
    voice = np.zeros((80, 300))
    for start, end, base in ((12, 58, 7), (70, 110, 9), (122, 190, 6), (205, 280, 8)):
        spoken = np.clip(np.minimum(time - start, end - time) / 8, 0, 1)
        for harmonic in range(1, 9):
            centre = base * harmonic + 2 * np.sin((time - start) / 11)
            voice += spoken * np.exp(-((pitch - centre) ** 2) / 2) / harmonic**0.7
    return voice + 0.06 * np.random.default_rng(3).random((80, 300))


def speech_model() -> FakeSight:
    maps = {}
    for layer in range(2):
        maps[f"encoder.{layer}.self_attn"] = heads("nbdu", 150, 150, False, layer)
        maps[f"decoder.{layer}.self_attn"] = heads("pfds", len(SPOKEN), len(SPOKEN), True, 5 + layer)
        centres = torch.linspace(8, 138, len(SPOKEN))[:, None]
        near = torch.stack([-((torch.arange(150) - centres) ** 2) / width for width in (30.0, 90.0, 300.0, 2000.0)])
        maps[f"decoder.{layer}.encoder_attn"] = near.softmax(-1)[None]
    return sight_of(maps)


def story_page() -> Document:
    return make_document(text_model(), STORY, title="A story, six layers of eight heads", notes=["Made for the tests."])


def translation_page() -> Document:
    tokens = {"encoder*": SOURCE, "decoder*self": TARGET, "*cross": (TARGET, SOURCE)}
    return make_document(translator(), tokens, title="The small dog that chased the cat was tired.")


def image_page() -> Document:
    seen = Image.of(boat(), 14, 14, ["[CLS]"])
    return make_document(image_model(), {"blocks*": seen, "caption*": (CAPTION, seen)}, title="A boat in the evening")


POINT_GRIDS = ((8, 8), (4, 4))


class PointModel(nn.Module):
    """Two heads of five queries, each of which looks at three points of each of two feature maps: head 0 of query q at
    the height (q + 1) / 6, head 1 partly outside of the image."""

    attends = True

    def forward(self) -> Tensor:
        across = torch.linspace(0.1, 0.9, 6).expand(5, 6)
        down = ((torch.arange(5.0) + 1) / 6)[:, None].expand(5, 6)
        places = torch.stack([torch.stack([across, down], -1), torch.stack([across + 0.5, down], -1)])[None]
        logits = torch.arange(6.0).expand(1, 2, 5, 6) / 2
        values = torch.randn(1, 2, 80, 3, generator=torch.Generator().manual_seed(0))
        queries, keys = point_queries(places, logits, POINT_GRIDS), grid_places(POINT_GRIDS, values.device)[None, None]
        return attend(queries, keys, values, score=PointScore(POINT_GRIDS), select=Soft(torch.zeros(())))


def points_sight() -> Sight:
    model = PointModel()
    with torch.inference_mode(), look(model) as sight:
        model()
    return sight


def measures_page() -> Document:
    """Weights of a translator, and ten times these as if they were sizes."""
    weights, sizes = translation_page(), translation_page()
    for panel in sizes.sites:
        panel.shows, panel.maps, panel.rows.weights = "values", 10 * panel.maps, 10 * panel.rows.weights
    sizes.sites = [panel for panel in sizes.sites if not panel.rollout]
    set_units(sizes.sites)
    return join_measures([weights, sizes])


def difference_page() -> Document:
    """A story less the same with another word."""
    looks = []
    for seed, name in enumerate(("girl", "woman")):
        weights = heads("pd", 12, 12, causal=True, seed=seed)
        names = [*STORY[:5], name, *STORY[6:12]]
        looks.append(LookResult(from_weights({"h.0.attn": weights}), {"*": names}, name))
    return subtract(*looks).document()


def points_page() -> Document:
    return make_document(points_sight(), ([*"abcde"], Image.of(boat(), 8, 8)), title="A boat at some points")


def windows_page() -> Document:
    return make_document(windowed_model(), Image.of(boat(), 30, 22), title="A boat through windows")


def sound_page() -> Document:
    heard = Audio.of(spectrogram(), 6.0)
    tokens = {"encoder*": heard, "decoder*self_attn": SPOKEN, "*encoder_attn": (SPOKEN, heard)}
    return make_document(speech_model(), tokens, title="Six seconds of speech")


def long_page(layers: int, tokens: int) -> Document:
    names = [STORY[place % len(STORY)] for place in range(tokens)]
    return make_document(text_model(layers, "psfnbcdurnpd", tokens), names, title=f"{tokens} tokens of a story")


def evil_page() -> Document:
    weights = torch.randn(1, 2, len(EVIL), len(EVIL)).softmax(-1)
    return make_document(sight_of({"<b>h</b>.0.attn": weights}), EVIL, title=EVIL[0], notes=EVIL)


def even_page() -> Document:
    """A causal head with nearly the same weight on each earlier token, and one that looks at itself."""
    random = torch.Generator().manual_seed(1)
    scores = torch.stack([0.1 * torch.randn(20, 20, generator=random), 6 * torch.eye(20)])
    later = torch.ones(20, 20).triu(1).bool()
    return make_document(sight_of({"h.0.attn": scores.masked_fill(later, -torch.inf).softmax(-1)[None]}), STORY[:20])


def single_page() -> Document:
    """One head alone, as of a model of Bahdanau et al."""
    return make_document(sight_of({"decoder.cross": heads("n", 14, 12, False, 3)}), (TARGET, SOURCE))


def few_page() -> Document:
    """Two heads, which have room for their tokens."""
    return make_document(sight_of({"decoder.cross": heads("nr", 14, 12, False, 3)}), (TARGET, SOURCE))


def odd_page() -> Document:
    """Emoji, a decomposed umlaut and a long text at layers with long names; and a portrait of one column."""
    portrait = Image.of(np.zeros((400, 100, 3), np.uint8), 8, 1)
    weights = torch.randn(1, 2, 3, 3).softmax(-1)
    maps = {
        "stages.10.blocks.11.parts.12.attn": weights,
        "cross": torch.randn(1, 1, 3, 8).softmax(-1),
        "stages.11.blocks.12.parts.13.attn": weights,
    }
    texts = ["😀" * 25, "mu\u0308de", "x" * 300]
    return make_document(sight_of(maps), {"stages*": texts, "cross": (texts, portrait)}, title="Odd")


PAIR = words("[CLS] the boat is red [SEP] a red ship sails [SEP]")


def pair_page() -> Document:
    """Two sentences that one encoder reads, with separators."""
    maps = {f"h.{layer}.attn": heads("nrb", len(PAIR), len(PAIR), False, layer) for layer in range(2)}
    return make_document(sight_of(maps), PAIR, title="the boat is red / a red ship sails")


def two_page() -> Document:
    """The translation, and the same in capitals with the heads in another order."""
    second = translation_page()
    for panel in second.sites:
        for name in ("queries", "keys"):
            side = getattr(panel, name)
            setattr(panel, name, replace(side, labels=tuple(label.upper() for label in side.labels)))
        panel.rows.weights, panel.maps = panel.rows.weights[::-1].copy(), panel.maps[::-1].copy()
    return place_beside(translation_page(), second)
