"""How a Hugging Face folder says that its images or sounds are prepared.

Older folders have a file for it. Those that transformers 5 wrote have a file of their whole processor, in which it is a
part. Where a folder has both, the part counts, as in transformers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.files import read_json

PREPROCESSOR = "preprocessor_config.json"
"""The file that says it alone."""

PROCESSOR = "processor_config.json"
"""The file of a whole processor."""

OF_IMAGES = ("image_processor",)
OF_SOUNDS = ("feature_extractor", "audio_processor")
"""What the part is called in that of a whole processor."""


def read_preprocessor(folder: Path, parts: tuple[str, ...]) -> tuple[dict[str, Any] | None, str]:
    """What a folder says of images (`OF_IMAGES`) or sounds (`OF_SOUNDS`), and where it says so; None where it says
    nothing. Raises UserError for a file that is damaged."""
    if (path := folder / PROCESSOR).is_file():
        values = read_json(path)
        for part in parts:
            if part in values:
                if not isinstance(values[part], Mapping):
                    raise UserError(f"{path}: {part} holds no table of settings")
                return dict(values[part]), f"{path}, {part}"
    path = folder / PREPROCESSOR
    return (read_json(path) if path.is_file() else None), str(path)
