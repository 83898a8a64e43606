"""Captioned images: tables and JSON of COCO, their mistakes, and tensors."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.images.captions import captioned_images
from foveate.data.images.labelled import ImageFormat
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError
from foveate.forms.caption import CaptionText
from foveate.forms.image import SquareImage
from foveate.forms.processor import Processor, load_processor
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name, colour in {"a.png": "red", "b.png": "blue"}.items():
        PIL.Image.new("RGB", (5, 3), colour).save(tmp_path / name)
    return tmp_path


def table(folder: Path, text: str) -> Path:
    path = folder / "captions.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_image_has_the_captions_of_all_its_lines(images: Path) -> None:
    found = captioned_images([table(images, "a.png\ta red one\nb.png\tblue\n\na.png\tred\n")])
    assert [(Path(one.place).name, one.captions) for one in found] == [
        ("a.png", ("a red one", "red")),
        ("b.png", ("blue",)),
    ]
    assert found.report == "captions.tsv: 2 images (3 captions)"
    assert found[1].read().getpixel((0, 0)) == (0, 0, 255)
    assert len({one.content() for one in found}) == 2


def test_captions_of_coco(images: Path) -> None:
    (images / "images").mkdir()
    (images / "b.png").rename(images / "images" / "b.png")
    content = {
        "images": [{"id": 7, "file_name": "a.png"}, {"id": 9, "file_name": "b.png"}],
        "annotations": [{"image_id": 9, "caption": "blue\n"}, {"image_id": 7, "caption": "a  red"}],
    }
    path = images / "captions.json"
    path.write_text(json.dumps(content))
    assert [one.captions for one in captioned_images([path])] == [("blue",), ("a red",)]
    content["annotations"].append({"image_id": 7, "caption": " "})
    path.write_text(json.dumps(content))
    assert captioned_images([path]).report == "captions.json: 2 images (2 captions; 1 empty captions left out)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.png a red one\n", "line 1: 0 tabs, but a line must be path<TAB>caption"),
        ("a.png\ta\tb\n", "line 1: 2 tabs, but a line must be path<TAB>caption"),
        ("\na.png\t \n", "line 2: the caption is empty"),
        (f"a.png\t{'dog ' * 700}\n", "line 1: a caption of 2,799 characters; at most 2,000 are read"),
        ("c.png\tnothing\n", "line 1: there is no file"),
        (f"{5000 * 'c'}\tnothing\n", "line 1: there is no file"),
        ("\n", "there is no captioned image in it"),
    ],
)
def test_what_is_no_table(images: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        captioned_images([table(images, text)])


def test_what_is_no_file_of_captions(images: Path) -> None:
    (images / "x.json").write_text('{"images": [{"id": 1, "file_name": "a.png"}], "annotations": [{"image_id": 2}]}')
    with pytest.raises(UserError, match=r"x\.json is not a file of COCO captions: annotations.0.: missing value"):
        captioned_images([images / "x.json"])


def processor_of(texts: list[str]) -> Processor:
    return Processor(SquareImage(format=ImageFormat(7, 3)), CaptionText(tokenizer=train_words(texts, 99)))


def test_batches_name_the_images_of_their_captions(images: Path) -> None:
    """An image with more captions than there are images."""
    found = captioned_images([table(images, "a.png\tred\nb.png\tblue\nb.png\tred\nb.png\tblue blue\n")])
    processor = processor_of(["red blue", "red blue"])
    both = BucketedBatches(OneBucket(found, processor), 2, 0)
    batches = [*both.epoch(0), *both.in_order()]
    assert len(batches) == 4
    assert [batch.source.count("b.png") for batch in batches[2:]] == [1, 2]


def test_tensors(images: Path, tmp_path: Path) -> None:
    found = captioned_images([table(images, "a.png\tred red\nb.png\tblue\na.png\tblue red blue\n")])
    processor = processor_of(["red blue", "red blue"])
    prepared = processor.prepare(found)
    assert len(prepared) == 3
    (red,), (blue,) = processor.writes.tokenizer.encode(["red", "blue"])
    batch = processor.batch([prepared[1], prepared[2]], np.random.default_rng(1))
    assert batch.inputs["target"].tolist() == [[START, blue, red, blue], [START, blue, 0, 0]]
    assert batch.labels.tolist() == [[blue, red, blue, END], [blue, END, IGNORE, IGNORE]]
    assert batch.inputs["target_lengths"].tolist() == [4, 2]
    assert batch.weight.tolist() == [4, 2]
    assert batch.inputs["pixels"].shape == (2, 3, 7, 7)
    torch.testing.assert_close(batch.inputs["pixels"][1, :, 3, 3], torch.tensor([-2.0, -2.0, 2.0]))
    assert processor.sizes() == {"vocabulary": 6, "channels": 3, "image_size": 7}
    for name, write in processor.files().items():
        write(tmp_path / name)
    again = load_processor(SquareImage, CaptionText, tmp_path, lambda folder: {})
    assert again.reads == processor.reads
    assert again.writes.tokenizer.encode(["blue red"]) == [[blue, red]]
