"""Random parts of whole images, images that are kept, batches that other processes prepare, and what is mixed."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.images import kept as kept_images
from foveate.data.images.augmentation import RandomPart, cutmix
from foveate.data.images.decoding import FileReader, Shrink, read_image, read_shrunk
from foveate.data.images.kept import KeptImages, SizedImage, Unread
from foveate.data.images.labelled import ImageFormat, LabelledImage, images_of_arrays, labelled_images
from foveate.data.images.ranged import RangedReader
from foveate.data.workers import prepare_by_processes
from foveate.errors import UserError
from foveate.forms.image import AugmentedImage, FittedImage
from foveate.forms.label import Label
from foveate.forms.processor import Processor

SIDE = 24


def photograph(seed: int, width: int = 320, height: int = 208) -> PIL.Image.Image:
    """A smooth image, which another scale changes little."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return PIL.Image.fromarray(coarse).resize((width, height), PIL.Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photographs of each of two classes, in files of two kinds."""
    place = tmp_path_factory.mktemp("photographs")
    for number in range(10):
        (place / "ab"[number % 2]).mkdir(exist_ok=True)
        image = photograph(number)
        image.save(place / "ab"[number % 2] / f"{number}.{'jpg' if number < 8 else 'png'}", quality=95)
    return place


def form(**settings: object) -> AugmentedImage:
    return AugmentedImage(size=SIDE, format=ImageFormat(SIDE, 3), crop=0.1, **settings)  # type: ignore[arg-type]


def test_parts_lie_inside_and_have_the_area_that_was_asked_for() -> None:
    generator = np.random.default_rng(1)
    parts = [RandomPart.draw(0.3, generator) for _ in range(300)]
    for part in parts:
        for width, height in ((320, 208), (7, 500)):
            left, top, right, bottom = part.box(width, height)
            assert 0 <= left < right <= width + 1e-9
            assert 0 <= top < bottom <= height + 1e-9
        left, top, right, bottom = part.box(1000, 1000)
        cut = right - left > 999.9 or bottom - top > 999.9
        assert cut or (right - left) * (bottom - top) == pytest.approx(part.area * 1e6)
        assert cut or (right - left) / (bottom - top) == pytest.approx(part.ratio)
    assert 0.3 <= min(part.area for part in parts) < 0.35
    assert 0.95 < max(part.area for part in parts) <= 1
    assert 0.74 < min(part.ratio for part in parts) < 0.8


