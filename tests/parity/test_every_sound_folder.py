"""Every kind of folder with a model of sounds: the same logits and transcripts, and what one can do with it."""

from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from rich.console import Console
from sound_folders import SOUND_FOLDERS, write_sound
from torch import Tensor

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_folder
from foveate.tasks import find_task
from foveate.tasks.hf.sounds import read_form
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.start.weights import HEADS

CASES = [(name, head) for name, folder in SOUND_FOLDERS.items() for head in folder.heads]

ANSWERING = [case for case in CASES if case[1] != "none"]

SILENT = Console(file=StringIO())

AUTO = {
    "whisper": transformers.AutoModelForSpeechSeq2Seq,
    "words": transformers.AutoModelForCTC,
    "label": transformers.AutoModelForAudioClassification,
}
"""What transformers opens a Whisper with, and the other models by their heads."""

TOKENS = [257, 258, 41, 52, 63]
"""What a Whisper has written."""

SAMPLES = 16_011, 7_203, 2_905

TASK_OF = {"words": "transcribe", "label": "classify-sound"}


def test_every_kind_and_head_is_here() -> None:
    kinds = {kind for kind in MODEL_TYPES if layout_at(MODEL_TYPES[kind]).feature_extractor}
    assert {folder.kind for folder in SOUND_FOLDERS.values()} == kinds
    for folder in SOUND_FOLDERS.values():
        assert {*folder.heads} == {*layout_at(MODEL_TYPES[folder.kind]).architectures.values()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sounds")


@cache
def written(name: str, head: str, place: Path) -> tuple[Path, Any]:
    folder = place / f"{name}-{head}"
    return folder, SOUND_FOLDERS[name].write(head, folder)


@cache
def sounds(place: Path) -> list[tuple[Path, Any]]:
    """Sounds of several lengths, each with its samples."""
    paths = [place / f"{number}.wav" for number in range(len(SAMPLES))]
    return [
        (path, write_sound(path, *row)) for path, row in zip(paths, zip(SAMPLES, range(3), strict=True), strict=True)
    ]


def expected(theirs: Any, inputs: dict[str, Any]) -> Tensor:
    if "input_features" in inputs:
        inputs = {**inputs, "decoder_input_ids": torch.tensor([TOKENS])}
    with torch.no_grad():
        output = theirs(**inputs)
    found: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return found[0]


def logits_of(
    name: str, head: str, folder: Path, theirs: Any, files: Sequence[tuple[Path, Any]]
) -> list[tuple[Tensor, Tensor]]:
    """Of each file ours, as we prepare them together, and those of transformers' extractor and model by itself."""
    ours: Any = read_folder(folder).model
    reads = read_form(folder, ours.config, head == "label")
    inputs = reads.tensors([reads.prepare(reads.open(str(path))) for path, _ in files])[0]
    if SOUND_FOLDERS[name].kind == "whisper":
        inputs["target"] = torch.tensor([TOKENS]).expand(len(files), -1)
    with torch.no_grad():
        output = ours(**inputs)
    lengths = getattr(output, "ctc_lengths", None)
    found = []
    for row, (_, samples) in enumerate(files):
        right = expected(theirs, SOUND_FOLDERS[name].inputs(samples))
        own = output.logits[row].reshape(-1, right.shape[-1])
        own = own if lengths is None or head == "label" else own[: lengths[row]]
        found.append((own.reshape(right.shape), right))
    return found


@pytest.mark.parametrize(("name", "head"), CASES)
def test_logits_of_padded_rows(name: str, head: str, place: Path) -> None:
    folder, theirs = written(name, head, place)
    for found, right in logits_of(name, head, folder, theirs, sounds(place)):
        torch.testing.assert_close(found, right, atol=SOUND_FOLDERS[name].close, rtol=0)


@pytest.mark.parametrize(("name", "head"), ANSWERING)
def test_answers_are_those_of_transformers(name: str, head: str, place: Path) -> None:
    """Its pipeline, on files."""
    folder, theirs = written(name, head, place)
    found = foveate.load(folder).answer([str(path) for path, _ in sounds(place)])
    extractor = SOUND_FOLDERS[name].extractor()
    if head == "label":
        pipe = transformers.AudioClassificationPipeline(theirs, feature_extractor=extractor)
        for answer, (_, samples) in zip(found, sounds(place), strict=True):
            best = pipe({"raw": samples, "sampling_rate": 16_000}, top_k=3)
            assert answer.label == best[0]["label"]
            assert answer.probability == pytest.approx(best[0]["score"], abs=1e-4)
        return
    if SOUND_FOLDERS[name].kind == "whisper":
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        writes = foveate.load(folder).processor.writes
        for answer, (_, samples) in zip(found, sounds(place), strict=True):
            ids = theirs.generate(
                **SOUND_FOLDERS[name].inputs(samples),
                decoder_input_ids=torch.tensor([[257, 258]]),
                suppress_tokens=[257, 258],
                begin_suppress_tokens=[256],
                max_new_tokens=27,
                do_sample=False,
            )
            text = tokenizer.decode(ids[0].tolist(), skip_special_tokens=True)
            assert writes.known.end == 256
            assert answer.text == text.strip()
        return
    tokenizer = transformers.Wav2Vec2CTCTokenizer.from_pretrained(folder)
    pipe = transformers.AutomaticSpeechRecognitionPipeline(theirs, feature_extractor=extractor, tokenizer=tokenizer)
    texts = [pipe({"raw": samples, "sampling_rate": 16_000})["text"] for _, samples in sounds(place)]
    assert [answer.text for answer in found] == texts
    assert all(texts)


@pytest.mark.parametrize(("name", "head"), ANSWERING)
def test_it_runs_and_is_looked_at(
    name: str, head: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = written(name, head, place)
    (first, _), (second, _), _ = sounds(place)
    times = ["--times"] if head == "words" else []
    main(["run", str(folder), str(first), str(second), "--picture", str(tmp_path / "p.png"), *times])
    assert len(capsys.readouterr().out.strip().splitlines()) == 2
    assert any(path.stat().st_size > 5_000 for path in tmp_path.glob("p*.png"))
    main(["look", str(folder), str(first), "--out", str(tmp_path / "look.html")])
    assert (tmp_path / "look.html").stat().st_size > 10_000
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    answers = foveate.load(folder).answer([str(first), str(tmp_path / "bad.wav")])
    assert isinstance(answers[0], Answer)
    assert isinstance(answers[1], Failure)


@pytest.mark.parametrize(("name", "head"), CASES)
def test_its_size_is_that_of_its_config(name: str, head: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = written(name, head, place)
    parameters = sum(one.numel() for one in read_folder(folder).model.parameters())
    capsys.readouterr()
    main(["size", str(folder)])
    assert f" {parameters:,} " in capsys.readouterr().out


@pytest.mark.parametrize(("name", "head"), ANSWERING)
def test_it_is_measured(name: str, head: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = written(name, head, place)
    main(["eval", str(folder), "--data", str(table(place, head))])
    assert ("word error rate" if head == "words" else "accuracy") in capsys.readouterr().out


WORDS = "tea", "a hat on it", "so it is"


@cache
def table(place: Path, head: str) -> Path:
    """Twelve sounds, with what is said in each, or with a label of two."""
    path = place / f"{head}.tsv"
    lines = []
    for number in range(12):
        write_sound(place / f"{head}-{number}.wav", 9_000 + 700 * number, 20 + number)
        lines.append(f"{head}-{number}.wav\t{WORDS[number % 3] if head == 'words' else 'ab'[number % 2]}\n")
    path.write_text("".join(lines))
    return path


def starts() -> list[tuple[str, str, str]]:
    """A kind, a head, and a task that begins from it."""
    found = []
    for name, head in CASES:
        family = layout_at(MODEL_TYPES[SOUND_FOLDERS[name].kind]).family
        found += [(name, head, task) for task in TASK_OF.values() if family in find_task(task).families]
    return found


@pytest.mark.parametrize("lora", [None, 2], ids=["whole", "lora"])
@pytest.mark.parametrize(("name", "head", "task"), starts())
def test_trainings_begin_from_it(
    name: str, head: str, task: str, lora: int | None, place: Path, tmp_path: Path
) -> None:
    """With the folder's own sizes and weights, which a training of no steps would leave as they are."""
    folder, _ = written(name, head, place)
    before = read_folder(folder).model.state_dict()
    data = table(place, {"transcribe": "words", "classify-sound": "label"}[task])
    steps = {"steps": 2, "validate_every": 2, "save_every": 2, "average": 1, "warmup": 1, "batch": 3000}
    own = {"data": data, "validation": data, "start": folder, "out": tmp_path / "run", "lora": lora}
    recipe = find_task(task).recipe(**own, **steps)
    forms = Lesson(find_task(task), recipe).processor_of(find_task(task).read_files([data], recipe))
    built = Lesson(find_task(task), recipe).model_of(forms.sizes()).state_dict()
    plain = {part.replace(".layer.", "."): value for part, value in built.items()}
    kept = [part for part in before if not part.startswith(HEADS)]
    assert len(kept) > 10
    for part in kept:
        torch.testing.assert_close(plain[part], before[part])
    if TASK_OF.get(head) == task == "transcribe":
        for part in ("output.weight", "output.bias"):
            if part in before:
                torch.testing.assert_close(plain[part][: len(before[part])], before[part])
    learn(recipe, console=SILENT)
    skill = foveate.load(tmp_path / "run")
    assert isinstance(skill.run(sounds(place)[0][0]), Answer)
    main(["look", str(tmp_path / "run"), str(sounds(place)[0][0]), "--out", str(tmp_path / "look.html")])
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "back")])
    path = str(sounds(place)[0][0])
    assert foveate.load(tmp_path / "back").run(path).line == skill.run(path).line
    written_head = {done: head for head, done in TASK_OF.items()}[task]
    again = AUTO[name if name == "whisper" else written_head].from_pretrained(tmp_path / "back").eval()
    for found, right in logits_of(name, written_head, tmp_path / "back", again, sounds(place)):
        torch.testing.assert_close(found, right, atol=SOUND_FOLDERS[name].close, rtol=0)


@pytest.mark.parametrize(("name", "head"), CASES)
def test_it_is_written_back(name: str, head: str, place: Path, tmp_path: Path) -> None:
    """transformers gives the same logits, and prepares sounds alike."""
    folder, theirs = written(name, head, place)
    if head == "none":
        with pytest.raises((UserError, SystemExit)):
            main(["export", str(folder), "--out", str(tmp_path / "back")])
        return
    main(["export", str(folder), "--out", str(tmp_path / "back")])
    again = AUTO[name if name == "whisper" else head].from_pretrained(tmp_path / "back").eval()
    extractor = transformers.AutoFeatureExtractor.from_pretrained(tmp_path / "back")
    inputs = SOUND_FOLDERS[name].inputs(sounds(place)[0][1])
    own = dict(extractor(sounds(place)[0][1], sampling_rate=16_000, return_tensors="pt"))
    own.pop("attention_mask", None)
    assert own.keys() == inputs.keys()
    for part, value in inputs.items():
        torch.testing.assert_close(own[part], value)
    torch.testing.assert_close(expected(again, own), expected(theirs, inputs), atol=SOUND_FOLDERS[name].close, rtol=0)


REFUSED = [(*case, task) for case in CASES for task in TASK_OF.values() if (*case, task) not in starts()]


@pytest.mark.parametrize(("name", "head", "task"), REFUSED)
def test_other_tasks_refuse_it_in_one_line(
    name: str, head: str, task: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = written(name, head, place)
    data = table(place, {"transcribe": "words", "classify-sound": "label"}[task])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["train", task, "--data", str(data), "--from", str(folder), "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
