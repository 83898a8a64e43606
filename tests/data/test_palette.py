"""Codebooks, palettes and the hidden places of images that are drawn."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foveate.contracts import IGNORE
from foveate.data.codebook import learn_codebook, quantize
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.palette import Palette, learn_palette, patches
from foveate.data.images.scenes import Sprite
from foveate.data.sources.emoji_drawings import LONGEST, SIDE, compose, pair_part
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError
from foveate.forms.drawing import Caption, Drawing
from foveate.forms.processor import Processor, load_processor


def test_a_codebook_finds_clusters() -> None:
    generator = np.random.default_rng(1)
    centres = np.array([[0, 0, 0], [200, 10, 10], [10, 200, 100], [90, 90, 255]])
    vectors = (centres[generator.integers(4, size=500)] + generator.integers(-5, 6, (500, 3))).clip(0, 255)
    codes = learn_codebook(vectors.astype(np.uint8), 4)
    found = codes[quantize(centres, codes)]
    assert np.abs(found - centres).max() < 4


def test_few_different_vectors_are_their_own_codes() -> None:
    vectors = np.array([[1, 2], [3, 4], [1, 2]], np.uint8)
    codes = learn_codebook(vectors, 7)
    assert codes.tolist() == [[1, 2], [3, 4]]
    assert quantize(vectors, codes).tolist() == [0, 1, 0]


@pytest.mark.parametrize("patch", [1, 3])
def test_a_palette_gives_back_what_it_can(patch: int) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (3, 2, 6, 6)).astype(np.uint8)
    palette = learn_palette(pixels, patch, 1000)
    tokens = palette.encode(pixels)
    assert tokens.shape == (3, (6 // patch) ** 2)
    assert np.array_equal(palette.decode(tokens), pixels.transpose(0, 2, 3, 1))


def test_patches_are_row_by_row() -> None:
    pixels = np.arange(16).reshape(1, 1, 4, 4)
    assert patches(pixels, 2).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


@pytest.fixture
def processor() -> Processor:
    pixels = np.random.default_rng(3).integers(0, 256, (2, 3, 8, 8)).astype(np.uint8)
    words = train_words(["a red dog", "a red cat"] * 2, 100)
    return Processor(Caption(tokenizer=words), Drawing(learned=learn_palette(pixels, 2, 13), tokenizer=words))


def image(caption: str, seed: int) -> CaptionedImage:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    return CaptionedImage(f"image {seed}", (caption,), lambda: PIL.Image.fromarray(pixels))


def test_hidden_places_alone_have_labels(processor: Processor, tmp_path: Path) -> None:
    prepared = processor.prepare(Dataset("images", [image("a red dog", 1), image("a cat", 2)] * 20))
    batch = processor.batch([*prepared], np.random.default_rng(1))
    hidden = batch.inputs["image"] == len(processor.writes.palette.codes)
    assert ((batch.labels != IGNORE) == hidden).all()
    counts = hidden.sum(1)
    assert counts.min() >= 1
    assert counts.max() >= 15
    assert counts.float().mean() == pytest.approx(16 * 2 / np.pi, abs=1.0)
    whole = batch.inputs["image"].where(~hidden, batch.labels)
    assert (whole[0].numpy() == prepared[0].target).all()
    assert (batch.inputs["lengths"] == 1).sum() < 12  # a tenth of the captions is left out
    for name, write in processor.files().items():
        write(tmp_path / name)
    loaded = load_processor(Caption, Drawing, tmp_path, lambda folder: {})
    assert loaded.writes.palette == processor.writes.palette
    assert loaded.sizes() == {"vocabulary": len(processor.reads.tokenizer), "codes": 13, "side": 4}
    again = processor.batch([*prepared], None)
    assert (again.inputs["image"] == processor.batch([*prepared], None).inputs["image"]).all()


def test_held_out_pairs_are_in_no_training_drawing() -> None:
    square = np.full((9, 6, 4), 255, np.uint8)
    drawings = [Sprite(f"thing {number}", "", "", (square,)) for number in range(34)]
    numbers = {drawing.name: number for number, drawing in enumerate(drawings)}
    for part in ("train", "dev", "test"):
        for scene in (compose(drawings, part, number) for number in range(50)):
            chosen = [numbers[thing.drawing.name] for thing in scene.things]
            pairs = {pair_part(a, b) for place, a in enumerate(chosen) for b in chosen[:place]}
            assert pairs <= {"train", part}
            assert part in pairs or (part == "train" and len(chosen) == 1)
            for left, top, right, bottom in (thing.box for thing in scene.things):
                assert (right - left, bottom - top) == (round(LONGEST * 6 / 9), LONGEST)
                assert min(left, top) >= 0
                assert max(right, bottom) <= SIDE


def test_a_palette_whose_codes_do_not_fit_its_patches() -> None:
    for codes in (((0.0,) * 12, (0.0,) * 11), ((0.0,) * 3,), ()):
        with pytest.raises(UserError, match=r"^each code needs 12 numbers$"):
            Palette(8, 3, 2, codes).check()
    with pytest.raises(UserError, match=r"^patches of 3 pixels do not fit into 8$"):
        Palette(8, 3, 3, ((0.0,) * 27,)).check()
