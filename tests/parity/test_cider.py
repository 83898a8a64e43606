"""CIDEr-D beside that of pycocoevalcap, the evaluation of COCO captions."""

import random
from statistics import mean

import pytest
import references  # the folder that it is in
from pycocoevalcap.cider.cider import Cider

from foveate.metrics.captions import cider_scores

WORDS = ["a", "dog", "cat", "red", "apple", "left", "of", "above", "key"]


def captions(seed: int, images: int, references: int) -> tuple[list[str], list[list[str]]]:
    generator = random.Random(seed)

    def caption() -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(1, 12)))

    own = [[caption() for _ in range(generator.randint(1, references))] for _ in range(images)]
    # Some captions equal a reference, some are a part of one or twice as long, the others have other words.
    changes = [lambda text: text, lambda text: text[: len(text) // 2] + " a", lambda text: f"{text} {text}"]
    written = [generator.choice([*changes, lambda text: caption()])(each[0]) for each in own]
    return [" ".join(text.split()) for text in written], own


@pytest.mark.parametrize(("images", "most"), [(2, 1), (17, 1), (17, 5), (100, 3)])
def test_it_equals_that_of_pycocoevalcap(images: int, most: int) -> None:
    assert references.FOLDER.is_dir()
    written, own = captions(images, images, most)
    expected, _ = Cider().compute_score(dict(enumerate(own)), {number: [text] for number, text in enumerate(written)})
    assert mean(cider_scores(written, own)) == pytest.approx(expected, rel=1e-6)
    assert expected > 0.1
