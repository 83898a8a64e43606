"""Images with boxes as Pascal VOC annotates them: an .xml file for each image."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from foveate.data.folders import files_below, folders_in, listed_file
from foveate.data.images.labelled import images_below
from foveate.data.layout import Parts, inner_folder, named_parts
from foveate.data.text.files import read_sentences
from foveate.errors import UserError
from foveate.files import is_file
from foveate.limits import TABLE
from foveate.xml_files import read_xml

_YEAR = re.compile(r"VOC\d{4}", re.I)

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""


CROWD, DIFFICULT = "crowds", "difficult objects"
"""What the marks of COCO (`iscrowd`) and Pascal VOC (`difficult`) make of an object: a model need not find it, and what
it finds there is no mistake."""


class MarkedObject(NamedTuple):
    """An object of an annotation."""

    label: str
    box: Box
    mark: str = ""
    """CROWD, DIFFICULT, or empty for an object to find."""


class AnnotatedFile(NamedTuple):
    """An image file, its width and height as its annotation has them, and its objects."""

    file: Path
    size: tuple[float, float]
    """Below 1 where the annotation says nothing."""
    objects: Sequence[MarkedObject]


VOC_ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")
"""Pascal VOC has .jpg; programs that write its layout keep what they were given."""

SETS = "ImageSets"
"""The folder with the lists of names of each part."""


def voc_folder(folder: Path) -> list[AnnotatedFile]:
    """The images of a folder with one .xml for each. Raises UserError where there is none, or an image is missing."""
    annotations = files_below(folder, [".xml"])
    if not annotations:
        raise UserError(
            f"{folder} has no annotations: it needs a Pascal VOC .xml file for each image, or give COCO JSON"
        )
    images: dict[str, list[Path]] = {}
    of_stem: dict[str, list[str]] = {}
    for file in images_below(folder):
        images.setdefault(file.name, []).append(file)
        of_stem.setdefault(file.stem, []).append(file.name)
    examples, used = list[AnnotatedFile](), dict[Path, Path]()
    for annotation in annotations:
        root = _parse_xml(annotation)
        file = _image_of(annotation, root, images, of_stem.get(annotation.stem, ()))
        if file in used:
            raise UserError(f"{annotation} and {used[file]} are both about the image {file}")
        used[file] = annotation
        examples.append(_annotated(annotation, root, file))
    return examples


def _annotated(annotation: Path, root: Element, file: Path) -> AnnotatedFile:
    objects = [_thing(annotation, element) for element in root.iter("object")]
    return AnnotatedFile(file, (_number(root, "size/width", 0.0), _number(root, "size/height", 0.0)), objects)


def set_names(path: Path, kind: str) -> list[str] | None:
    """The names of images in a file such as `ImageSets/Main/train.txt`; None for any other file."""
    if path.parent.name != kind or path.parent.parent.name != SETS or not is_file(path):
        return None
    return [line.split()[0] for line in read_sentences(path) if line]


def voc_set(path: Path) -> list[AnnotatedFile] | None:
    """The images that a file of `ImageSets/Main` names; None for any other. Raises UserError for missing files."""
    names = set_names(path, "Main")
    if names is None:
        return None
    root, examples = path.parents[2], []
    for name in names:
        annotation = listed_file(root, f"Annotations/{name}.xml", str(path))
        file = voc_image(root, name, str(path))
        examples.append(_annotated(annotation, _parse_xml(annotation), file))
    return examples


def voc_image(root: Path, name: str, where: str) -> Path:
    """The image of a name: JPEG as Pascal VOC has it, or PNG. Raises UserError where there is none."""
    names = [f"JPEGImages/{name}{ending}" for ending in VOC_ENDINGS]
    return listed_file(root, next((one for one in names if is_file(root / one)), names[0]), where)


def voc_parts(folder: Path, kind: str) -> Parts | None:
    """The files of `ImageSets/KIND` (Main or Segmentation) of a folder, or of the years in a `VOCdevkit`."""
    kit = inner_folder(folder, "VOCdevkit")
    years = [place for place in (folders_in(kit) if kit.is_dir() else []) if _YEAR.fullmatch(place.name)]
    found = [parts for place in (kit, *years) if (parts := _parts_of(place / SETS / kind)) is not None]
    return Parts(*(sum(part, ()) for part in zip(*found, strict=True))) if found else None


def _parts_of(sets: Path) -> Parts | None:
    """Where train.txt is missing, trainval.txt is to train on."""
    names = r"val\.txt", r"test\.txt"
    found = named_parts(sets, r"train\.txt", *names)
    return found if found is None or found.train else named_parts(sets, r"trainval\.txt", *names)


def _parse_xml(path: Path) -> Element:
    root = read_xml(path, "Pascal VOC annotation", TABLE)
    if root.tag != "annotation":
        raise UserError(f"{path} is not a Pascal VOC annotation: it is <{root.tag}>, not <annotation>")
    return root


def _image_of(annotation: Path, root: Element, images: dict[str, list[Path]], own: Sequence[str]) -> Path:
    """The image file that an annotation names; else the one with its `own` name."""
    name = Path((root.findtext("filename") or "").strip()).name
    for candidate in (name, *own):
        found = images.get(candidate, [])
        if len(found) > 1:
            raise UserError(f"{annotation} is about {candidate}, but there are {found[0]} and {found[1]}")
        if found:
            return found[0]
    raise UserError(f"{annotation} is about the image {name or annotation.stem}, which is not in the folder")


def _thing(annotation: Path, element: Element) -> MarkedObject:
    mark = DIFFICULT if _number(element, "difficult", 0.0) else ""
    return MarkedObject(_name(annotation, element), _corners(annotation, element), mark)


def _name(annotation: Path, thing: Element) -> str:
    name = " ".join((thing.findtext("name") or "").split())
    if not name:
        raise UserError(f"{annotation} has an object without a name")
    return name


def _corners(annotation: Path, thing: Element) -> Box:
    """Pascal VOC counts pixels from 1 and names the last ones inside."""
    left, top, right, bottom = (_number(thing, f"bndbox/{name}") for name in ("xmin", "ymin", "xmax", "ymax"))
    if not all(map(math.isfinite, (left, top, right, bottom))):
        raise UserError(f"{annotation} has an object whose box is not four numbers")
    return left - 1, top - 1, right, bottom


def _number(element: Element, path: str, default: float = math.nan) -> float:
    try:
        return float(element.findtext(path) or default)
    except ValueError:
        return math.nan
