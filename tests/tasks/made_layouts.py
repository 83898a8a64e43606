"""Small data sets in the layouts that people have, as the page of each shows it: 24 examples to train on, 4 to validate
and, where a layout names them, 4 to test on."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import PIL.Image
import scipy.io
import soundfile

TRAIN, HELD = 24, 4

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}


def colour(number: int) -> str:
    return [*COLOURS][number % 3]


def image(path: Path, number: int, width: int = 48) -> str:
    """A picture of one colour; its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 60, (48, width, 3)).astype(np.uint8)
    pixels[12:36, 12:36] = COLOURS[colour(number)]
    PIL.Image.fromarray(pixels).save(path)
    return path.name


def sound(path: Path, number: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    times = np.arange(4000) / 8000
    noise = np.random.default_rng(number).normal(0, 0.01, len(times))
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * (300 + 200 * (number % 3)) * times) + noise, 8000)
    return path.name


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    write(path, json.dumps(value))


def parts(*names: str) -> list[tuple[str, range]]:
    """The parts with the numbers of their examples."""
    counts = [TRAIN, HELD, HELD][: len(names)]
    ends = np.cumsum([0, *counts]).tolist()
    return [(name, range(ends[place], ends[place + 1])) for place, name in enumerate(names)]


def coco_rows(numbers: range, place: Callable[[int], str]) -> list[dict[str, object]]:
    return [{"id": number, "file_name": place(number), "width": 48, "height": 48} for number in numbers]


def coco(folder: Path, kind: str) -> Path:
    for part, numbers in parts("train2017", "val2017"):
        rows = coco_rows(numbers, lambda number, part=part: image(folder / part / f"{number:012}.jpg", number))
        own: dict[str, object] = {"image_id": 0, "category_id": 1, "iscrowd": 0, "area": 576, "bbox": [12, 12, 24, 24]}
        own |= {"segmentation": [[12, 12, 36, 12, 36, 36, 12, 36]]}
        own |= {"keypoints": [12, 24, 2, 36, 24, 2], "num_keypoints": 2}
        notes = [own | {"id": n, "image_id": n, "caption": f"a {colour(n)} square"} for n in numbers]
        category: dict[str, object] = {"id": 1, "name": "square"}
        if kind == "person_keypoints":
            category["keypoints"] = ["left", "right"]
        value = {"images": rows, "annotations": notes, "categories": [category]}
        write_json(folder / "annotations" / f"{kind}_{part}.json", value)
    return folder


def roboflow(folder: Path) -> Path:
    """As Roboflow exports COCO: images and a file in the folder of each split, and a category that has no object."""
    for part, numbers in parts("train", "valid", "test"):
        rows = coco_rows(numbers, lambda number, part=part: image(folder / part / f"{number}_jpg.rf.a.jpg", number))
        own = {"category_id": 1, "bbox": [12, 12, 24, 24], "area": 576, "iscrowd": 0}
        notes = [own | {"id": n, "image_id": n, "segmentation": [[12, 12, 36, 12, 36, 36, 12, 36]]} for n in numbers]
        categories = [{"id": 0, "name": "shapes", "supercategory": "none"}, {"id": 1, "name": "square"}]
        value = {"images": rows, "annotations": notes, "categories": categories}
        write_json(folder / part / "_annotations.coco.json", value)
    return folder


def karpathy(folder: Path) -> Path:
    images = [
        {
            "filename": image(folder / "images" / f"{number}.jpg", number),
            "sentences": [{"raw": f"a {colour(number)} square", "tokens": []}],
            "split": part,
        }
        for part, numbers in parts("train", "val", "test")
        for number in numbers
    ]
    write_json(folder / "dataset_flickr8k.json", {"images": images, "dataset": "flickr8k"})
    return folder / "dataset_flickr8k.json"


def flickr(folder: Path) -> Path:
    lines = []
    for part, numbers in parts("train", "dev", "test"):
        names = [image(folder / "Flicker8k_Dataset" / f"{number}.jpg", number) for number in numbers]
        lines += [f"{name}#0\ta {colour(number)} square ." for name, number in zip(names, numbers, strict=True)]
        write(folder / f"Flickr_8k.{part}Images.txt", *names)
    write(folder / "Flickr8k.token.txt", *lines)
    return folder