def test_a_part_is_cut_out_of_the_whole_image(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As Pillow cuts and scales the decoded file, whether images are kept or not."""
    dataset, reads = labelled_images([folder]), form(augment=False)
    found = {}
    for most in (kept_images.MOST_KEPT, 0):
        monkeypatch.setattr(kept_images, "MOST_KEPT", most)
        prepared = reads.prepare_all(dataset)
        assert prepared.slow == (most == 0)
        found[most] = reads.standardise(np.stack([reads._part(one, np.random.default_rng(7)) for one in prepared]))
    part = RandomPart.draw(0.1, np.random.default_rng(7))
    for row, example in enumerate(dataset):
        whole = example.read().convert("RGB")
        box = part.box(*whole.size)
        small = whole.resize((SIDE, SIDE), PIL.Image.Resampling.BICUBIC, box)
        expected = reads.standardise(np.array(small).transpose(2, 0, 1)[None])[0]
        for pixels in found.values():
            assert (pixels[row] - expected).abs().mean() < 0.02
    assert torch.equal(found[0][-1], expected)  # the last one is no JPEG file


def test_jpeg_files_are_decoded_no_larger_than_is_needed(folder: Path) -> None:
    jpeg, png = folder / "a" / "0.jpg", folder / "a" / "8.png"
    for share, size in ((1.0, (320, 208)), (0.51, (320, 208)), (0.5, (160, 104)), (0.2, (80, 52)), (0.01, (40, 26))):
        assert read_shrunk(FileReader(jpeg), lambda given, share=share: share).size == size
        assert read_shrunk(RangedReader(FileReader(jpeg), (0, 1)), lambda given, share=share: share).size == size
        assert read_shrunk(FileReader(png), lambda given, share=share: share).size == (320, 208)
    assert read_shrunk(partial(read_image, jpeg), lambda given: 0.1).size == (320, 208)
    part = RandomPart(0.25, 1.0, (0.5, 0.5))  # 129 pixels on a side
    assert part.enlarged(43, (320, 208)) == pytest.approx(part.enlarged(43, (208, 320))) == pytest.approx(1 / 3, 0.01)


def decode(log: Path, read: FileReader) -> SizedImage:
    with log.open("a") as file:
        file.write(f"{read.file.name}\n")
    image = read()
    return SizedImage(image.convert("L").resize((30, 20)), image.size)


def test_kept_images_are_decoded_once_by_all_processes(folder: Path, tmp_path: Path) -> None:
    reads = [FileReader(path) for path in sorted(folder.glob("*/*"))]
    images = KeptImages(reads, partial(decode, tmp_path / "log"), 1, 600)
    for _ in range(2):
        sums = [
            int(torch.as_tensor(one))  # type: ignore[call-overload]
            for one in prepare_by_processes(lambda row: int(np.asarray(images[row]().image).sum()), range(10), 2)
        ]
    assert Counter((tmp_path / "log").read_text().split()) == Counter(read.file.name for read in reads)
    assert sums == [int(np.asarray(decode(tmp_path / "other", read).image).sum()) for read in reads]
    assert images[3]().size == (320, 208)
    with pytest.raises(IndexError):
        images[10]


@dataclass(frozen=True)
class Counting(FileReader):
    """Notes the size in which each file is decoded."""

    decoded: list[tuple[str, tuple[int, int]]] = field(default_factory=list)

    def __call__(self) -> PIL.Image.Image:
        return self.shrunk(lambda size: 1.0)

    def shrunk(self, shrink: Shrink) -> PIL.Image.Image:
        image = read_image(self.file, shrink)
        self.decoded.append((self.file.name, image.size))
        return image


@pytest.mark.parametrize("reads", [form(augment=False), FittedImage(size=SIDE, augment=False)], ids=["cut", "fitted"])
def test_a_damaged_image_is_found_without_a_second_whole_decode(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path, reads: AugmentedImage | FittedImage
) -> None:
    """Kept images are decoded once in all; of the others JPEG files at an eighth of their size."""
    paths = [tmp_path / "cut.jpg", *sorted(folder.glob("a/*"))]
    paths[0].write_bytes(paths[1].read_bytes()[:900])
    for most in (kept_images.MOST_KEPT, 0):
        monkeypatch.setattr(kept_images, "MOST_KEPT", most)
        decoded: list[tuple[str, tuple[int, int]]] = []
        examples = [LabelledImage(path.name, "a", Counting(path, decoded)) for path in paths]
        prepared = reads.prepare_all(Dataset("photographs", examples, "images"))
        assert [*prepared.examples] == [1, 2, 3, 4, 5]
        assert "cut.jpg" in prepared.report
        assert Counter(name for name, _ in decoded) == Counter(path.name for path in paths[1:])
        if most:
            reads.tensors([*prepared], np.random.default_rng(1))
            assert len(decoded) == 5
        else:
            assert dict(decoded) == {path.name: (40, 26) for path in paths[1:5]} | {paths[5].name: (320, 208)}


def test_processes_prepare_what_a_thread_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits in the same order, from any batch on, without a change of the training's random numbers."""
    monkeypatch.setattr(kept_images, "MOST_KEPT", 0)
    dataset = labelled_images([folder])
    processor = Processor(form(colour=0.3, mixup=0.2, cutmix=1.0, repeats=2), Label({"a": 5, "b": 5}))
    found = []
    for workers in (0, 1, 3):
        batches = BucketedBatches(OneBucket(dataset, processor), 3, 5, {True: workers}.__getitem__)
        before = torch.random.get_rng_state()
        found.append([*batches.epoch(1), *batches.epoch(2, skip=2)])
        assert torch.equal(before, torch.random.get_rng_state())
    for others in found[1:]:
        assert len(others) == len(found[0]) == 4 + 2
        for one, other in zip(found[0], others, strict=True):
            assert one.source == other.source
            assert torch.equal(one.inputs["pixels"], other.inputs["pixels"])
            assert other.inputs["pixels"].stride() == one.inputs["pixels"].stride()
            assert all(torch.equal(one.targets[name], other.targets[name]) for name in one.targets)


def test_an_error_of_another_process_is_one_line() -> None:
    def prepare(number: int) -> int:
        if number == 3:
            raise UserError("image 3 cannot be read")
        return number

    found = []
    with pytest.raises(UserError, match=r"^image 3 cannot be read$"):
        found.extend(prepare_by_processes(prepare, range(9), 2))  # type: ignore[arg-type]
    assert found == [0, 1, 2]


def test_repeated_images_leave_out_as_many_others() -> None:
    images = images_of_arrays("grey", np.zeros((11, SIDE, SIDE), np.uint8), ["a"] * 11)
    processor = Processor(form(repeats=3), Label({"a": 1}))
    (bucket,) = OneBucket(images, processor)
    rows = [np.concatenate(bucket.shuffled(4, np.random.default_rng(seed))).tolist() for seed in range(2)]
    for own in rows:
        assert sorted(Counter(own).values()) == [2, 3, 3, 3]
        assert own == sorted(own, key=own.index)  # those of one image stand side by side
    assert set(rows[0]) != set(rows[1])


def test_cutmix_by_hand() -> None:
    """One rectangle of each image is another's, and the labels have its share."""
    pixels = torch.arange(5.0)[:, None, None, None].expand(5, 2, 12, 20)
    shares = []
    for seed in range(40):
        mixed, partners, share = cutmix(pixels, 1.0, np.random.default_rng(seed))
        assert partners is not None
        assert sorted(partners.tolist()) == [*range(5)]
        other = torch.tensor(partners, dtype=torch.float32)
        changed = mixed[partners != np.arange(5)]
        inside = (changed == other[partners != np.arange(5)][:, None, None, None])[0, 0]
        assert inside.float().mean().item() == pytest.approx(share)
        rows, columns = inside.any(1).nonzero(), inside.any(0).nonzero()
        assert int(inside.sum()) == len(rows) * len(columns)
        shares.append(share)
    assert max(shares) <= 0.5 + 1 / 12
    assert min(shares) < 0.1 < 0.3 < max(shares)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop": 0.0}, "crop is 0, but must be above 0 and at most 1"),
        ({"repeats": 0}, "repeats is 0, but must be at least 1"),
        ({"cutmix": -1.0}, "cutmix is -1, but must be at least 0"),
    ],
)
def test_what_cannot_be(settings: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        AugmentedImage(**settings).check()  # type: ignore[arg-type]


def test_a_model_in_use_reads_the_middle_of_the_whole_image(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, image = form(), read_image(folder / "a" / "8.png")
    expected = reads.tensors([reads.prepare(image)])[0]["pixels"]
    monkeypatch.setattr(kept_images, "MOST_KEPT", 0)
    assert torch.equal(reads.tensors([Unread(lambda: image)])[0]["pixels"], expected)
