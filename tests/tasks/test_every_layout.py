"""Every layout of every task: it is recognised, a training begins on its part to train on, the held-out part of the
layout validates, and what is missing is one line."""

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import layout_table
import made_examples
import made_layouts
import numpy as np
import pytest
from made_layouts import HELD, LAYOUTS, OTHER_FORMS, TRAIN
from rich.console import Console

from foveate.cli import main
from foveate.console import plain_console
from foveate.data.images.masks import masked_images
from foveate.data.images.question_layouts import soft_accuracy
from foveate.data.layout import FOLDERS, TABLES, part_to_measure, parts_of
from foveate.errors import UserError
from foveate.forms.span import span_metrics
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.task import Task

PAIRS = [(name, layout.name) for name in TASKS for layout in find_task(name).layouts]
PAIRS += [("classify-image", FOLDERS.name), ("classify", TABLES.name)]

SETTINGS: dict[str, Any] = {"steps": 1, "epochs": None, "validate_every": 1, "warmup": 1, "average": 1, "batch": 64}

OWN: dict[str, dict[str, Any]] = {
    **{name: {"size": 16} for name in ("classify-image", "caption", "match-image", "draw", "answer")},
    **{name: {"size": 48, "batch": 4} for name in ("detect", "segment", "keypoints")},
    "read": {"height": 16, "width": 48},
    "transcribe": {"batch": 2000},
    "speak": {"batch": 2000, "codes": 8},
}


def test_the_page_has_every_layout() -> None:
    assert layout_table.PAGE.read_text(encoding="utf-8") == layout_table.page()


@pytest.mark.parametrize("name", dict(PAIRS))
def test_the_help_names_every_layout(name: str) -> None:
    task = find_task(name)
    assert all(layout.name in task.data_help for layout in task.layouts)


def smallest(task: Task) -> str:
    return min(task.presets().values(), key=lambda preset: preset.parameters).name


def test_every_layout_is_made() -> None:
    assert {layout for _, layout in PAIRS} == LAYOUTS.keys()


FORMS = [(*pair, form) for pair in PAIRS for form in ("", *OTHER_FORMS.get(pair[1], {}))]


@pytest.mark.parametrize(("name", "layout", "form"), FORMS)
def test_a_training_on_every_layout(name: str, layout: str, form: str, tmp_path: Path) -> None:
    task = find_task(name)
    (tmp_path / "data").mkdir()
    write = OTHER_FORMS[layout][form] if form else LAYOUTS[layout]
    given = write(tmp_path / "data")
    settings = {"data": given, "out": tmp_path / "run", "model": smallest(task), **SETTINGS, **OWN.get(name, {})}
    recipe = task.recipe(**settings)
    found = parts_of([given], task.all_layouts)
    assert found is not None
    assert found.train
    lesson = Lesson(task, recipe)
    lesson.check()
    assert lesson.contents(), "changed data would not be noticed"
    train, validation = lesson.open()
    if found.dev:
        assert (len(train), len(validation)) == (TRAIN, HELD)
    tested = task.read_files(part_to_measure([given], task.all_layouts), recipe)
    assert len(tested) == HELD
    assert not {one.content() for one in train} & {one.content() for one in tested} or name == "tag"
    if not found.dev:
        recipe.examples.validation = found.test
    learn(recipe, console=Console(file=StringIO()))
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_a_folder_of_files_stands_for_them(tmp_path: Path) -> None:
    """Where `--data FILE` takes a table or a list, a folder of it and of what it names does."""
    for name in TASKS:
        task, place = find_task(name), tmp_path / name
        data = made_examples.examples_of(task, place).data
        (place / "README.md").write_text("About these data.\n")
        given, _ = task.parts_to_learn([place], [])
        assert given == task.part_to_measure([place])
        if name == "walk":  # whose maps may be what another folder has routes in
            with pytest.raises(UserError, match="is a folder: name the file of routes in it, such as "):
                task.read_files(given, task.recipe(data=place))
        elif not data[0].is_dir():
            assert given == ((place,) if task.files == "FILE ..." else data), name  # a folder of texts is read itself