def vqa(folder: Path) -> Path:
    for part, numbers in parts("train2014", "val2014"):
        for number in numbers:
            image(folder / part / f"COCO_{part}_{number:012}.jpg", number)
        asked = [{"question_id": n * 10, "image_id": n, "question": "what colour is it?"} for n in numbers]
        answers = [
            {
                "question_id": number * 10,
                "image_id": number,
                "multiple_choice_answer": colour(number),
                "answer_type": "other",
                "answers": [{"answer_id": n, "answer": colour(number)} for n in range(10)],
            }
            for number in numbers
        ]
        write_json(folder / f"v2_OpenEnded_mscoco_{part}_questions.json", {"questions": asked})
        write_json(folder / f"v2_mscoco_{part}_annotations.json", {"annotations": answers})
    return folder


def gqa(folder: Path) -> Path:
    for part, numbers in parts("train", "val", "testdev"):
        rows = {}
        for number in numbers:
            image(folder / "images" / f"{number}.jpg", number)
            rows[f"q{number}"] = {"imageId": f"{number}", "question": "what colour?", "answer": colour(number)}
        write_json(folder / f"{part}_balanced_questions.json", rows)
    return folder


def librispeech(folder: Path) -> Path:
    for part, numbers in parts("train-clean-100", "dev-clean", "test-clean"):
        chapter = folder / "LibriSpeech" / part / f"{numbers[0]}" / "7"
        lines = []
        for number in numbers:
            name = f"{numbers[0]}-7-{number:04}"
            sound(chapter / f"{name}.flac", number)
            lines.append(f"{name} {colour(number).upper()}")
        write(chapter / f"{numbers[0]}-7.trans.txt", *lines)
    return folder


def common_voice(folder: Path) -> Path:
    for part, numbers in parts("train", "dev", "test"):
        lines = ["client_id\tpath\tsentence\tup_votes"]
        lines += [f"c{n}\t{sound(folder / 'clips' / f'common_{n}.wav', n)}\t{colour(n)}\t2" for n in numbers]
        write(folder / f"{part}.tsv", *lines)
    return folder


def kaldi(folder: Path) -> Path:
    for part, numbers in parts("train", "dev", "test"):
        place = folder / "data" / part
        names = {number: sound(place / "wav" / f"utt{number}.wav", number) for number in numbers}
        write(place / "wav.scp", *(f"utt{number} wav/{name}" for number, name in names.items()))
        write(place / "text", *(f"utt{number} {colour(number)}" for number in numbers))
        write(place / "utt2spk", *(f"utt{number} ada" for number in numbers))
    return folder


def nemo(folder: Path) -> Path:
    for part, numbers in parts("train", "dev", "test"):
        rows = [
            {"audio_filepath": f"wav/{sound(folder / 'wav' / f'{n}.wav', n)}", "duration": 0.5, "text": colour(n)}
            for n in numbers
        ]
        write(folder / f"{part}_manifest.json", *map(json.dumps, rows))
    return folder


def speechbrain(folder: Path) -> Path:
    for part, numbers in parts("train", "valid", "test"):
        rows = {
            f"u{n}": {
                "wav": f"{{data_root}}/wav/{sound(folder / 'wav' / f'{n}.wav', n)}",
                "length": 0.5,
                "spk_id": "ada",
                "words": colour(n),
            }
            for n in numbers
        }
        write_json(folder / f"{part}.json", rows)
    return folder


def icdar(folder: Path) -> Path:
    for part, numbers in parts("train", "test"):
        lines = [f'{image(folder / part / f"word_{n}.png", n, 96)}, "{colour(n)}"' for n in numbers]
        write(folder / part / "gt.txt", *lines)
    return folder


def mjsynth(folder: Path) -> Path:
    for part, numbers in parts("train", "val", "test"):
        names = [image(folder / "2425" / "1" / f"{n}_{colour(n)}_{n}.jpg", n, 96) for n in numbers]
        write(folder / f"annotation_{part}.txt", *(f"./2425/1/{name} 7" for name in names))
    return folder


def icdar_site(folder: Path) -> Path:
    """As its site gives the images of 2015: the words of the test part are in a file of their own."""
    for part, numbers in parts("training", "test"):
        place = folder / f"ch4_{part}_word_images_gt"
        lines = [f'{image(place / f"word_{n}.png", n, 96)}, "{colour(n)}"' for n in numbers]
        write(place / "gt.txt" if part == "training" else folder / "Challenge4_Test_Task3_GT.txt", *lines)
    return folder


