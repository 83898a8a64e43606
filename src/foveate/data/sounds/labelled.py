"""Sounds with a label or a transcript each: folders of classes, or a table of paths."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from foveate.data.dataset import Dataset, Note, without_empty
from foveate.data.folders import class_folders, files_below
from foveate.data.layout import read_by
from foveate.data.sounds.files import ENDINGS, Waveform, read_sound
from foveate.data.sounds.layouts import SPOKEN, SpokenFile, listed_sound
from foveate.data.table import SOUND, SPEAKER, TRANSCRIPT, DataTable
from foveate.data.text.files import Paths, as_paths, read_sentences
from foveate.errors import UserError

TRANSCRIPTS = ".trans.txt"
"""How the names of files end that hold the transcripts of all sounds in their folder."""


@dataclass(frozen=True)
class LabelledSound:
    """A sound file and its label, or what is said in it."""

    path: Path
    label: str
    seconds: float
    rate: int
    """Samples of a second in the file."""
    speaker: str = ""
    """Who speaks, where the data say so."""

    @property
    def place(self) -> str:
        return str(self.path)

    def read(self) -> Waveform:
        """The sound. Raises UserError where the file is damaged."""
        return read_sound(self.path)

    def content(self) -> bytes:
        """The label and the file."""
        return self.label.encode() + b"\0" + self.path.read_bytes()


def labelled_sounds(
    paths: Paths,
    name: str | None = None,
    problem_of: Callable[[LabelledSound], str | None] = lambda sound: None,
    spoken: bool = False,
) -> Dataset[LabelledSound]:
    """A folder with one folder of sounds for each class, or a table with `path<TAB>label` on each line.

    With `spoken`, labels are transcripts, which may stand beside the sounds of a folder: see `transcripts_beside`.
    There may then be several folders, and the layouts `SPOKEN` are read.
    Paths of a table are relative to its folder. `name` stands for the examples in messages. Sounds that cannot be used,
    such as silent ones, and those that `problem_of` finds something wrong with, are left out, and the dataset's notes
    say so. Raises UserError for anything else, for missing files, and where no sound is left.
    """
    paths = as_paths(paths)
    if len(paths) != 1 and not (paths and spoken and all(path.is_dir() for path in paths)):
        raise UserError(f"labelled sounds are one folder of class folders, or one table; {len(paths)} were given")
    origin, lines, files = paths[0], list[int | None](), list[SpokenFile]()
    for path in paths:
        if spoken and (listed := read_by(SPOKEN, path)) is not None:
            files += listed
        else:
            files += _of_folder(path, spoken) if path.is_dir() else _of_table(path, lines)
    examples, kept, problems = [], [], []
    for number, (path, label, speaker) in enumerate(files):
        try:
            sound = read_sound(path)
        except UserError as error:
            problems.append(str(error))
        else:
            example = LabelledSound(path, label, sound.seconds, sound.rate, speaker)
            if problem := problem_of(example):
                problems.append(problem)
            else:
                examples.append(example)
                kept.append(number)
    if not examples:
        raise UserError(problems[0] if problems else f"{origin}: there is no labelled sound in it")
    notes: list[Note] = [_time]
    if problems:
        notes.append(f"left out {len(problems):,}, the first because {problems[0]}")
    places = {number: place for place, number in enumerate(kept)}
    given = lines or range(len(files))
    lines = [None if number is None else places.get(number) for number in given]
    return Dataset(name or origin.name or str(origin), examples, "sounds", notes, lines)


def _time(examples: Iterable[LabelledSound]) -> str:
    hours = sum(example.seconds for example in examples) / 3600
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.1f} minutes"


def sounds_below(folder: Path) -> list[Path]:
    """The sounds in a folder and its folders, in alphabetical order."""
    return files_below(folder, ENDINGS)


def _of_folder(folder: Path, spoken: bool) -> list[SpokenFile]:
    if spoken and (found := transcripts_beside(folder)):
        return [SpokenFile(file, text, _speaker_by_folder(file)) for file, text in found]
    labelled = [(file, label) for label, own in class_folders(folder, ENDINGS) for file in own]
    files = [SpokenFile(file, label, _speaker_by_name(file)) for file, label in labelled]
    if not files:
        raise UserError(f"{folder} has no sounds: it needs one folder for each class, with the sounds of the class")
    return files


def transcripts_beside(folder: Path) -> list[tuple[Path, str]]:
    """The sounds below a folder, each with the transcript beside it; none where no sound has one.

    A transcript is a file of the sound's name that ends in .txt or .lab, or a line `NAME transcript` of a `*.trans.txt`
    in the same folder, as in LibriSpeech (Panayotov et al. 2015). Raises UserError where some sounds have none.
    """
    texts = {str(file): file for file in files_below(folder, (".txt", ".lab"))}
    lines: dict[str, str] = {}
    for name, file in texts.items():
        if name.endswith(TRANSCRIPTS):
            for line in filter(None, read_sentences(file)):
                stem, _, text = line.partition(" ")
                lines[str(file.parent / stem)] = text.strip()
    found, missing = [], []
    for sound in sounds_below(folder):
        stem = str(sound.with_suffix(""))
        own = next((texts[stem + ending] for ending in (".txt", ".lab") if stem + ending in texts), None)
        text = " ".join(filter(None, read_sentences(own))) if own else lines.get(stem, "")
        if text:
            found.append((sound, text))
        else:
            missing.append(sound)
    if found and missing:
        raise UserError(f"{missing[0]} has no transcript, but {len(found):,} sounds of {folder} have one beside them")
    return found


def _speaker_by_folder(file: Path) -> str:
    """The speaker of `speaker/chapter/speaker-chapter-0000.flac`, as in LibriSpeech; empty for other names."""
    chapter, speaker = file.parent.name, file.parent.parent.name
    return speaker if re.match(f"{re.escape(speaker)}[-_]{re.escape(chapter)}[-_]", file.name) else ""


def _speaker_by_name(file: Path) -> str:
    """The speaker of `word/speaker_nohash_0.wav`, as in Speech Commands (Warden 2018); empty for other names."""
    speaker, mark, _ = file.name.partition("_nohash_")
    return speaker if mark else ""


def _of_table(table: Path, lines: list[int | None]) -> list[SpokenFile]:
    files = []
    for row in without_empty(DataTable(table, (SOUND, TRANSCRIPT), further=SPEAKER), lines):
        name, label = row.cells
        files.append(SpokenFile(listed_sound(table.parent, name, f"{table}, {row.place}"), label, row.origin))
    return files
