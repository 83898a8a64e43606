"""Images with boxes around objects, of a user's COCO JSON or Pascal VOC files."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import PIL.Image

from foveate.data.dataset import Dataset, Note
from foveate.data.images.box_layouts import BOXED
from foveate.data.images.coco import CocoBox, CocoCategory, CocoFile, CocoImage, Id, find_image
from foveate.data.images.decoding import DamagedImage, keep_as_it_is, read_image, read_sizes, turn_upright
from foveate.data.images.voc import CROWD, AnnotatedFile, Box, MarkedObject, voc_folder
from foveate.data.layout import read_by
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError


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
    """The images of a COCO JSON file, of a folder with Pascal VOC annotations (.xml) and images in it, or of one of the
    layouts `BOXED`.

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
    if (listed := read_by(BOXED, path)) is None:
        listed = voc_folder(path) if path.is_dir() else _of_coco(path)
    examples = [_example(*one, left_out) for one in listed]
    if not examples:
        raise UserError(f"{path}: there is no image in it")
    objects = Counter(label for example in examples for label in example.labels)
    if not objects:
        raise UserError(f"{path}: no image has a box")
    notes: list[Note] = [_count_objects]
    ignored = Counter(thing.mark for example in examples for thing in example.ignored)
    notes += [f"neither learned nor counted: {count:,} {what}" for what, count in ignored.items()]
    notes += [f"left out: {count:,} {what}" for what, count in left_out.items()]
    return Dataset(path.name or str(path), examples, "images", notes)


def _of_coco(path: Path) -> list[AnnotatedFile]:
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
        examples.append(AnnotatedFile(find_image(path, image.file_name), size, objects[image.id]))
    _check_names(path, [str(example.file) for example in examples])
    return examples


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


def _count_objects(images: Iterable[BoxedImage]) -> str:
    objects = Counter(label for image in images for label in image.labels)
    return f"{objects.total():,} objects of {len(objects):,} classes"
