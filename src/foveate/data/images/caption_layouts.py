"""Layouts of captioned images: COCO, Karpathy's splits, and Flickr8k and Flickr30k."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate import limits
from foveate.config import from_dict
from foveate.data.folders import IMAGE_FOLDERS, listed_beside
from foveate.data.images.coco import CocoCaption, CocoFile, CocoImage, coco_parts, find_image
from foveate.data.layout import DataLayout, Parts, named_parts
from foveate.data.table import CAPTION, IMAGE, DataTable
from foveate.data.text.files import read_lines, read_sentences
from foveate.errors import UserError, show_value
from foveate.files import is_file, read_json_value

LONGEST = 2_000
"""Most characters of a caption."""

FLICKR_FOLDERS = (
    *(*IMAGE_FOLDERS, "Flicker8k_Dataset", "Flickr8k_Dataset"),
    *("flickr30k_images", "flickr30k-images", "flickr30k_images/flickr30k_images"),
)
"""Where the images are, from the file of captions."""

TOKENS = ("Flickr8k.token.txt", "results_20130124.token")
"""The files with `NAME.jpg#0<TAB>caption` on each line of Flickr8k and Flickr30k."""

Captions = tuple[dict[Path, list[str]], int]
"""The captions of each image, and how many are empty."""


def check_length(caption: str, where: str) -> None:
    """Raise UserError for a caption of more characters than are read."""
    if len(caption) > LONGEST:
        raise UserError(f"{where}: a caption of {len(caption):,} characters; at most {LONGEST:,} are read")


def _in_flickr(path: Path) -> Callable[[str], Path]:
    return lambda name: listed_beside(path.parent, name, str(path), FLICKR_FOLDERS)


def _gathered(path: Path, captions: Iterable[tuple[str, str]], find: Callable[[str], Path]) -> Captions:
    """The captions of each image, of the names of files and a caption each."""
    found: dict[Path, list[str]] = {}
    files: dict[str, Path] = {}
    empty = 0
    for name, caption in captions:
        tidy = " ".join(caption.split())
        if not tidy:
            empty += 1
            continue
        check_length(tidy, f"{path}, {name}")
        if name not in files:
            files[name] = find(name)
        found.setdefault(files[name], []).append(tidy)
    return found, empty


def _coco(path: Path) -> Captions | None:
    if path.suffix.lower() != ".json":
        return None
    content = read_json_value(path, limits.TABLE)
    if not isinstance(content, dict) or not {"images", "annotations"} & content.keys():
        return None
    if _is_karpathy(content):
        return _karpathy_captions(path, content, "")
    table = CocoFile(path, "file of COCO captions", ("images", "annotations"), content)
    files = {one.id: one.file_name for one in table.rows("images", CocoImage)}
    captions = []
    for one in table.rows("annotations", CocoCaption):
        if one.image_id not in files:
            raise UserError(f"{path} has a caption of the image {show_value(one.image_id)}, which it does not list")
        captions.append((files[one.image_id], one.caption))
    return _gathered(path, captions, lambda name: find_image(path, name))


@dataclass
class KarpathySentence:
    """A caption."""

    raw: str


@dataclass
class KarpathyImage:
    """An image with its captions, of Karpathy and Fei-Fei 2015."""

    filename: str
    sentences: tuple[KarpathySentence, ...]
    split: str
    filepath: str = ""
    """The folder of the file, such as val2014."""


def _is_karpathy(content: dict[str, Any]) -> bool:
    images = content.get("images")
    return isinstance(images, list) and bool(images) and isinstance(images[0], dict) and "sentences" in images[0]


SPLITS = {"": ("train", "restval", "val", "test"), "train": ("train", "restval"), "val": ("val",), "test": ("test",)}
"""The splits of a part."""


def _karpathy_captions(path: Path, content: dict[str, Any], part: str) -> Captions:
    captions = []
    for number, values in enumerate(content["images"]):
        try:
            image = from_dict(KarpathyImage, values, f"images[{number}]", others=True)
        except UserError as error:
            raise UserError(f"{path} is not a file of Karpathy's splits: {error}") from None
        if image.split in SPLITS[part]:
            name = str(Path(image.filepath) / image.filename)
            captions += [(name, sentence.raw) for sentence in image.sentences]
    return _gathered(path, captions, _in_flickr(path))


def _is_split(path: Path) -> bool:
    return re.fullmatch(r"dataset.*\.json", path.name, re.I) is not None and is_file(path)


def _karpathy_parts(path: Path) -> Parts | None:
    """Those of a file, or of the only one in a folder."""
    if path.is_dir():
        files = [file for file in path.iterdir() if _is_split(file)]
        return _karpathy_parts(files[0]) if len(files) == 1 else None
    if not _is_split(path):
        return None
    content = read_json_value(path, limits.TABLE)
    if not isinstance(content, dict) or not _is_karpathy(content):
        return None
    splits = {one.get("split") for one in content["images"] if isinstance(one, dict)}
    named = [(Path(f"{path}:{part}"),) if splits & {*SPLITS[part]} else () for part in ("train", "val", "test")]
    return Parts(*named)


def _karpathy(path: Path) -> Captions | None:
    file, _, part = str(path).rpartition(":")
    if part not in SPLITS or not file.endswith(".json"):
        return None
    return _karpathy_captions(Path(file), read_json_value(Path(file), limits.TABLE), part)


def _flickr_csv(path: Path) -> Captions | None:
    """`captions.txt` of Flickr8k, and `results.csv` of Flickr30k, whose header is CSV whatever the name ends in."""
    if path.name.lower() not in ("captions.txt", "results.csv") or not is_file(path):
        return None
    if not re.match(r"\W*image(_name)?\s*[,|]", next(read_lines(path), ""), re.I):
        return None
    rows = DataTable(path, (IMAGE, CAPTION), empty_cells=True, form="csv")
    return _gathered(path, ((row.cells[0], row.cells[1]) for row in rows if row is not None), _in_flickr(path))


def _tokens(path: Path) -> Captions | None:
    """All of a file of tokens, or those of the images that a file such as `Flickr_8k.trainImages.txt` names."""
    listed = re.fullmatch(r"Flickr_?\d+k\.\w+Images\.txt", path.name, re.I)
    if not listed and path.name not in TOKENS:
        return None
    chosen = {*filter(None, read_sentences(path))} if listed else None
    file = next((path.parent / name for name in TOKENS if is_file(path.parent / name)), path.parent / TOKENS[0])
    captions = []
    for number, line in enumerate(read_sentences(file), 1):
        place, tab, caption = line.partition("\t")
        name = place.partition("#")[0]
        if line and not tab:
            raise UserError(f"{file}, line {number}: 0 tabs, but a line must be NAME#NUMBER<TAB>caption")
        if line and (chosen is None or name in chosen):
            captions.append((name, caption))
    return _gathered(file, captions, _in_flickr(file))


def _flickr_parts(folder: Path) -> Parts | None:
    lists = [rf"Flickr_?\d+k\.{name}Images\.txt" for name in ("train", "(dev|val)", "test")]
    return named_parts(folder, *lists) or named_parts(folder, r"captions\.txt|results\.csv", "(?!)")


CAPTIONED: tuple[DataLayout[Captions], ...] = (
    DataLayout(
        "COCO captions",
        "annotations/captions_train2017.json, train2017/ (or images beside the file)",
        lambda folder: coco_parts(folder, "captions"),
        _coco,
    ),
    DataLayout(
        "Karpathy's splits", "dataset_flickr8k.json, or the folder with one; images/", _karpathy_parts, _karpathy
    ),
    DataLayout(
        "Flickr8k and Flickr30k",
        "captions.txt or results.csv, Images/; or Flickr8k.token.txt with Flickr_8k.trainImages.txt",
        _flickr_parts,
        lambda path: _flickr_csv(path) or _tokens(path),
    ),
)
