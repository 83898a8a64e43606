"""Damages files and requests at random: readers succeed or raise one UserError, soon and in little memory.

`make fuzz` makes 20,000 tries; `python tests/fuzz/fuzzing.py --tries 500 --seed 7 --only folder` others. The seed of a
try is printed where it fails, and `--seed SEED --tries 1` with its subject repeats it.
"""

import argparse
import io
import json
import random
import resource
import shutil
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import PIL.Image

sys.path.append(str(Path(__file__).parents[1] / "tasks"))

from explorer_requests import Explorers, explore, write_tone
from hostile_json import spoil_folder, spoil_tokenizer

from foveate.cli import main
from foveate.data.images.decoding import read_image
from foveate.data.sounds.files import read_sound
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.errors import UserError, one_line
from foveate.interop.gguf import read_gguf
from foveate.tasks import find_task
from foveate.tasks.completion.multiple_choice import read_questions
from foveate.tasks.task import Task

SECONDS = 15
"""The longest that a try may compute: other programs may keep it waiting."""

MEGABYTES = 2048
"""How much memory a try may add."""

VALUES = [
    *(None, True, False, 0, -1, 1.5, 10**9, 10**400, float("nan"), float("inf"), "", "x" * 5000),
    *("\ud800", "\0", "../x", [], {}, [None], {"a": 1}, [[1, 2], [3]], "gelu", "text", ["a", "b"], {"0": "a"}),
]
"""Values that stand where others belong."""


MAP = """<map name="l"><node x="0" y="0" item="C"/><node x="1" y="0" item=""/>
<edge node1="0,0" node2="1,0" floor="brick" wall="fish"/></map>"""

ROUTES = """<examples><example id="one" map="L"><instruction>go on</instruction>
<path>(0,0,90) (1,0,90)</path></example></examples>"""

VOC = """<annotation><filename>a.png</filename><size><width>31</width><height>24</height></size>
<object><name>cat</name><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object></annotation>"""


def read_examples(name: str, data: Path, place: Path) -> Iterable[Any]:
    """The examples of a user's file, as the task of this name reads it."""
    task = find_task(name)
    if isinstance(task, Task):
        return task.read((data,), task.recipe(out=place / "out"))
    return task(out=place / "out").read((data,))


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def damage_bytes(data: bytes, draw: random.Random) -> bytes:
    """The data with a few bits flipped, a part cut out, doubled or filled with zeros, or its end cut off."""
    content = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(content) + 1)
        end = min(len(content), place + draw.choice([1, 2, 8, 64, 1024]))
        match draw.randrange(6):
            case 0 if content:
                content[place % len(content)] ^= 1 << draw.randrange(8)
            case 1:
                del content[place:end]
            case 2:
                content[place:place] = content[place:end]
            case 3:
                content[place:end] = bytes(end - place)
            case 4:
                content[place:place] = draw.randbytes(draw.randint(1, 16))
            case 5:
                del content[place:]
    return bytes(content)


def damage_json(text: str, draw: random.Random) -> str:
    """The JSON with one value exchanged or removed; sometimes lists in lists instead."""
    tree = json.loads(text)
    places: list[tuple[dict | list, object]] = []

    def walk(part: object) -> None:
        if isinstance(part, dict | list):
            for key in list(part) if isinstance(part, dict) else range(len(part)):
                places.append((part, key))
                walk(part[key])

    walk(tree)
    part, key = draw.choice(places)
    kind = draw.randrange(10)
    if kind == 0:
        del part[key]  # type: ignore[arg-type]
    elif kind == 1:
        part[key] = "DEEP"  # type: ignore[index]
    else:
        part[key] = draw.choice(VALUES)  # type: ignore[index]
    return json.dumps(tree).replace('"DEEP"', nested(draw.choice([3, 500, 100_000])))


