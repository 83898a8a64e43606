"""Reads and checks the input of a model."""

import sys
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.errors import UserError
from foveate.files import utf8
from foveate.viewer.protocol import File, Input, InputKind

if TYPE_CHECKING:
    import PIL.Image

MAX_BYTES = 64 * 2**20
"""Maximum size of an input file in bytes."""

MAX_TITLE = 70
"""Maximum number of characters of a title."""

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Accepted formats, which browsers support; each has one decoder."""

MAX_FRAMES = 10_000
"""Maximum number of frames of a film."""

MAX_PIXELS = 64_000_000
"""Maximum number of pixels of a picture."""

EXAMPLES = (
    "The animal did not cross the street because it was too tired.",
    "The keys to the old cabinet are on the table.",
    "She poured the milk from the jug into the glass until it was full.",
)
"""English texts to begin with in the explorer, with words that refer to others."""


def read_input(argument: str, takes: InputKind) -> Input:
    """The input that a command line argument names: standard input for "-", an existing file, or the text itself.

    Raises UserError for a file that cannot be read, and for a missing file if the model reads files.
    """
    if argument == "-":
        if sys.stdin is None:
            raise UserError("nothing to look at: standard input is closed")
        data = _bounded(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")
        return _decoded(data, "standard input") if takes == "text" else File("input", data)
    path = Path(argument)
    if not _is_file(path):
        if takes != "text":
            raise UserError(f"there is no file {argument}; this model reads {_FILES[takes]}")
        return argument
    try:
        with path.open("rb") as file:
            data = _bounded(file.read(MAX_BYTES + 1), argument)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return _decoded(data, argument) if takes == "text" else File(path.name, data)


def add_question(given: Input, question: str | None, takes: InputKind) -> Input:
    """The input with the argument after it, the question about an image.

    Raises UserError where a question is missing, and where the model answers none.
    """
    if takes != "question":
        if question is not None:
            raise UserError(f"this model reads one input, but {question!r} follows it; put quotes around a text")
        return given
    if question is None or not question.strip():
        raise UserError('no question: give one after the image, such as "what is this?"')
    return given._replace(question=utf8(question)) if isinstance(given, File) else given


def as_text(given: Any) -> str:
    """An input of a model in use as a text: a text, or a path. Raises UserError for anything else."""
    if not isinstance(given, str | Path):
        raise UserError(f"{type(given).__name__} is not a text and not a path")
    return utf8(str(given))


def make_title(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1].rstrip()}…"


def require_text(given: Input, name: str) -> str:
    """The input as a text. Raises UserError for a file or an empty text."""
    if isinstance(given, File):
        raise UserError(f"{given.name} is a file, but {name} reads text")
    if not given.strip():
        raise UserError("the text is empty: there is nothing to look at")
    return utf8(given)


def require_file(given: Input, name: str, takes: InputKind) -> File:
    """The input as a file. Raises UserError for a text."""
    if isinstance(given, str):
        raise UserError(f"the input is a text, but {name} reads {_FILES[takes]}")
    return given


def check_length(count: int, max_length: int, what: str, unit: str = "tokens") -> None:
    """Raise UserError for an input that is too long."""
    if count > max_length:
        raise UserError(f"{what} has {count:,} {unit}, but the limit is {max_length:,}; --max-tokens raises it")


def open_frames(file: File, count: int) -> "list[PIL.Image.Image]":
    """So many frames of an animated GIF, PNG or WebP, at equal distances from the first to the last, in RGB.

    Raises UserError for other files, for a picture that does not move, and for too many pixels or frames.
    """
    import PIL.Image

    open_image(file)
    picture = PIL.Image.open(BytesIO(file.data), formats=FORMATS)
    total = getattr(picture, "n_frames", 1)
    if not 1 < total <= MAX_FRAMES:
        what = "does not move" if total < 2 else f"has {total:,} frames; the limit is {MAX_FRAMES:,}"
        raise UserError(f"{file.name} {what}: this model reads films, as animated GIF, PNG or WebP files")
    found = []
    try:
        for place in (round(step * (total - 1) / max(1, count - 1)) for step in range(count)):
            picture.seek(place)
            found.append(picture.convert("RGB"))
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise UserError(f"{file.name} is damaged: {error}") from None
    return found


def open_image(file: File, pixel_range: tuple[float, float] | None = None) -> "PIL.Image.Image":
    """The first picture of a file, upright, in RGB. Raises UserError for other files and for too many pixels."""
    import PIL.Image

    from foveate.data.images import jpeg_scans
    from foveate.data.images.decoding import AVIF, flat, in_8_bits, turn_upright
    from foveate.data.images.jpeg_scans import has_too_many_scans

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)  # the limit below is stricter
            picture = PIL.Image.open(BytesIO(file.data), formats=(*FORMATS, *AVIF))
            if picture.width * picture.height > MAX_PIXELS:
                raise UserError(
                    f"{file.name} has {picture.width:,} x {picture.height:,} pixels; the limit is {MAX_PIXELS:,}"
                )
            if picture.format in jpeg_scans.FORMATS and has_too_many_scans(file.data):
                raise UserError(f"{file.name} has more than {jpeg_scans.MOST} scans: save it again")
            return flat(in_8_bits(turn_upright(picture), pixel_range)).convert("RGB")
    except PIL.UnidentifiedImageError:
        raise UserError(f"{file.name} is not a picture; supported formats are {', '.join(FORMATS)}") from None
    except (UserError, MemoryError):
        raise
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise UserError(f"{file.name} is damaged: {error}") from None


_FILES = {
    "image": "an image file",
    "audio": "a sound file (.wav)",
    "question": "an image file and a question",
}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # for example, a text that is too long for a path
        return False


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is larger than {MAX_BYTES // 2**20} MiB, which is the limit")
    return data


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8 text (byte {error.start:,}), but this model reads text") from None
