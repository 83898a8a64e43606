"""Dialogues of Fish Fillets, a game, in Dutch and Czech, from Debian packages: two voices that play."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.debian import debian_packages
from foveate.data.sources.packages import members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.sources.spoken_parts import open_parts, write_parts
from foveate.errors import UserError

PACKAGE = "fillets-ng-data"

LANGUAGES = {"nl": ("Dutch", 104), "cs": ("Czech", 110)}
"""The name of each, and the megabytes of the packages."""

LINE = re.compile(r'dialogId\("([^"]+)".*?\)\s*dialogStr\("((?:[^"\\]|\\.)*)"\)')
"""The name of a dialogue's sound, and its text."""


def open_fillets(language: str, before_fetch: BeforeFetch) -> Splits[Dataset[LabelledSound]]:
    """The lines to train, validate and test on. Raises UserError without soundfile, which reads them."""
    return open_parts(f"fillets-{language}", partial(_fetch, language), before_fetch)


def _fetch(language: str, folder: Path) -> None:
    with debian_packages([PACKAGE, f"{PACKAGE}-{language}"], folder) as (scripts, sounds):
        texts = {}
        for path, content in members(scripts, f"*/script/*/dialogs_{language}.lua"):
            level = path.split("/")[-2]
            for name, text in LINE.findall(content.decode("utf-8", "replace")):
                texts[f"{level}-{name}"] = text
        if not texts:
            raise UserError(f"the package {PACKAGE} has no dialogues in {LANGUAGES[language][0]}")
        write_parts(folder, _with_texts(texts, sorted(members(sounds, f"*/sound/*/{language}/*.ogg"))))


def _with_texts(texts: dict[str, str], sounds: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes, str]]:
    for path, content in sounds:
        *_, level, _, file = path.split("/")
        name = f"{level}-{file.removesuffix('.ogg')}"
        if name in texts:
            yield f"{name}.ogg", content, texts[name]


SOURCES = tuple(
    Source(
        name=f"fillets-{code}",
        tasks=("transcribe",),
        about=f"dialogues of the game Fish Fillets in {language}; needs pip install 'foveate[audio]'",
        size=f"{size} MB",
        licence="GPL-2+",
        open=partial(open_fillets, code),
    )
    for code, (language, size) in LANGUAGES.items()
)