def damage_header(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file whose header, which is JSON, is damaged."""
    size = int.from_bytes(data[:8], "little")
    header = damage_json(data[8 : 8 + size].decode(), draw).encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def damage_checkpoint(data: bytes, draw: random.Random) -> bytes:
    """A checkpoint with another value in what its header says of the training, or another tensor."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    if draw.random() < 0.5:
        name = draw.choice(["progress", "fixed", "tied", "format"])
        text = header["__metadata__"][name]
        header["__metadata__"][name] = damage_json(text, draw) if text[0] == "{" and text != "{}" else nested(9)
    else:  # the same bytes, as numbers of another type, or under another name
        names = sorted(header.keys() - {"__metadata__"})
        one, other = draw.choice(names), draw.choice(names)
        header[one], header[other] = header[other], header[one]
        if draw.random() < 0.5 and header[one]["dtype"] == "F32":
            header[one]["dtype"] = draw.choice(["I32", "U32"])
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def damage_file(path: Path, draw: random.Random) -> None:
    if path.suffix == ".json" and draw.random() < 0.7:
        path.write_text(damage_json(path.read_text(), draw))
    elif path.suffix == ".safetensors" and draw.random() < 0.5:
        path.write_bytes(damage_header(path.read_bytes(), draw))
    else:
        path.write_bytes(damage_bytes(path.read_bytes(), draw))


class Subjects:
    """What is damaged and read, made once in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = "".join(f"good\tfine words {n}\nbad\tpoor words {n}\n" for n in range(20))
        self._trained()
        self._images()
        write_tone(folder / "tone.wav", 4000)
        self.explorers = Explorers(folder, folder / "run")

    def _trained(self) -> None:
        (self.folder / "rows.tsv").write_text(self.rows)
        sizes = ["--architecture.width", "8", "--architecture.embedding", "8", "--steps", "1", "--threads", "1"]
        out = ["--data", str(self.folder / "rows.tsv"), "--out", str(self.folder / "run")]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main(["train", "classify", *out, *sizes])
        self.again = ["train", "classify", *out[:2], *sizes, "--steps", "2"]
        shutil.copytree(self.folder / "run", self.folder / "training")
        shutil.rmtree(self.folder / "run" / "checkpoints")

    def _images(self) -> None:
        image = PIL.Image.fromarray(np.random.default_rng(1).integers(0, 255, (24, 31, 3), np.uint8))
        for name in ("image.png", "image.jpg", "image.gif", "image.webp", "image.bmp"):
            image.save(self.folder / name)
        image.save(self.folder / "scans.jpg", progressive=True)

    def public(self, name: str) -> Path:
        """A Hugging Face folder of a tiny random model."""
        from tiny_folders import make

        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(name, self.folder)

    def run_folder(self, draw: random.Random, place: Path) -> None:
        shutil.copytree(self.folder / "run", place / "run")
        files = sorted(path for path in (place / "run").iterdir() if path.name != "metrics.jsonl")
        damage_file(draw.choice(files), draw)
        main(["run", str(place / "run"), "fine words"])

    def checkpoint(self, draw: random.Random, place: Path) -> None:
        """A training goes on from a checkpoint."""
        shutil.copytree(self.folder / "training", place / "run")
        (path,) = (place / "run" / "checkpoints").glob("*.safetensors")
        damage = draw.choice([damage_checkpoint, damage_checkpoint, damage_header, damage_bytes])
        path.write_bytes(damage(path.read_bytes(), draw))
        with redirect_stderr(io.StringIO()) as told:  # which has the lines of a training that goes well
            try:
                main([*self.again, "--out", str(place / "run")])
            finally:
                sys.stdout.write(told.getvalue())

    def tokenizer(self, draw: random.Random, place: Path) -> None:
        """A tokenizer of a run of our own, or of a public folder."""
        (source,) = (self.folder / "run").glob("*tokenizer.json")
        path = place / "tokenizer.json"
        shutil.copy(source, path)
        spoil_tokenizer(path, draw) if draw.random() < 0.7 else path.write_text(damage_json(path.read_text(), draw))
        for load in (lambda: load_text_tokenizer(path), lambda: PublicTokenizer.load(place)):
            tokenizer: Any = load()
            (ids,) = tokenizer.encode(["the keeper lit a fine lamp " * 20])
            tokenizer.decode([ids])
            tokenizer.pieces(ids)

    def foreign(self, draw: random.Random, place: Path) -> None:
        """A public folder, with hostile values under names that libraries read."""
        name = draw.choice(["gpt2", "llama", "bert", "vit", "whisper"])
        shutil.copytree(self.public(name), place / name)
        spoil_folder(place / name, draw)
        self._ask(place / name, draw.choice(["run", "look"]), place)

    def recipe(self, draw: random.Random, place: Path) -> None:
        shutil.copy(self.folder / "run" / "config.json", place / "recipe.json")
        damage_file(place / "recipe.json", draw)
        main(["train", "classify", "--config", str(place / "recipe.json"), "--data", str(place / "none.tsv")])

    def table(self, draw: random.Random, place: Path) -> None:
        content = draw.choice([self.rows.encode(), b"they\tPRON\nwalk\tVERB\n\n" * 20, "één\t二\n".encode() * 30])
        (place / "table.tsv").write_bytes(damage_bytes(content, draw))
        list(read_examples(draw.choice(["classify", "tag", "reward"]), place / "table.tsv", place))

    def image(self, draw: random.Random, place: Path) -> None:
        path = draw.choice(sorted([*self.folder.glob("image.*"), self.folder / "scans.jpg"]))
        shutil.copy(path, place / path.name)
        damage_file(place / path.name, draw)
        read_image(place / path.name)

    def sound(self, draw: random.Random, place: Path) -> None:
        shutil.copy(self.folder / "tone.wav", place / "tone.wav")
        damage_file(place / "tone.wav", draw)
        read_sound(place / "tone.wav").at(16_000)

    def explorer(self, draw: random.Random, place: Path) -> None:
        """A request or an upload of the explorer, whose server answers on."""
        explore(self.explorers, draw, damage_bytes)

    def metrics(self, draw: random.Random, place: Path) -> None:
        """The rows of a training, of which a page is made."""
        measured = {"bleu": 1.5, "loss": 2.0}
        rows: list[dict] = [{"step": step, "epoch": 1, "seconds": 2.5, "loss": 3.0} for step in (1, 2)]
        rows += [{"step": 3, "validation": measured}, {"step": 4, "final": {"kept": "4", "compared": {"a": measured}}}]
        number = draw.randrange(len(rows))
        lines = [damage_json(json.dumps(row), draw) if row is rows[number] else json.dumps(row) for row in rows]
        (place / "metrics.jsonl").write_bytes(damage_bytes("\n".join(lines).encode(), draw))
        main(["report", str(place), "--out", str(place / "report.html")])

    def gguf(self, draw: random.Random, place: Path) -> None:
        """A file of two tensors and a text; each number of its header may be another."""
        text = struct.pack("<Q", 4) + b"name"
        head = b"GGUF" + struct.pack("<IQQ", 3, 2, 1) + text + struct.pack("<I", 8) + text
        head += text + struct.pack("<IQQIQ", 2, 3, 2, 0, 0) + text + struct.pack("<IQIQ", 1, 32, 8, 32)
        (place / "a.gguf").write_bytes(damage_bytes(head + bytes(-len(head) % 32 + 32 + 34), draw))
        file = read_gguf(place / "a.gguf")
        for name in file.shapes:
            file.tensor(name)

    def public_run(self, draw: random.Random, place: Path) -> None:
        self._public(draw, place, draw.choice(["gpt2", "llama", "whisper"]), "run")

    def public_look(self, draw: random.Random, place: Path) -> None:
        self._public(draw, place, draw.choice(["gpt2", "llama", "bert", "vit", "whisper"]), "look")

    def _public(self, draw: random.Random, place: Path, name: str, verb: str) -> None:
        shutil.copytree(self.public(name), place / name)
        damage_file(draw.choice(sorted((place / name).iterdir())), draw)
        self._ask(place / name, verb, place)

    def _ask(self, folder: Path, verb: str, place: Path) -> None:
        given = {"vit": self.folder / "image.png", "whisper": self.folder / "tone.wav", "bert": "the [MASK] lit"}
        more = ["--out", str(place / "page.html")] if verb == "look" else []
        if verb == "run" and folder.name in ("gpt2", "llama"):
            more = ["--max-new-tokens", "3"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of transformers, which looks at models of others
            main([verb, str(folder), str(given.get(folder.name, "the keeper lit")), *more])

    def examples(self, draw: random.Random, place: Path) -> None:
        """Files of examples of other kinds: JSON, XML, arrays, tables."""
        shutil.copy(self.folder / "image.png", place / "a.png")
        name, content, task = draw.choice([*self._examples.values()])
        (place / "maps").mkdir()
        (place / "maps" / "map-l.xml").write_text(MAP)
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
        damage_file(draw.choice([place / name, place / name, place / "maps" / "map-l.xml"]), draw)
        given = place / name if task != "control" else (place / name).parent
        if task == "questions":
            return void(read_questions(given, []))
        return void(list(read_examples(task, place if name.endswith("voc.xml") else given, place)))

    @cached_property
    def _examples(self) -> dict[str, tuple[str, bytes, str]]:
        images = [{"id": 1, "file_name": "a.png", "width": 31, "height": 24}]
        box = {"id": 5, "image_id": 1, "category_id": 2, "bbox": [3, 4, 10.5, 8], "iscrowd": 0}
        boxes = {"images": images, "annotations": [box], "categories": [{"id": 2, "name": "cat"}]}
        captions = {"images": images, "annotations": [{"image_id": 1, "caption": "a cat"}]}
        route = {"instruction": "go on", "map": "maps/map-l.xml", "path": [[0, 0, 90], [1, 0, 90]]}
        array, question = io.BytesIO(), {"query": "the old", "choices": ["keeper", "lamp"], "gold": 1}
        np.savez_compressed(array, pixels=np.zeros((3, 7, 7, 3), np.uint8), actions=np.array([0, 1, 2]))
        rows = {
            "boxes.json": (boxes, "detect"),
            "captions.json": (captions, "caption"),
            "routes.json": ([route], "walk"),
            "questions.jsonl": (question, "questions"),
            "routes.xml": (ROUTES, "walk"),
            "voc.xml": (VOC, "detect"),
            "captions.tsv": ("a.png\ta cat\n", "caption"),
            "answers.tsv": ("a.png\twhat is it?\tcat\n", "answer"),
            "pairs.tsv": ("yes\tfirst text\tsecond text\n" * 9, "pair"),
            "episodes/one.npz": (array.getvalue(), "control"),
        }
        return {name: (name, _encoded(value), task) for name, (value, task) in rows.items()}


def _encoded(value: object) -> bytes:
    """The content of a file: what is not a text or bytes is written as JSON."""
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def void(_: object) -> None:
    """Nothing of what was read."""


SUBJECTS: dict[str, Callable[[Subjects, random.Random, Path], None]] = {
    "folder": Subjects.run_folder,
    "checkpoint": Subjects.checkpoint,
    "tokenizer": Subjects.tokenizer,
    "recipe": Subjects.recipe,
    "table": Subjects.table,
    "image": Subjects.image,
    "sound": Subjects.sound,
    "examples": Subjects.examples,
    "metrics": Subjects.metrics,
    "gguf": Subjects.gguf,
    "explorer": Subjects.explorer,
    "public-run": Subjects.public_run,
    "public-look": Subjects.public_look,
    "foreign": Subjects.foreign,
}


def attempt(read: Callable[[Subjects, random.Random, Path], None], subjects: Subjects, seed: int) -> str | None:
    """What is wrong with how a reader takes a damaged file; None if nothing is."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told, caught = io.StringIO(), None
    with TemporaryDirectory() as place, redirect_stderr(told), redirect_stdout(io.StringIO()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                read(subjects, random.Random(seed), Path(place))
        except UserError as error:
            told.write(f"{one_line(error)}\n")  # as the command line does
        except SystemExit as error:
            caught = None if error.code in (0, 2) else f"exit status {error.code}"
        except BaseException:
            caught = traceback.format_exc()
    if caught is None and len(told.getvalue().splitlines()) > 1:
        caught = f"several lines: {told.getvalue()!r}"
    if caught is None and (seconds := time.process_time() - began) > SECONDS:
        caught = f"{seconds:.0f} seconds"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return f"{grown:,.0f} MB of memory" if caught is None and grown > MEGABYTES else caught


def fuzz(tries: int, seed: int, only: str | None = None) -> list[str]:
    """What went wrong in this many tries of all subjects in turn."""
    names, wrong = [only] if only else [*SUBJECTS], []
    with TemporaryDirectory() as folder:
        subjects = Subjects(Path(folder))
        for number in range(tries):
            name = names[number % len(names)]
            found = attempt(SUBJECTS[name], subjects, seed + number)
            if found is not None:
                wrong.append(f"--only {name} --seed {seed + number} --tries 1: {found}")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SUBJECTS)
    options = parser.parse_args()
    failures = fuzz(options.tries, options.seed, options.only)
    print("\n".join(failures), f"{len(failures)} of {options.tries:,} tries went wrong", sep="\n")
    sys.exit(bool(failures))
