"""RandAugment's operations and mixup: what they do, and that a generator decides all of it."""

import numpy as np
import PIL.Image
import pytest
import torch

from foveate.contracts import Output, label_batch
from foveate.data.images.augmentation import mixup
from foveate.data.images.random_augment import OPERATIONS, random_augment
from foveate.training import CrossEntropy
from foveate.training.mixup import MixedLabels


def noise(count: int, channels: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, channels, 11, 7), dtype=np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, channels: int) -> None:
    """Each keeps size and kind of an image; at magnitude 0 the ones with a magnitude keep its pixels too."""
    pixels = noise(1, channels)[0]
    image = PIL.Image.fromarray(pixels[0] if channels == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    changed, same = (OPERATIONS[name](image, share, np.random.default_rng(1)) for share in (0.6, 0.0))
    assert (changed.size, changed.mode) == (image.size, image.mode)
    if name not in ("autocontrast", "equalize"):
        assert np.array_equal(np.asarray(same), np.asarray(image))
    if name not in ("identity", "autocontrast", "equalize") and (name, channels) != ("colour", 1):
        assert not np.array_equal(np.asarray(changed), np.asarray(image))


def test_what_some_operations_do() -> None:
    image = PIL.Image.fromarray(np.array([[10, 200, 30, 40]], np.uint8))
    generator = np.random.default_rng(0)
    assert np.asarray(OPERATIONS["solarize"](image, 0.5, generator)).tolist() == [[10, 55, 30, 40]]
    assert np.asarray(OPERATIONS["posterize"](image, 1.0, generator)).tolist() == [[0, 192, 16, 32]]
    assert np.asarray(OPERATIONS["autocontrast"](image, 0.5, generator)).tolist() == [[0, 255, 26, 40]]
    skewed = PIL.Image.fromarray(np.arange(4096, dtype=np.uint8).reshape(64, 64) // 4)
    assert np.asarray(OPERATIONS["equalize"](skewed, 0.5, generator)).max() > 250
    moved = {tuple(np.asarray(OPERATIONS["move-x"](image, 0.556, generator))[0].tolist()) for _ in range(20)}
    assert moved == {(200, 30, 40, 0), (0, 10, 200, 30)}


def test_the_same_generator_gives_the_same_images() -> None:
    pixels = noise(20, 3)
    found, again, other = (random_augment(pixels, 2, 9, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(found, again)
    assert not np.array_equal(found, other)
    assert found.dtype == np.uint8


def test_mixup_by_hand() -> None:
    pixels = torch.arange(5.0)[:, None, None, None]
    mixed, partners, share = mixup(pixels, 0.7, np.random.default_rng(2))
    assert 0 < share <= 0.5
    assert sorted(partners.tolist()) == [*range(5)]
    torch.testing.assert_close(mixed.flatten(), (1 - share) * torch.arange(5.0) + share * torch.tensor(partners))


def test_the_loss_of_mixed_labels() -> None:
    logits, labels, other = torch.randn(5, 3), torch.tensor([[0], [1], [2], [0], [1]]), torch.tensor([[2]] * 5)
    batch = label_batch({}, labels, "images")
    plain, objective = CrossEntropy(0.1), MixedLabels(CrossEntropy(0.1))
    assert objective(Output(logits), batch).total == plain(Output(logits), batch).total
    batch.targets |= {"mixed_labels": other, "mixed_share": torch.full((5,), 0.3)}
    expected = torch.nn.functional.cross_entropy
    whole = sum(
        share * expected(logits, part[:, 0], label_smoothing=0.1, reduction="sum")
        for share, part in ((0.7, labels), (0.3, other))
    )
    torch.testing.assert_close(objective(Output(logits), batch).total, whole)
    halves = [objective(Output(logits[part]), batch.select(part)).total for part in (slice(0, 2), slice(2, 5))]
    torch.testing.assert_close(sum(halves), whole)