def mjsynth_archive(folder: Path) -> Path:
    (folder / "mnt/ramdisk/max/90kDICT32px").mkdir(parents=True)
    mjsynth(folder / "mnt/ramdisk/max/90kDICT32px")
    return folder


def iiit5k_rows(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for part, numbers in parts("train", "test"):
        yield part, [(f"{part}/{image(folder / part / f'{n}_1.png', n, 96)}", colour(n).upper()) for n in numbers]


def iiit5k(folder: Path) -> Path:
    """Its own files: an array of records, with lists of words to choose from, which nobody reads here."""
    kinds = [("ImgName", object), ("GroundTruth", object), ("smallLexi", object)]
    for part, rows in iiit5k_rows(folder):
        records = np.array([(name, word, np.array([word, "other"], object)) for name, word in rows], kinds)
        scipy.io.savemat(folder / f"{part}data.mat", {f"{part}data": records[None]})
    return folder


def iiit5k_tables(folder: Path) -> Path:
    for part, rows in iiit5k_rows(folder):
        write(folder / f"{part}data.csv", "ImgName,GroundTruth", *(f"{name},{word}" for name, word in rows))
    return folder


def word_lists(folder: Path) -> Path:
    for part, numbers in parts("train", "val", "test"):
        names = [image(folder / part / f"{n}.png", n, 96) for n in numbers]
        rows = zip(names, numbers, strict=True)
        write(folder / f"{part}_label.txt", *(f"{part}/{name} {colour(number)}" for name, number in rows))
    return folder


def squad(folder: Path) -> Path:
    for part, numbers in parts("train", "dev"):
        paragraphs = [
            {
                "context": f"The cat is {colour(n)}. The dog of house {n} is {colour(n + 1)}.",
                "qas": [
                    {"id": f"{n}", "question": "What is the cat?", "answers": [{"text": colour(n), "answer_start": 11}]}
                ],
            }
            for n in numbers
        ]
        write_json(folder / f"{part}-v1.1.json", {"version": "1.1", "data": [{"title": "A", "paragraphs": paragraphs}]})
    return folder


WORDS = (("the", "DET", "O"), ("cat", "NOUN", "B-PER"), ("sees", "VERB", "O"))


def conll_u(folder: Path) -> Path:
    for part, numbers in parts("train", "dev", "test"):
        lines = []
        for number in numbers:
            lines += [f"# sent_id = {number}", "1-2\tthecat\t_\t_\t_\t_\t_\t_\t_\t_"]
            cells = [f"{n}\t{word}\t{word}\t{tag}" + "\t_" * 6 for n, (word, tag, _) in enumerate(WORDS, 1)]
            lines += [*cells[: 2 + number % 2], "2.1\tgone\t_\tNOUN\t_\t_\t_\t_\t_\t_", ""]
        write(folder / f"en_ewt-ud-{part}.conllu", *lines)
    return folder


def conll(folder: Path) -> Path:
    for part, numbers in parts("train", "testa", "testb"):
        lines = ["-DOCSTART- -X- -X- O", ""]
        for number in numbers:
            lines += [*(f"{word} {tag} I-NP {name}" for word, tag, name in WORDS[: 2 + number % 2]), ""]
        write(folder / f"eng.{part}", *lines)
    return folder


def voc(folder: Path, ending: str = ".jpg") -> Path:
    mask = np.zeros((48, 48), np.uint8)
    mask[12:36, 12:36], mask[0, 0] = 1, 255
    for part, numbers in parts("train", "val"):
        for number in numbers:
            name = image(folder / "JPEGImages" / f"2007_{number}{ending}", number)
            (folder / "SegmentationClass").mkdir(exist_ok=True)
            PIL.Image.fromarray(mask).save(folder / "SegmentationClass" / f"2007_{number}.png")
            write(
                folder / "Annotations" / f"2007_{number}.xml",
                f"<annotation><filename>{name}</filename><size><width>48</width><height>48</height></size>",
                "<object><name>aeroplane</name><bndbox><xmin>13</xmin><ymin>13</ymin><xmax>36</xmax><ymax>36</ymax>",
                "</bndbox></object></annotation>",
            )
        for kind in ("Main", "Segmentation"):
            write(folder / "ImageSets" / kind / f"{part}.txt", *(f"2007_{number}" for number in numbers))
    return folder


BOX, OUTLINE = "1 0.5 0.5 0.5 0.5", "1 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75"

NAMES = ("", "names:", "  0: circle", "  1: square")


def yolo(folder: Path, line: str = BOX) -> Path:
    for part, numbers in parts("train", "val", "test"):
        for number in numbers:
            image(folder / "images" / part / f"{number}.jpg", number)
            write(folder / "labels" / part / f"{number}.txt", line)
    write(
        folder / "data.yaml",
        *("path: ../datasets/squares  # dataset root", "train: images/train", "val: images/val", "test: images/test"),
        *NAMES,
    )
    return folder


def yolo_lists(folder: Path, line: str = BOX) -> Path:
    """Parts are files that list images."""
    yolo(folder, line)
    for part, numbers in parts("train", "val", "test"):
        write(folder / f"{part}.txt", *(f"./images/{part}/{number}.jpg" for number in numbers))
    write(folder / "data.yaml", "train: train.txt", "val: val.txt", "test: ./test.txt", *NAMES)
    return folder


def yolo_of_roboflow(folder: Path, line: str = OUTLINE) -> Path:
    """A folder for each split, named as from another folder."""
    for part, numbers in parts("train", "valid", "test"):
        for number in numbers:
            image(folder / part / "images" / f"{number}.jpg", number)
            write(folder / part / "labels" / f"{number}.txt", line)
    places = (f"{key}: ../{part}/images" for key, part in (("train", "train"), ("val", "valid"), ("test", "test")))
    write(folder / "data.yaml", *places, "", "nc: 2", "names: ['circle', 'square']")
    return folder


def class_folders(folder: Path) -> Path:
    for part, numbers in parts("train", "val", "test"):
        for number in numbers:
            image(folder / part / colour(number) / f"{number}.jpg", number)
    return folder


def tables(folder: Path) -> Path:
    for part, numbers in parts("train", "validation", "test"):
        lines = [f"{colour(number)},this is text {number}" for number in numbers]
        write(folder / f"{part}.csv", "sentiment,review", *lines)
    return folder


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "split folders": class_folders,
    "split tables": tables,
    "COCO captions": lambda folder: coco(folder, "captions"),
    "Karpathy's splits": karpathy,
    "Flickr8k and Flickr30k": flickr,
    "VQA v2": vqa,
    "GQA": gqa,
    "LibriSpeech": librispeech,
    "Common Voice": common_voice,
    "Kaldi": kaldi,
    "NeMo manifests": nemo,
    "SpeechBrain": speechbrain,
    "ICDAR": icdar,
    "MJSynth": mjsynth,
    "IIIT5K": iiit5k,
    "MMOCR's lists": word_lists,
    "SQuAD": squad,
    "CoNLL-U": conll_u,
    "CoNLL 2003": conll,
    "COCO": lambda folder: coco(folder, "instances"),
    "Pascal VOC": voc,
    "YOLO": yolo,
    "COCO masks": lambda folder: coco(folder, "instances"),
    "Pascal VOC masks": voc,
    "YOLO masks": lambda folder: yolo(folder, OUTLINE),
    "COCO keypoints": lambda folder: coco(folder, "person_keypoints"),
}
"""What writes a data set in each layout, and returns what is given to `--data`."""

OTHER_FORMS: dict[str, dict[str, Callable[[Path], Path]]] = {
    "COCO": {"of Roboflow": roboflow},
    "COCO masks": {"of Roboflow": roboflow},
    "Pascal VOC": {"as PNG": lambda folder: voc(folder, ".png")},
    "Pascal VOC masks": {"as PNG": lambda folder: voc(folder, ".png")},
    "YOLO": {"of lists": yolo_lists, "of outlines, from Roboflow": yolo_of_roboflow},
    "YOLO masks": {"of lists": lambda folder: yolo_lists(folder, OUTLINE), "from Roboflow": yolo_of_roboflow},
    "ICDAR": {"of its site": icdar_site},
    "MJSynth": {"of its archive": mjsynth_archive},
    "IIIT5K": {"as tables": iiit5k_tables},
}
"""Other forms of a layout that people have."""
