"""Questions about images: tables, their mistakes, and tensors."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat
from foveate.data.images.questions import image_questions
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError
from foveate.forms.processor import Processor, load_processor
from foveate.forms.question import FrequentAnswer, Question
from foveate.special_tokens import LEARNED

UNKNOWN = LEARNED.unknown


def table(folder: Path, text: str) -> Path:
    for name, colour in {"a.png": "red", "b.png": "blue"}.items():
        PIL.Image.new("RGB", (5, 3), colour).save(folder / name)
    path = folder / "questions.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def processor_of(texts: list[str], answers: dict[str, int]) -> Processor:
    return Processor(Question(format=ImageFormat(7, 3), tokenizer=train_words(texts, 99)), FrequentAnswer(answers))


def test_tensors_and_files(tmp_path: Path) -> None:
    lines = "a.png\tis it red?\tyes\nb.png\tis it?\tno\na.png\tis it blue?\tperhaps\n"
    found = image_questions([table(tmp_path, lines)])
    assert found.report == "questions.tsv: 3 questions (2 images)"
    assert found[1].place == "line 2 of questions.tsv"
    processor = processor_of(["is it?", "is it?"], {"no": 3, "yes": 2})
    prepared = processor.prepare(found)
    assert [processor.group(one) for one in prepared] == [0, 1, 0]
    assert np.shares_memory(prepared[0].input.pixels, prepared[2].input.pixels)
    batch = processor.batch([prepared[0], prepared[1], prepared[2]], None)
    (known,) = processor.reads.tokenizer.encode(["is it?"])
    question = [*known[:2], UNKNOWN, known[2]]
    assert batch.inputs["tokens"].tolist() == [question, [*known, 0], question]
    assert batch.inputs["lengths"].tolist() == [4, 3, 4]
    assert batch.inputs["images"].tolist() == [0, 1, 0]
    assert batch.inputs["pixels"].shape == (2, 3, 7, 7)
    assert batch.labels.tolist() == [[1], [0], [IGNORE]]
    part = batch.select(slice(1, None, 2))
    assert (len(part.inputs["pixels"]), part.inputs["images"].tolist(), part.labels.tolist()) == (2, [1], [[0]])
    assert processor.batch([prepared[2]], np.random.default_rng(1)).labels.tolist() == [[IGNORE]]
    assert processor.reads.tokens([""]) == [[UNKNOWN]]
    for name, write in processor.files().items():
        write(tmp_path / name)
    again = load_processor(Question, FrequentAnswer, tmp_path, lambda folder: {})
    assert (again.reads.format, again.writes) == (processor.reads.format, processor.writes)
    assert again.reads.tokens(["it"]) == processor.reads.tokens(["it"])
    assert processor.sizes() == {"vocabulary": 7, "classes": 2, "channels": 3, "image_size": 7}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.png\tis it red?", "line 1: 1 tabs, but a line must be path<TAB>question<TAB>answer"),
        ("c.png\tis it red?\tyes", "line 1: there is no file"),
        ("", "there is no question in it"),
    ],
)
def test_what_is_no_table(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        image_questions([table(tmp_path, f"{line}\n")])


def test_questions_about_one_image_come_in_one_batch(tmp_path: Path) -> None:
    lines = "".join(f"{'ab'[number % 2]}.png\tis it {number}?\tyes\n" for number in range(6))
    found = image_questions([table(tmp_path, f"{lines}a.png\tis it?\tno\n")])
    processor = processor_of(["is it?"] * 2, {"no": 1, "yes": 6})
    batches = [*BucketedBatches(OneBucket(Dataset("six", list(found)[:6], "questions"), processor), 3, 1).epoch(0)]
    assert [len(batch.inputs["pixels"]) for batch in batches] == [1, 1]
