"""Translations of programs, as every Linux machine has them: the gettext catalogues (.mo, .po) below folders."""

import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from foveate.data.folders import files_below
from foveate.data.gettext.cleaning import sentences, sifted
from foveate.data.gettext.files import read_catalogue
from foveate.data.text.files import CATALOGUES
from foveate.errors import UserError, unknown
from foveate.files import workshop


class Catalogues:
    """The pairs of sentences in the catalogues below some folders; calling it reads them anew.

    Catalogues hold translations from English, through which those of two other languages are joined. They are found by
    their paths: `fr/LC_MESSAGES/program.mo`, `po/fr.po`, `fr/program.po`. Each pair comes once. What is left out is
    counted in `left_out` when a pass ends, by reason; so are files that are damaged. The first whole pass leaves a
    temporary file, which later ones read: cleaning takes ten times as long as reading.
    """

    def __init__(self, folders: Sequence[Path], source_language: str, target_language: str) -> None:
        """Raises UserError where there are no catalogues of the two languages."""
        self.left_out: Mapping[str, int] = {}
        self._languages = source_language, target_language
        if source_language == target_language:
            raise UserError(f"{_named(folders)}: source and target language are both '{source_language}'")
        sides = [_find(folders, language) for language in self._languages if language != "en"]
        programs = [program for program in sides[0] if program in sides[-1]]
        if not programs:
            both = " and ".join(self._languages)
            raise UserError(f"no program below {_named(folders)} is translated into both {both}")
        self._files = [[side[program] for side in sides] for program in programs]
        self._clean: Path | None = None

    def __call__(self) -> Iterator[tuple[str, str]]:
        if self._clean is None:
            yield from self._cleaned()
        else:
            with self._clean.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    source, target = line.rstrip("\n").split("\t")
                    yield source, target

    def _cleaned(self) -> Iterator[tuple[str, str]]:
        left_out: Counter[str] = Counter()
        messages = (message for files in self._files for message in self._messages(files, left_out))
        try:
            temporary = ExitStack()
            path = temporary.enter_context(workshop(Path(tempfile.gettempdir()))) / "clean.tsv"
            weakref.finalize(self, temporary.close)
            with path.open("w", encoding="utf-8", newline="\n") as clean:
                for source, target in sifted((sentences(*message) for message in messages), left_out):
                    clean.write(f"{source}\t{target}\n")  # neither has tabs or ends of lines: see `sentences`
                    yield source, target
        except OSError as error:
            place = tempfile.gettempdir()
            raise UserError(f"cannot write into {place}: {error.strerror}; TMPDIR can name another folder") from None
        self._clean, self.left_out = path, left_out

    def _messages(self, files: Sequence[Path], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
        """The messages that one program has in the two languages, as they are."""
        try:
            if len(files) == 2:
                sources = {message.key: message.translation for message in read_catalogue(files[0])}
                for message in read_catalogue(files[1]):
                    if source := sources.get(message.key):
                        yield source, message.translation
            else:
                for message in read_catalogue(files[0]):
                    pair = message.english, message.translation
                    yield pair if self._languages[0] == "en" else pair[::-1]
        except UserError:
            left_out["damaged files"] += 1


def _find(folders: Sequence[Path], language: str) -> dict[str, Path]:
    """The catalogue of a language for each program; a program is a path with an asterisk for the language."""
    wanted = _normal(language)
    fitting = (wanted, f"{wanted}_{wanted}")  # fr or else fr_FR
    found: dict[str, tuple[int, Path]] = {}
    others = set()
    for folder in folders:
        for path in files_below(folder, CATALOGUES):
            names = [*path.absolute().parent.parts, path.stem]
            place = _language_place(names, len(folder.absolute().parts) - 1, fitting)
            name = _normal(names[place])
            others.add(names[place])
            if name in fitting:
                program = "/".join([*names[:place], "*", *names[place + 1 :]])
                rival = (fitting.index(name), path)
                found[program] = min(rival, found.get(program, rival))
    if not others:
        raise UserError(
            f"there are no gettext catalogues (.mo or .po files) below {_named(folders)}: "
            "text in two files is given as both, SOURCE TARGET"
        )
    if not found:
        raise unknown(f"language of the catalogues below {_named(folders)}", language, others)
    return {program: path for program, (_, path) in sorted(found.items())}


def _language_place(names: Sequence[str], first: int, fitting: Sequence[str]) -> int:
    """Finds the part of a catalogue's path that is the language: the one before LC_MESSAGES, or else the last, from the
    `first` on, that fits the wanted one, or else the name of the file."""
    if "LC_MESSAGES" in names[1:]:
        return names.index("LC_MESSAGES") - 1
    return max(
        (place for place in range(first, len(names)) if _normal(names[place]) in fitting), default=len(names) - 1
    )


def _normal(language: str) -> str:
    """pt-BR, pt_BR and pt_BR.UTF-8 are one."""
    return language.partition(".")[0].replace("-", "_").lower()


def _named(folders: Sequence[Path]) -> str:
    return " and ".join(map(str, folders))