@pytest.mark.parametrize("field", ["messages", "conversations"])
def test_a_folder_of_conversations(field: str, tmp_path: Path) -> None:
    """Those of OpenAI and of ShareGPT; of a folder with texts, these alone."""
    names = ("role", "content") if field == "messages" else ("from", "value")
    turns = [dict(zip(names, turn, strict=True)) for turn in (("user", "Who?"), ("assistant", "You."))]
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({field: turns}) + "\n")
    task = find_task("language")
    given, _ = task.parts_to_learn([tmp_path], [])
    assert [one.messages for one in task.read_files(given, task.recipe(data=tmp_path))] == [
        (("user", "Who?"), ("assistant", "You."))
    ] * 2
    (tmp_path / "book.txt").write_text("A text.\n")
    given, _ = task.parts_to_learn([tmp_path], [])
    assert [one.text for one in task.read_files(given, task.recipe(data=tmp_path))] == ["A text."]


def karpathy_folder(folder: Path) -> Path:
    return LAYOUTS["Karpathy's splits"](folder).parent


def vqa_folders(folder: Path) -> Path:
    """As the data set's own programs have it: questions, answers and images in folders of their own."""
    LAYOUTS["VQA v2"](folder)
    for kind, pattern in (("Questions", "*questions.json"), ("Annotations", "*annotations.json")):
        (folder / kind).mkdir()
        for file in [*folder.glob(pattern)]:
            file.rename(folder / kind / file.name)
    (folder / "Images" / "mscoco").mkdir(parents=True)
    for part in ("train2014", "val2014"):
        (folder / part).rename(folder / "Images" / "mscoco" / part)
    return folder


def voc_kit(folder: Path) -> Path:
    made_layouts.voc(folder / "VOCdevkit" / "VOC2012")
    return folder / "VOCdevkit"


def named_yaml(folder: Path) -> Path:
    file = made_layouts.yolo(folder) / "data.yaml"
    return file.rename(folder / "squares.yaml")


def hub_clone(folder: Path) -> Path:
    """As a data set of the hub is cloned, in tables that are cut."""
    (folder / "data").mkdir()
    for file in [*LAYOUTS[TABLES.name](folder).glob("*.csv")]:
        file.rename(folder / "data" / f"{file.stem}-00000-of-00001.csv")
    return folder


@pytest.mark.parametrize(
    ("name", "write"),
    [
        *(("caption", karpathy_folder), ("answer", vqa_folders), ("detect", voc_kit), ("segment", voc_kit)),
        *(("detect", named_yaml), ("classify", hub_clone)),
    ],
)
def test_other_places_of_the_same_files(name: str, write: Any, tmp_path: Path) -> None:
    task, given = find_task(name), write(tmp_path)
    parts = parts_of([given], task.all_layouts)
    assert parts is not None
    recipe = task.recipe(data=given)
    assert [len(task.read_files(part, recipe)) for part in (parts.train, parts.dev)] == [TRAIN, HELD]


def test_a_part_is_printed_as_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """`dataset.json:train:` is no picture of a train."""
    plain_console().print("dataset.json:train: 3 images", markup=False)
    assert capsys.readouterr().out == "dataset.json:train: 3 images\n"


