"""Layouts of images with boxes: COCO, Pascal VOC and YOLO."""

from pathlib import Path

from foveate.data.images.coco import coco_parts
from foveate.data.images.voc import AnnotatedFile, MarkedObject, voc_parts, voc_set
from foveate.data.images.yolo import YoloObject, yolo_images, yolo_parts
from foveate.data.layout import DataLayout


def _yolo(path: Path) -> list[AnnotatedFile] | None:
    found = yolo_images(path)
    if found is None:
        return None
    names, images = found
    return [AnnotatedFile(file, (0.0, 0.0), [_boxed(one, names) for one in objects]) for file, objects in images]


def _boxed(thing: YoloObject, names: list[str]) -> MarkedObject:
    """The box around an outline."""
    across, down = zip(*thing.points, strict=True)
    return MarkedObject(names[thing.number], (min(across), min(down), max(across), max(down)))


BOXED: tuple[DataLayout[list[AnnotatedFile]], ...] = (
    DataLayout(
        "COCO",
        "annotations/instances_train2017.json, instances_val2017.json, train2017/, val2017/; or as Roboflow "
        "exports it: train/_annotations.coco.json, valid/, test/",
        lambda folder: coco_parts(folder, "instances"),
    ),
    DataLayout(
        "Pascal VOC",
        "Annotations/, JPEGImages/ (.jpg or .png), ImageSets/Main/train.txt, val.txt; or VOCdevkit/ with its years",
        lambda folder: voc_parts(folder, "Main"),
        voc_set,
    ),
    DataLayout(
        "YOLO",
        "data.yaml, or a YAML file alone, with train, val and names; images/train/, labels/train/; or lists, train.txt",
        yolo_parts,
        _yolo,
    ),
)
