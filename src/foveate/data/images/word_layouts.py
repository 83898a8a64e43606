"""Layouts of images of words: ICDAR, MJSynth, IIIT5K, and lists as MMOCR exports them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from foveate import limits
from foveate.data.folders import listed_beside, listed_file
from foveate.data.layout import DataLayout, Parts, named_parts
from foveate.data.text.files import read_sentences
from foveate.errors import UserError
from foveate.files import is_file
from foveate.limits import check_file

ListedWords = list[tuple[Path, str]]
"""The file of each image, and its word."""

_ICDAR = re.compile(r'(?P<name>[^,]+), *"(?P<word>.*)"')
_MJSYNTH = re.compile(r"(?P<name>.+/\d+_(?P<word>[^_/]+)_\d+\.jpg)(?: \d+)?")
_LIST = re.compile(r"(?P<name>\S+) (?P<word>.+)")


def _listed(file: Path, line_form: re.Pattern[str], shape: str) -> ListedWords:
    return [*_lines(file, line_form, shape)]


def _lines(
    file: Path, line_form: re.Pattern[str], shape: str, within: Sequence[str] = ()
) -> Iterator[tuple[Path, str]]:
    for number, line in enumerate(read_sentences(file), 1):
        if not line:
            continue
        where = f"{file}, line {number}"
        if (match := line_form.fullmatch(line)) is None:
            raise UserError(f"{where}: a line must be {shape}")
        yield listed_beside(file.parent, match["name"], where, within), match["word"].replace('\\"', '"')


ICDAR_TRAIN = (r"ch\d_training_word_images_gt", r"Challenge\d_Training_Task3_Images_GT")
ICDAR_TEST = (r"ch\d_test_word_images_gt", r"Challenge\d_Test_Task3_Images(_GT)?")
"""What the folders of images are called that ICDAR's site gives away."""

_ICDAR_FILE = r"(.*_)?gt\.txt|Challenge\d_(Training|Test)_Task3_GT\.txt"


def _icdar_parts(folder: Path) -> Parts | None:
    """The folders of the site, or for the test part the file of its words beside them."""
    found = named_parts(folder, "|".join(ICDAR_TRAIN), "(?!)", r"Challenge\d_Test_Task3_GT\.txt")
    if found is None or (found.train and found.test):
        return found
    return named_parts(folder, "|".join(ICDAR_TRAIN), "(?!)", "|".join(ICDAR_TEST))


def _icdar(path: Path) -> ListedWords | None:
    """The `gt.txt` of a folder, or the file itself, with `word_1.png, "Text"` on each line."""
    file = path
    if path.is_dir():
        listed = sorted(one for one in path.iterdir() if re.fullmatch(_ICDAR_FILE, one.name, re.I) and is_file(one))
        file = listed[0] if listed else path
    if not re.fullmatch(_ICDAR_FILE, file.name, re.I) or not is_file(file):
        return None
    return [*_lines(file, _ICDAR, 'word_1.png, "text"', _test_images(file))]


def _test_images(file: Path) -> list[str]:
    """The folders beside a file of words that may have its images."""
    part = ICDAR_TEST if "test" in file.name.lower() else ICDAR_TRAIN
    folders = (one.name for one in file.parent.iterdir() if one.is_dir())
    return sorted(name for name in folders if re.fullmatch("|".join(part), name, re.I))


def _mjsynth(path: Path) -> ListedWords | None:
    """A file with `./2425/1/115_Lube_45484.jpg 45484` on each line: the word is in the name."""
    named = re.fullmatch(r"annotation(_\w+)?\.txt", path.name) and is_file(path)
    return _listed(path, _MJSYNTH, "FOLDER/1_word_2.jpg 2") if named else None


def _list(path: Path) -> ListedWords | None:
    """A file with `image.png word` on each line."""
    named = re.fullmatch(r"(\w+_)?labels?\.txt", path.name) and is_file(path)
    return _listed(path, _LIST, "IMAGE word") if named and "\t" not in next(read_sentences(path), "") else None


def _mjsynth_folder(folder: Path) -> Path:
    """The folder of the lists, which the archive has four folders deep."""
    if not folder.is_dir():
        return folder
    places = (folder / deeper for deeper in ("mnt/ramdisk/max/90kDICT32px", "90kDICT32px"))
    return next((place for place in places if place.is_dir()), folder)


def _iiit5k_parts(folder: Path) -> Parts | None:
    """The tables, or the files of MATLAB where there are none."""
    found = (named_parts(folder, rf"traindata\.{kind}", "(?!)", rf"testdata\.{kind}") for kind in ("csv", "mat"))
    return next((parts for parts in found if parts is not None), None)


def _iiit5k(path: Path) -> ListedWords | None:
    """The rows of MATLAB; its tables are tables as any other."""
    if path.name not in ("traindata.mat", "testdata.mat") or not is_file(path):
        return None
    return [(listed_file(path.parent, name, f"{path}, row {n}"), word) for n, (name, word) in _matlab_rows(path)]


def _matlab_rows(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """The number, the image and the word of each row of a file of MATLAB."""
    try:
        from scipy.io import loadmat
    except ImportError:
        raise UserError(
            f"{path} needs scipy to be read: pip install 'foveate[vision]'; or give traindata.csv"
        ) from None
    check_file(path, limits.TABLE)
    try:
        table = loadmat(path, squeeze_me=True)[path.stem].reshape(-1)
        cells = [(str(row["ImgName"]), str(row["GroundTruth"])) for row in table]
    except Exception:  # scipy has no error of its own for a damaged file: some twenty kinds come out
        raise UserError(f"{path} is not a file of IIIT5K: it has no {path.stem} with ImgName and GroundTruth") from None
    yield from enumerate(cells, 1)


LISTED_WORDS: tuple[DataLayout[ListedWords], ...] = (
    DataLayout(
        "ICDAR",
        'train/ and test/ with gt.txt, of lines word_1.png, "text"; ch4_training_word_images_gt/ and so on',
        _icdar_parts,
        _icdar,
    ),
    DataLayout(
        "IIIT5K", "traindata.mat and testdata.mat, or .csv (ImgName,GroundTruth), train/, test/", _iiit5k_parts, _iiit5k
    ),
    DataLayout(
        "MJSynth",
        "annotation_train.txt, annotation_val.txt, annotation_test.txt",
        lambda folder: named_parts(
            _mjsynth_folder(folder), *(rf"annotation_{name}\.txt" for name in ("train", "val", "test"))
        ),
        _mjsynth,
    ),
    DataLayout(
        "MMOCR's lists",
        "train_label.txt, test_label.txt, of lines image.png word",
        lambda folder: named_parts(folder, *(rf"{name}_labels?\.txt" for name in ("train", "val", "test"))),
        _list,
    ),
)