MISSING = {
    "COCO captions": (["train2017/000000000000.jpg"], r"lists the image 000000000000.jpg, which is neither in "),
    "Karpathy's splits": (["images/0.jpg"], r"dataset_flickr8k.json: there is no file .*0.jpg"),
    "Flickr8k and Flickr30k": (["Flickr8k.token.txt"], r"there is no file .*Flickr8k.token.txt"),
    "VQA v2": (
        ["v2_mscoco_train2014_annotations.json"],
        r"their answers are missing: there is no file ",
    ),
    "GQA": (["images/0.jpg"], r"train_balanced_questions.json, question q0: there is no file .*0.jpg"),
    "Common Voice": (["train.tsv"], r"is Common Voice without a part to train on: it needs clips/, train.tsv"),
    "Kaldi": (["data/train/text"], r"train has a wav.scp, but no file text with what is said"),
    "NeMo manifests": (["wav/0.wav"], r"train_manifest.json, line 1: there is no file .*0.wav"),
    "SpeechBrain": (["wav/0.wav"], r"train.json, row 1: there is no file .*0.wav"),
    "ICDAR": (["train/word_0.png"], r"gt.txt, line 1: there is no file .*word_0.png"),
    "MJSynth": (["2425/1/0_red_0.jpg"], r"annotation_train.txt, line 1: there is no file .*0_red_0.jpg"),
    "IIIT5K": (["train/0_1.png"], r"traindata.mat, row 1: there is no file .*0_1.png"),
    "MMOCR's lists": (["train/0.png"], r"train_label.txt, line 1: there is no file .*0.png"),
    "COCO": (["train2017/000000000000.jpg"], r"lists the image 000000000000.jpg, which is neither in "),
    "Pascal VOC": (["Annotations/2007_0.xml"], r"train.txt: there is no file .*2007_0.xml"),
    "YOLO": (["images/train"], r"data.yaml: there is no folder images/train of train images in "),
    "COCO masks": (["train2017/000000000000.jpg"], r"lists the image 000000000000.jpg, which is neither in "),
    "Pascal VOC masks": (["SegmentationClass/2007_0.png"], r"train.txt: there is no file .*2007_0.png"),
    "YOLO masks": (["images/train"], r"data.yaml: there is no folder images/train of train images in "),
    "COCO keypoints": (["train2017/000000000000.jpg"], r"lists the image 000000000000.jpg, which is neither in "),
}
"""What is taken away of a layout, and what the error says. The files of the others are all read as far as they go."""


@pytest.mark.parametrize(("name", "layout"), [pair for pair in PAIRS if pair[1] in MISSING])
def test_what_is_missing(name: str, layout: str, tmp_path: Path) -> None:
    given = LAYOUTS[layout](tmp_path)
    for taken in MISSING[layout][0]:
        place = tmp_path / taken
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    task = find_task(name)
    with pytest.raises(UserError, match=MISSING[layout][1]) as error:
        learn(task.recipe(data=given, out=tmp_path / "run", model=smallest(task)), console=Console(file=StringIO()))
    assert "\n" not in str(error.value)


def test_a_command_of_kaldi_is_not_run(tmp_path: Path) -> None:
    folder = made_layouts.kaldi(tmp_path) / "data" / "train"
    (folder / "wav.scp").write_text(f"utt0 touch {tmp_path / 'ran'} |\n")
    (folder / "text").write_text("utt0 red\n")
    task = find_task("transcribe")
    with pytest.raises(UserError, match=r"wav.scp: utt0 is what a command writes, which is never run: save its output"):
        task.read_files([folder], task.recipe(data=folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("train", ["/etc", "../outside", "images/link"])
def test_settings_of_yolo_that_lead_out(train: str, tmp_path: Path) -> None:
    folder = made_layouts.yolo(tmp_path / "data")
    (tmp_path / "outside").mkdir()
    (folder / "images" / "link").symlink_to(tmp_path / "outside")
    (folder / "data.yaml").write_text(f"train: {train}\nval: images/val\nnames: [a, b]\n")
    with pytest.raises(UserError, match=r"data.yaml: there is no folder .* of train images in "):
        parts_of([folder], find_task("detect").layouts)


def test_runs_of_coco_are_the_pixels_of_their_outline(tmp_path: Path) -> None:
    """Down each column; as COCO compresses them, the same."""
    file = made_layouts.coco(tmp_path, "instances") / "annotations" / "instances_train2017.json"
    content = json.loads(file.read_text())
    counts = [12 * 48 + 12, *[24, 24] * 23, 24, 12 * 48 + 12]
    for annotation, runs in zip(content["annotations"], (counts, compressed(counts)), strict=False):
        annotation["segmentation"] = {"counts": runs, "size": [48, 48]}
    file.write_text(json.dumps(content))
    plain, packed, *_ = (one.read_mask() for one in masked_images(file))
    expected = np.zeros((48, 48), np.int64)
    expected[12:36, 12:36] = 1
    assert np.array_equal(plain, expected)
    assert np.array_equal(packed, expected)


def compressed(counts: list[int]) -> str:
    """As `rleToString` of COCO's own tools writes runs."""
    found = ""
    for place, count in enumerate(counts):
        value, more = count - (counts[place - 2] if place > 2 else 0), True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            found += chr((bits | 32 if more else bits) + 48)
    return found


def test_the_accuracy_of_vqa() -> None:
    """A third for each other person who says the same, on average over the nine others of each of ten people."""
    assert soft_accuracy("red", ("red",) * 10) == 100
    assert soft_accuracy("red", ("blue",) * 10) == 0
    assert soft_accuracy("red", ("red", *["blue"] * 9)) == pytest.approx(30)
    assert soft_accuracy("red", ("red", "red", *["blue"] * 8)) == pytest.approx(60)
    assert soft_accuracy("red", ("red",) * 3 + ("blue",) * 7) == pytest.approx(90)


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("captions.txt", ["image,caption", '0.jpg,"a red, small square"', "0.jpg,a square", "1.jpg,a green one"]),
        ("results.csv", ["image_name| comment_number| comment", "0.jpg| 0| a red, small square", "0.jpg| 1| a square"]),
    ],
)
def test_captions_of_flickr_as_csv(file: str, lines: list[str], tmp_path: Path) -> None:
    for number in range(2):
        made_layouts.image(tmp_path / "Images" / f"{number}.jpg", number)
    made_layouts.write(tmp_path / file, *lines)
    task = find_task("caption")
    found = parts_of([tmp_path], task.layouts)
    assert found is not None
    assert found.train == (tmp_path / file,)
    examples = task.read_files(found.train, task.recipe(data=tmp_path))
    assert examples[0].captions == ("a red, small square", "a square")


