"""Images with boxes around objects, of a user's COCO JSON or Pascal VOC files."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.folders import files_below, listed_file
from foveate.data.images.coco import CocoBox, CocoCategory, CocoFile, CocoImage, Id
from foveate.data.images.decoding import DamagedImage, keep_as_it_is, read_image, read_sizes, turn_upright
from foveate.data.images.labelled import images_below
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError
from foveate.files import is_file
from foveate.limits import TABLE
from foveate.xml_files import read_xml

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


@dataclass(frozen=True)
class BoxedImage:
    """An image with a box and a label for each object in it. It may have none."""

    place: str
    boxes: tuple[Box, ...]
    labels: tuple[str, ...]
    read: Callable[[], PIL.Image.Image] = field(repr=False, compare=False)
    """Decodes the image. Raises UserError where it is damaged."""
    identity: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)
    """Something shorter that stands for the pixels, if there is."""
    file: Path | None = field(default=None, repr=False, compare=False)
    """The file that `read` decodes, if there is one."""
    ignored: tuple[MarkedObject, ...] = ()
    """Crowds and difficult objects."""

    def content(self) -> bytes:
        """Boxes, labels and pixels, if they can be read."""
        pixels = b""
        with suppress(DamagedImage):
            pixels = self.read().tobytes() if self.identity is None else self.identity()
        return f"{self.boxes}{self.labels}\0".encode() + pixels


def boxed_images(paths: Paths) -> Dataset[BoxedImage]:
    """The images of a COCO JSON file, or of a folder with Pascal VOC annotations (.xml) and images in it.

    Boxes are cut at the border of their image; those without area are left out, and counted in the notes, as ignored
    objects are. Raises UserError for anything that is neither, and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"images with boxes are one COCO JSON file or one folder; {len(paths)} were given")
    (path,) = paths
    if not path.exists():
        raise UserError(f"there is no file or folder {path}")
    left_out: Counter[str] = Counter()
    examples = _of_folder(path, left_out) if path.is_dir() else _of_coco(path, left_out)
    if not examples:
        raise UserError(f"{path}: there is no image in it")
    objects = Counter(label for example in examples for label in example.labels)
    if not objects:
        raise UserError(f"{path}: no image has a box")
    notes = [f"{objects.total():,} objects of {len(objects):,} classes"]
    ignored = Counter(thing.mark for example in examples for thing in example.ignored)
    notes += [f"neither learned nor counted: {count:,} {what}" for what, count in ignored.items()]
    notes += [f"left out: {count:,} {what}" for what, count in left_out.items()]
    return Dataset(path.name or str(path), examples, "images", notes)


def _of_folder(folder: Path, left_out: Counter[str]) -> list[BoxedImage]:
    """Pascal VOC: one .xml for each image."""
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
    examples, used = [], dict[Path, Path]()
    for annotation in annotations:
        root = _parse_xml(annotation)
        file = _image_of(annotation, root, images, of_stem.get(annotation.stem, ()))
        if file in used:
            raise UserError(f"{annotation} and {used[file]} are both about the image {file}")
        used[file] = annotation
        objects = [_thing(annotation, element) for element in root.iter("object")]
        size = _number(root, "size/width", 0.0), _number(root, "size/height", 0.0)
        examples.append(_example(file, size, objects, left_out))
    return examples


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


def _of_coco(path: Path, left_out: Counter[str]) -> list[BoxedImage]:
    table = CocoFile(path, "file of COCO boxes", ("images", "annotations", "categories"))
    categories = list(table.rows("categories", CocoCategory))
    names = {category.id: " ".join(category.name.split()) for category in categories}
    if len(names) < len(categories):
        raise UserError(f"{path} has two categories with the same id")
    if not all(names.values()):
        raise UserError(f"{path} has a category without a name")
    images = list(table.rows("images", CocoImage))
    objects: dict[Id, list[MarkedObject]] = {image.id: [] for image in images}
    if len(objects) < len(images):
        raise UserError(f"{path} has two images with the same id")
    for annotation in table.rows("annotations", CocoBox):
        left, top, width, height = annotation.bbox
        if annotation.image_id not in objects or annotation.category_id not in names:
            raise UserError(f"{path} has an annotation of an image or a category that it does not list")
        box = left, top, left + width, top + height
        mark = CROWD if annotation.iscrowd else ""
        objects[annotation.image_id].append(MarkedObject(names[annotation.category_id], box, mark))
    examples = []
    for image in images:
        size = image.width or 0.0, image.height or 0.0
        examples.append(_example(find_image(path, image.file_name), size, objects[image.id], left_out))
    _check_names(path, [example.place for example in examples])
    return examples


def find_image(path: Path, name: str) -> Path:
    """The image file: its name counts from the JSON file's folder, or from an `images` folder there or beside it."""
    for folder in (path.parent, path.parent / "images", path.parent.parent / "images", path.parent.parent):
        if is_file(folder / name):
            return listed_file(folder, name, str(path))
    raise UserError(f"{path} lists the image {name}, which is neither in {path.parent} nor in {path.parent / 'images'}")


def _check_names(path: Path, places: Iterable[str]) -> None:
    for place, count in Counter(places).items():
        if count > 1:
            raise UserError(f"{path} lists {count} images with the file {place}")


def _example(
    file: Path, claimed: tuple[float, float], objects: Sequence[MarkedObject], left_out: Counter[str]
) -> BoxedImage:
    """The image with those of the objects that have an area inside it. Raises as `annotated`."""
    read, (width, height) = annotated(file, claimed)
    kept = []
    for thing in objects:
        left, top, right, bottom = thing.box
        box = max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height)
        if box[2] > box[0] and box[3] > box[1]:
            kept.append(thing._replace(box=box))
        else:
            left_out["boxes without an area in their image"] += 1
    labels, boxes = ([getattr(thing, name) for thing in kept if not thing.mark] for name in ("label", "box"))
    ignored = tuple(thing for thing in kept if thing.mark)
    return BoxedImage(str(file), tuple(boxes), tuple(labels), read, file=file, ignored=ignored)


def annotated(file: Path, claimed: tuple[float, float]) -> tuple[Callable[[], PIL.Image.Image], tuple[float, float]]:
    """What decodes an image as its annotation means it, and its width and height; of a damaged one those `claimed`.

    The image is turned as its metadata say, but where the annotation has its size before. Raises UserError where it has
    another size than `claimed`, so that what is annotated would be elsewhere; a size below 1 claims nothing.
    """
    stored = size = claimed if min(claimed) >= 1 else (math.inf, math.inf)
    with suppress(DamagedImage):  # tasks leave out damaged images
        stored, size = read_sizes(file)
    turned = claimed != stored or stored == size
    size = size if turned else stored
    if min(claimed) >= 1 and claimed != size:
        shown, real = (" x ".join(f"{side:,g}" for side in one) for one in (claimed, size))
        raise UserError(f"{file} has {real} pixels, but its annotation says {shown}: its boxes are of another image")
    upright = turn_upright if turned else keep_as_it_is
    return lambda: upright(read_image(file)), size
