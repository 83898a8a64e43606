"""Layouts of spoken data: LibriSpeech, Common Voice, Kaldi, NeMo's manifests and SpeechBrain's lists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from foveate.data.folders import SOUND_FOLDERS, listed_beside, listed_file
from foveate.data.layout import DataLayout, Parts, inner_folder, named_parts
from foveate.data.table.columns import SOUND, SPEAKER, TRANSCRIPT
from foveate.data.table.formats import format_of
from foveate.data.table.records import cell_of, json_records
from foveate.data.text.files import read_sentences
from foveate.errors import UserError, show_value
from foveate.files import is_file

CLIPS = "clips"
"""The folder of the sounds of Common Voice."""

_ROOT = re.compile(r"^(?:\$\{?\w+\}?|\{\w+\})/")
"""How SpeechBrain's lists write the folder of the data: `{data_root}/`, `$data_root/`."""


class SpokenFile(NamedTuple):
    """A sound, what is said in it, and who says it, where that is known."""

    path: Path
    text: str
    speaker: str


def listed_sound(folder: Path, name: str, where: str) -> Path:
    """The sound that a list names. Raises UserError as `listed_file`."""
    return listed_beside(folder, _ROOT.sub("", name), where, SOUND_FOLDERS)


def _librispeech_parts(folder: Path) -> Parts | None:
    inside = inner_folder(folder, "LibriSpeech")
    return named_parts(inside, "train-.+", "dev-.+", "test-.+")


def _common_voice_parts(folder: Path) -> Parts | None:
    if not (folder / CLIPS).is_dir():
        return None
    return named_parts(folder, r"train\.tsv", r"dev\.tsv", r"test\.tsv") or Parts()


def _pairs_of(path: Path) -> dict[str, str]:
    """The lines `KEY value` of a file of Kaldi. Raises UserError for a key without a value, and one that repeats."""
    found: dict[str, str] = {}
    for number, line in enumerate(read_sentences(path), 1):
        if not line:
            continue
        key, *rest = line.split(maxsplit=1)
        if not rest or key in found:
            wrong = "comes twice" if rest else "has no value"
            raise UserError(f"{path}, line {number}: {show_value(key)} {wrong}")
        found[key] = rest[0]
    return found


def _kaldi(folder: Path) -> list[SpokenFile] | None:
    sounds = folder / "wav.scp"
    if not is_file(sounds):
        return None
    if not is_file(folder / "text"):
        raise UserError(f"{folder} has a wav.scp, but no file text with what is said")
    if is_file(folder / "segments"):
        raise UserError(f"{folder / 'segments'} cuts recordings, which is not read: write each utterance to a file")
    speakers = _pairs_of(folder / "utt2spk") if is_file(folder / "utt2spk") else {}
    files, found = _pairs_of(sounds), []
    for name, text in _pairs_of(folder / "text").items():
        if name not in files:
            raise UserError(f"{folder / 'text'} has what {name} says, which is not in {sounds}")
        if files[name].endswith("|"):
            raise UserError(f"{sounds}: {name} is what a command writes, which is never run: save its output to a file")
        found.append(SpokenFile(listed_file(folder, files[name], f"{sounds}, {name}"), text, speakers.get(name, "")))
    return found


def _kaldi_parts(folder: Path) -> Parts | None:
    inside = inner_folder(folder, "data")
    found = named_parts(inside, "train.*", "(dev|val|valid).*", "(test|eval).*")
    if found is None:
        return None
    parts = Parts(*(tuple(place for place in part if is_file(place / "wav.scp")) for part in found))
    return parts if any(parts) else None


def _manifest(path: Path) -> list[SpokenFile] | None:
    """NeMo: lines of JSON with audio_filepath. Raises UserError for one that names a part of a sound."""
    if format_of(path) not in ("json", "jsonl") or not is_file(path):
        return None
    return [*_manifest_rows(path)] if re.search("manifest", path.name, re.I) else None


def _manifest_rows(path: Path) -> Iterator[SpokenFile]:
    for record in json_records(path):
        if record is None:
            continue
        if record.values.get("offset"):
            raise UserError(f"{record.where}: an offset cuts the sound, which is not read: write the part to a file")
        known = SPEAKER.place_in([*record.values]) is not None
        speaker = cell_of(record, SPEAKER) if known else ""
        file = listed_sound(path.parent, cell_of(record, SOUND), record.where)
        if text := cell_of(record, TRANSCRIPT):
            yield SpokenFile(file, text, speaker)


def _manifest_parts(folder: Path) -> Parts | None:
    end = r"[-_.]?manifest.*\.(jsonl?|ndjson)"
    return named_parts(folder, f"train.*{end}", f"(dev|val).*{end}", f"test.*{end}")


SPOKEN: tuple[DataLayout[list[SpokenFile]], ...] = (
    DataLayout(
        "LibriSpeech", "train-clean-100/, dev-clean/, test-clean/ with SPEAKER/CHAPTER/*.trans.txt", _librispeech_parts
    ),
    DataLayout("Common Voice", "clips/, train.tsv, dev.tsv, test.tsv", _common_voice_parts),
    DataLayout("Kaldi", "train/, dev/, test/ with wav.scp, text, utt2spk", _kaldi_parts, _kaldi),
    DataLayout("NeMo manifests", "train_manifest.json, dev_manifest.json", _manifest_parts, _manifest),
    DataLayout("SpeechBrain", "train.csv or train.json with wav, wrd or words, spk_id; {data_root}/ is the folder"),
)
