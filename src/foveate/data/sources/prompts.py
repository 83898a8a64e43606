"""What telephones say in five languages, one voice each: the prompts of Asterisk, a telephone exchange, with their
texts, from Debian packages."""

import gzip
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

SHARE_ALIKE, BY = "CC-BY-SA-3.0", "CC-BY-3.0"

LANGUAGES = {
    "en": ("English", SHARE_ALIKE),
    "es": ("Spanish", SHARE_ALIKE),
    "fr": ("French", SHARE_ALIKE),
    "it": ("Italian", BY),
    "ru": ("Russian", BY),
}
"""The name and the licence of each."""


def open_prompts(language: str, before_fetch: BeforeFetch) -> Splits[Dataset[LabelledSound]]:
    """The prompts to train, validate and test on; none has a text of another part."""
    return open_parts(f"prompts-{language}", partial(_fetch, language), before_fetch)


def _fetch(language: str, folder: Path) -> None:
    texts = f"asterisk-core-sounds-{language}"
    with debian_packages([texts, f"{texts}-wav"], folder) as (of_texts, of_sounds):
        known = {}
        for _, content in members(of_texts, "*.txt.gz"):
            for line in gzip.decompress(content).decode("utf-8", "replace").splitlines():
                name, colon, text = line.partition(":")
                if colon and not name.startswith(";"):
                    known[name.strip()] = text.strip()
        if not known:
            raise UserError(f"the package {texts} has no texts")
        write_parts(folder, _with_texts(known, sorted(members(of_sounds, "*/sounds/*.wav"))))


def _with_texts(known: dict[str, str], sounds: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes, str]]:
    for path, content in sounds:
        name = path.partition("/sounds/")[2].partition("/")[2].removesuffix(".wav")
        if name in known:
            yield f"{name.replace('/', '-')}.wav", content, known[name]


SOURCES = tuple(
    Source(
        name=f"prompts-{code}",
        tasks=("transcribe",),
        about=f"what a telephone exchange says in {language}, one voice, 8 kHz: a quarter of an hour",
        size="18 MB",
        licence=licence,
        open=partial(open_prompts, code),
    )
    for code, (language, licence) in LANGUAGES.items()
)