def test_preferences_with_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "The sky is", "chosen": " blue.", "rejected": " green."}\n')
    (tmp_path / "b.tsv").write_text("chosen\trejected\nblue.\tgreen.\n")
    task = find_task("reward")
    found = [task.read_files([path], task.recipe(data=path))[0] for path in (tmp_path / "a.jsonl", tmp_path / "b.tsv")]
    assert [(one.better, one.worse) for one in found] == [
        ("The sky is blue.", "The sky is green."),
        ("blue.", "green."),
    ]


def test_a_part_of_a_sound_is_refused(tmp_path: Path) -> None:
    made_layouts.sound(tmp_path / "a.wav", 1)
    path = tmp_path / "train_manifest.json"
    path.write_text('{"audio_filepath": "a.wav", "text": "red", "offset": 0.1}\n')
    task = find_task("transcribe")
    with pytest.raises(UserError, match=r"train_manifest.json, row 1: an offset cuts the sound, which is not read"):
        task.read_files([path], task.recipe(data=path))


def test_columns_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`eval` reads the columns of the training, or those that it names."""
    rows = [f"{['good', 'bad'][number % 2]},text number {number}" for number in range(24)]
    made_layouts.write(tmp_path / "a.csv", "stars,words", *rows)
    made_layouts.write(tmp_path / "b.csv", "rating,remark", *rows)
    run = str(tmp_path / "run")
    model = smallest(find_task("classify"))
    train = ["train", "classify", "--data", str(tmp_path / "a.csv"), "--out", run, "--model", model]
    main([*train, "--steps", "1", "--columns", "text=words", "label=stars"])
    main(["eval", run, "--data", str(tmp_path / "a.csv")])
    main(["eval", run, "--data", str(tmp_path / "b.csv"), "--columns", "text=remark", "label=rating"])
    with pytest.raises(SystemExit) as ended:
        main(["eval", run, "--data", str(tmp_path / "b.csv")])
    assert ended.value.code == 2
    assert "b.csv, line 1: no column stars; it has rating, remark" in capsys.readouterr().err


def test_several_answers_of_squad(tmp_path: Path) -> None:
    """Each is right: the one counts that is most like the answer."""
    file = made_layouts.squad(tmp_path) / "dev-v1.1.json"
    content = json.loads(file.read_text())
    asked = [one["qas"][0] for one in content["data"][0]["paragraphs"]]
    asked[0]["answers"] = [{"text": text, "answer_start": 0} for text in ("The cat", "cat is", "The cat")]
    file.write_text(json.dumps(content))
    task = find_task("ask")
    found = task.read_files([file], task.recipe(data=file))
    assert found[0].answers == ("The cat", "cat is", "The cat")
    assert "1 with several right answers" in found.report
    first, second = found[0], found[1]
    assert span_metrics(["cat is", second.answer], [first, second])["accuracy"] == 100
    assert span_metrics(["is", second.answer], [first, second])["f1"] == pytest.approx(50 * (1 + 2 / 3))
    assert span_metrics(["dog", "dog"], [first, second])["f1"] == 0


@pytest.mark.parametrize("layout", ["COCO masks", "Pascal VOC masks", "YOLO masks"])
def test_a_damaged_image_with_masks(layout: str, tmp_path: Path) -> None:
    """It is left out and counted; the others are there."""
    given = LAYOUTS[layout](tmp_path)
    found = parts_of([given], find_task("segment").layouts)
    assert found is not None
    first = masked_images(found.train)[0]
    Path(first.place).write_bytes(b"no image")
    if layout == "Pascal VOC masks":
        (tmp_path / "SegmentationClass" / f"{Path(first.place).stem}.png").write_bytes(b"no image")
    examples = masked_images(found.train)
    assert len(examples) == TRAIN - 1
    assert first.place not in {one.place for one in examples}
    assert "left out: 1 that cannot be read, the first because " in examples.report


@pytest.mark.parametrize(
    ("task", "names", "told"),
    [
        ("detect", ["a/1.xml", "JPEGImages/1.jpg"], r"layouts that are read: COCO, .*The nearest: Pascal VOC: Annota"),
        ("segment", ["data/images/1.jpg", "data/labels/1.txt"], r"one folder with images/ and .*nearest: YOLO masks: "),
        ("caption", ["Images/1.jpg", "captions.csv.txt"], r"The nearest: Flickr8k and Flickr30k: captions.txt or "),
        (
            "read",
            ["train/1.jpg", "train_labels.csv"],
            r"there is no table .*labels.tsv .*The nearest: IIIT5K: traindata.mat",
        ),
        ("ask", ["dev.json", "train.json"], r"layouts that are read: SQuAD. The nearest: SQuAD: train-v1.1.json"),
        ("answer", ["questions.json", "train2014/1.jpg"], r"The nearest: VQA v2: v2_OpenEnded_"),
        ("transcribe", ["lists/wav.scp.txt", "lists/utt2spk.txt"], r"The nearest: Kaldi: train/"),
    ],
)
def test_a_folder_of_no_layout(task: str, names: list[str], told: str, tmp_path: Path) -> None:
    """The error names the forms that are nearest, in one line."""
    for name in names:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("x\n")
    page, data = find_task(task), tmp_path / "data"
    with pytest.raises(UserError, match=told) as error:
        page.read_files([data], page.recipe(data=data))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"MATLAB 5.0 MAT-file", b"\x00" * 200])
def test_a_damaged_file_of_matlab(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "traindata.mat").write_bytes(content)
    page = find_task("read")
    with pytest.raises(UserError, match=r"traindata.mat is not a file of IIIT5K: it has no traindata with ImgName and"):
        page.read_files([tmp_path / "traindata.mat"], page.recipe(data=tmp_path))


@pytest.mark.parametrize(
    ("settings", "lines", "told"),
    [
        ("train: train.txt\n", ["images/train/99.jpg"], r"train.txt, line 1: there is no file .*99.jpg"),
        ("train: train.txt\n", ["/etc/hostname"], r"train.txt, line 1: there is no file|is outside the folder"),
        ("train: other.txt\n", [], r"data.yaml: there is no list other.txt of train images in "),
        ("train: train.txt\nkpt_shape: [2, 3]\n", [], r"data.yaml has a kpt_shape: its lines have keypoints"),
    ],
)
def test_lists_of_yolo_that_cannot_be(settings: str, lines: list[str], told: str, tmp_path: Path) -> None:
    folder = made_layouts.yolo_lists(tmp_path)
    (folder / "data.yaml").write_text(f"{settings}names: [circle, square]\n")
    if lines:
        made_layouts.write(folder / "train.txt", *lines)
    page = find_task("detect")
    with pytest.raises(UserError, match=told):
        page.read_files(parts_of([folder], page.layouts).train, page.recipe(data=folder))


def test_boxes_label_no_pixels(tmp_path: Path) -> None:
    page, folder = find_task("segment"), made_layouts.yolo(tmp_path)
    with pytest.raises(UserError, match=r"0.jpg have boxes; pixels are labelled by outlines, CLASS X Y X Y X Y"):
        page.read_files([folder / "images" / "train"], page.recipe(data=folder))
