"""Images of words: drawn, read from tables, and as tensors."""

from pathlib import Path

import matplotlib
import numpy as np
import PIL.Image
import pytest
import torch

from foveate.contracts import IGNORE, Batch
from foveate.data.dataset import Dataset
from foveate.data.images.scene_words import choose_scene_words
from foveate.data.images.word_distortion import distorted
from foveate.data.images.word_images import grey, word_images
from foveate.data.images.word_rendering import RenderedWord, choose_words
from foveate.data.tokens.character_tokens import find_characters
from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.forms.reading import LineText, ReadAnswer, WordLine
from foveate.special_tokens import LEARNED

START, END, UNKNOWN = LEARNED.start, LEARNED.end, LEARNED.unknown

FONT = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"


def flat(width: int, height: int) -> PIL.Image.Image:
    """Black on the left, white on the right."""
    pixels = np.zeros((height, width), np.uint8)
    pixels[:, width // 2 :] = 255
    return PIL.Image.fromarray(pixels)


def test_a_word_is_always_drawn_the_same_and_wider_with_more_letters() -> None:
    word = RenderedWord("word 1", "Will", FONT, 7)
    assert word.read().tobytes() == word.read().tobytes()
    assert word.read().tobytes() != RenderedWord("word 1", "Will", FONT, 8).read().tobytes()
    assert RenderedWord("", "WWWWWW", FONT, 7).read().width > 3 * RenderedWord("", "W", FONT, 7).read().width
    assert word.content() == b"Will\0DejaVuSans.ttf\x007"


def test_chosen_words_repeat_with_the_seed() -> None:
    words = choose_words(["fig", "apple"], [FONT], 500, 3)
    assert words == choose_words(["fig", "apple"], [FONT], 500, 3)
    assert {word.label for word in words if not word.label.isdigit()} == {
        "fig",
        "Fig",
        "FIG",
        "apple",
        "Apple",
        "APPLE",
    }
    assert 20 < sum(word.label.isdigit() for word in words) < 90
    short = sum(word.label.lower() == "fig" for word in words) / sum(not word.label.isdigit() for word in words)
    assert 0.65 < short < 0.85  # three of four, because the shorter of two words is taken


def test_scene_words_are_drawn_the_same_and_in_many_ways() -> None:
    words = choose_scene_words(["fig", "apple"], [[FONT], [FONT, FONT]], 300, 3)
    assert words == choose_scene_words(["fig", "apple"], [[FONT], [FONT, FONT]], 300, 3)
    images = [word.read() for word in words]
    assert all(image.mode == "L" and image.height >= 14 and image.width >= 3 for image in images)
    assert words[7].read().tobytes() == images[7].tobytes()
    assert sum(word.label.isupper() for word in words) > 120
    assert 15 < sum(word.label.isdigit() for word in words) < 60
    assert 5 < sum(not word.label.isalnum() for word in words) < 60
    deviations = [np.asarray(image).std() for image in images]
    assert min(deviations) > 1
    assert max(deviations) > 60


def batch_of(form: WordLine, characters: str, examples: list, generator: np.random.Generator) -> Batch:
    processor = Processor(form, LineText(characters=characters))
    return processor.batch([*processor.prepare(Dataset("words", examples))], generator)


def test_a_batch() -> None:
    examples = [RenderedWord("", text, FONT, 1) for text in ("ba", "abc", "a")]
    batch = batch_of(WordLine(8, 20, augment=False), "ab", examples, np.random.default_rng(1))
    assert batch.inputs["pixels"].shape == (3, 1, 8, 20)
    assert batch.inputs["target"].tolist() == [[START, 5, 4, 0], [START, 4, 5, UNKNOWN], [START, 4, 0, 0]]
    assert batch.labels.tolist() == [[5, 4, END, IGNORE], [4, 5, UNKNOWN, END], [4, END, IGNORE, IGNORE]]
    assert batch.weight.tolist() == [3, 4, 2]
    writes = LineText(characters="ab")
    assert writes.tokenizer.decode([[5, 4, UNKNOWN]]) == ["ba⁇"]
    assert Processor(WordLine(8, 20), writes).sizes() == {"vocabulary": 6, "channels": 1}


def test_images_keep_their_proportions_up_to_the_width() -> None:
    form = WordLine(8, 20)
    images = [flat(16, 16), flat(32, 16), flat(90, 16), flat(2, 64)]
    inputs, _ = form.tensors([form.prepare(image) for image in images])
    assert inputs["widths"].tolist() == [8, 16, 20, 4]
    pixels = inputs["pixels"][:, 0]
    assert torch.equal(pixels[0, :, 8:], torch.zeros(8, 12))
    torch.testing.assert_close(pixels[1, :, :16].mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    assert pixels[1, 0, 0] == pytest.approx(-1, abs=0.05)
    assert pixels[1, 0, 15] == pytest.approx(1, abs=0.05)


def test_transparent_places_are_white() -> None:
    image = PIL.Image.new("RGBA", (4, 3), (0, 0, 0, 0))
    assert np.asarray(grey(image)).tolist() == [[255] * 4] * 3


def test_augmented_images_are_inverted_or_not_and_stretched() -> None:
    batch = batch_of(WordLine(8, 40), "a", [_Image("a", flat(16, 16))] * 64, np.random.default_rng(5))
    signs = batch.inputs["pixels"][:, 0, 4, 0].sign()
    assert 15 < int((signs > 0).sum()) < 49
    assert len(set(batch.inputs["widths"].tolist())) > 3


def test_distorted_images_differ_and_keep_about_their_size() -> None:
    image = RenderedWord("", "mind", FONT, 3).read()
    found = [distorted(image, np.random.default_rng(seed)) for seed in range(40)]
    assert found[5].tobytes() == distorted(image, np.random.default_rng(5)).tobytes()
    assert len({one.tobytes() for one in found}) == 40
    assert all(0.5 * image.height < one.height < 1.5 * image.height for one in found)
    assert all(0.3 < one.width / one.height * image.height / image.width < 3 for one in found)
    assert all(np.asarray(one).std() > 10 for one in found)
    smallest = distorted(flat(3, 3), np.random.default_rng(1))
    assert smallest.width > 0 < smallest.height


def test_the_share_of_images_that_are_distorted() -> None:
    image = _Image("a", flat(40, 32))
    for share, least, most in ((0.0, 0, 0), (0.5, 15, 49), (1.0, 58, 64)):
        batch = batch_of(WordLine(32, 80, distort=share), "a", [image] * 64, np.random.default_rng(5))
        columns = batch.inputs["pixels"][:, 0, :, :20].std(1).amax(-1)  # each column of the image is of one grey
        assert least <= int((columns > 1e-6).sum()) <= most
    with pytest.raises(UserError, match=r"^distort is 1\.5, but can be at most 1$"):
        WordLine(distort=1.5).check()


class _Image:
    place = "image"

    def __init__(self, label: str, image: PIL.Image.Image) -> None:
        self.label, self.image = label, image

    def read(self) -> PIL.Image.Image:
        return self.image

    def content(self) -> bytes:
        return b""


def test_tables_and_folders_with_one(tmp_path: Path) -> None:
    flat(8, 4).save(tmp_path / "1.png")
    (tmp_path / "labels.tsv").write_text("1.png\tEXIT\n", encoding="utf-8")
    for path in (tmp_path, tmp_path / "labels.tsv"):
        (example,) = word_images([path])
        assert (example.label, example.read().size) == ("EXIT", (8, 4))
    with pytest.raises(UserError, match=r"there is no table .*missing\.tsv"):
        word_images([tmp_path / "missing.tsv"])
    both = word_images([tmp_path, tmp_path / "labels.tsv"])
    assert [example.label for example in both] == ["EXIT", "EXIT"]


def test_small_letters_only() -> None:
    examples = [RenderedWord("", "Exit", FONT, 1), RenderedWord("", "EXIT", FONT, 2)]
    data = Dataset("words", examples)
    assert LineText(lowercase=True).learn(data, None, None).characters == "eitx"
    assert LineText().learn(data, None, None).characters == "EITXitx"
    answers = [ReadAnswer(text="exit"), ReadAnswer(text="Exit")]
    assert LineText(lowercase=True).metrics(answers[:1] * 2, examples)["word_accuracy"] == 100
    assert LineText().metrics(answers[1:] * 2, examples)["word_accuracy"] == 50


def test_characters_most_frequent_first() -> None:
    assert find_characters(["abba", "bc"]) == "bac"


@pytest.mark.parametrize(("height", "width", "name"), [(7, 20, "height"), (8, 3, "width")])
def test_a_canvas_too_small_for_any_letter(height: int, width: int, name: str) -> None:
    WordLine(8, 4).check()
    with pytest.raises(UserError, match=rf"^{name} is \d, but must be at least \d$"):
        WordLine(height, width).check()
