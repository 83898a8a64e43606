"""Every kind of folder with a model of texts: the same logits, and what one can do with it, for each of its heads."""

from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS
from llama_relatives import SIZES
from rich.console import Console
from tokenizers import pre_tokenizers
from torch import Tensor

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.answers import Answer, Failure
from foveate.interop.layout import Layout
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_folder
from foveate.models import sizes_of_data
from foveate.tasks import TASKS, find_task
from foveate.tasks.export.labels import CLASSES
from foveate.tasks.hf.reader import open_tokenizer
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.start.weights import HEADS

pytestmark = pytest.mark.usefixtures("unchecked")  # which halves the time; shapes are checked in tests of each model

CASES = [(kind, head) for kind, folder in FOLDERS.items() for head in folder.heads]

SILENT = Console(file=StringIO())

TASK_OF = {"words": "language", "text": "classify", "tokens": "tag", "pair": "pair", "span": "ask", "none": "embed"}

PAIR = "the keeper\tlit the lamp"

TEXTS = ["the keeper lit the lamp", "counting each dawn", "up the stairs , up"]


def layout(kind: str) -> Layout:
    found: Layout = layout_at(MODEL_TYPES[kind])
    return found


def test_every_kind_and_head_is_here() -> None:
    """Of models that read texts; tests/tasks/test_public_images.py has those of images, test_every_sound_folder.py
    those of sounds, test_every_translator.py those that write another text."""
    others = [kind for kind in MODEL_TYPES if "tgt_vocab" in sizes_of_data(layout(kind).family)]
    others += [kind for kind in MODEL_TYPES if layout(kind).image_processor or layout(kind).feature_extractor]
    of_texts = {kind for kind in MODEL_TYPES if kind not in others}
    assert FOLDERS.keys() == of_texts
    for kind in of_texts:
        own = {head for name, head in layout(kind).architectures.items() if matches(kind, name)}
        assert {*FOLDERS[kind].heads} >= own - {"pair"}, kind


def matches(kind: str, name: str) -> bool:
    """Whether a class of transformers is one of a kind of model."""
    return name.lower().startswith(kind.replace("_", "").replace("-", ""))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folders")


@pytest.fixture(params=CASES, ids=["-".join(case) for case in CASES])
def case(request: pytest.FixtureRequest, place: Path) -> tuple[str, str, Path, Any]:
    """A kind, a head, the folder and transformers' model."""
    kind, head = request.param
    return kind, head, *written(kind, head, place)


@cache
def written(kind: str, head: str, place: Path) -> tuple[Path, Any]:
    folder = place / f"{kind}-{head}"
    return folder, FOLDERS[kind].write(head, folder)


def hidden_or_logits(output: Any) -> Tensor:
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], 1)
    found: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return found


def test_logits_of_padded_rows(case: tuple[str, str, Path, Any]) -> None:
    """Each row as transformers has it by itself."""
    kind, head, folder, theirs = case
    ours = read_folder(folder).model
    tokens, lengths = torch.randint(3, 50, (3, 13)), torch.tensor([13, 7, 4])
    with torch.no_grad():
        found = ours(tokens, lengths).logits
        for row, length in enumerate(lengths.tolist()):
            expected = hidden_or_logits(theirs(tokens[row : row + 1, :length]))[0]
            own = found[row, 0] if head in ("text", "pair") else found[row, :length]
            own = found[row, :, :length] if head == "span" else own
            torch.testing.assert_close(own, expected, atol=FOLDERS[kind].close, rtol=0)


def test_it_answers_and_is_looked_at(case: tuple[str, str, Path, Any], tmp_path: Path) -> None:
    _, head, folder, _ = case
    skill = foveate.load(folder)
    blanks = head == "words" and skill.task.name == "cloze"
    texts = ["the [MASK] lit"] if blanks else [f"{one}\twho lit it" for one in TEXTS] if head == "span" else TEXTS
    answers = skill.answer([*texts, "caf\udce9"])
    assert all(isinstance(one, Answer) for one in answers[:-1])
    assert isinstance(answers[-1], Failure)
    main(["look", str(folder), texts[0], "--out", str(tmp_path / "look.html")])
    assert (tmp_path / "look.html").stat().st_size > 10_000


def test_its_size_is_that_of_its_config(case: tuple[str, str, Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Without reading weights: the parameters of our model."""
    _, _, folder, _ = case
    parameters = sum(one.numel() for one in read_folder(folder).model.parameters())
    capsys.readouterr()
    main(["size", str(folder)])
    assert f" {parameters:,} " in capsys.readouterr().out


def tasks_of(kind: str, head: str) -> list[str]:
    """The tasks that begin from a folder: those whose models are of its family."""
    family, own = layout(kind).family, []
    for name in TASKS:
        task = find_task(name)
        if family in task.families and hasattr(task.start, "tokenizer"):
            needs = task.head or "words"
            whole = getattr(task.start, "folders", False)
            if not whole or needs == head:
                own.append(name)
    return own


DATA = {
    "label": "".join(f"{'ab'[number % 2]}\t{TEXTS[number % 3]} {'abc'[number % 3]}\n" for number in range(24)),
    "pair": "".join(f"{'ab'[number % 2]}\t{TEXTS[number % 3]}\t{number % 7} lamp\n" for number in range(24)),
    "better": "".join(f"{TEXTS[number % 3]} lit {number % 9}\tdawn {number % 7}\n" for number in range(24)),
    "asked": "".join(f"{TEXTS[number % 3]} {number % 9}\twhat is it\t{TEXTS[number % 3]}\n" for number in range(24)),
    "tags": "\n".join(f"the\tD\nkeeper\tN\n{'abcdefgh'[number % 8]}\tV\n" for number in range(24)),
    "prose": "\n\n".join(f"The keeper lit the lamp {number % 9} . Each dawn up the stairs ." for number in range(40)),
}

DATA_OF = {
    "classify": "label",
    "tag": "tags",
    "pair": "pair",
    "reward": "better",
    "dpo": "better",
    "embed": "better",
    "ask": "asked",
}
"""What tasks learn from; all others from prose."""


def test_trainings_begin_from_it(case: tuple[str, str, Path, Any], tmp_path: Path) -> None:
    """With the folder's own sizes and weights, which a training of no steps would leave as they are: whole for one head
    of a kind, for the next by matrices of low rank. Tasks take turns."""
    kind, head, folder, _ = case
    turn = CASES.index((kind, head))
    lora = 2 if (turn + len(kind)) % 2 else None
    before = read_folder(folder).model
    for name in tasks_of(kind, head)[turn % 2 :: 2] or tasks_of(kind, head):
        task, data = find_task(name), tmp_path / f"{name}.tsv"
        data.write_text(DATA[DATA_OF.get(name, "prose")])
        more: dict[str, Any] = {
            "steps": 2,
            "validate_every": 2,
            "save_every": 2,
            "average": 1,
            "warmup": 1,
            "lora": lora,
        }
        if name == "rlhf":
            more["reward"] = reward_model(str(tmp_path.parent))
        recipe = task.recipe(
            data=data, validation=data, validation_examples=4, start=folder, out=tmp_path / name, **more
        )
        built = Lesson(task, recipe).build(**{"classes": 2} if hasattr(recipe.architecture, "classes") else {})
        own = {part.replace(".layer.", "."): value for part, value in built.state_dict().items()}
        kept = [part for part in before.state_dict() if not part.startswith(HEADS)]
        assert len(kept) > 10
        for part in kept:
            torch.testing.assert_close(own[part], before.state_dict()[part], msg=f"{name}: {part}")
        exported = replace(recipe, export=("hf",))
        if name == "embed" or (name == "tag" and "tokens" not in FOLDERS[kind].heads):  # transformers has no such class
            with pytest.raises(UserError, match="transformers has"):
                learn(exported, console=SILENT)
            learn(recipe, console=SILENT)
        else:
            learn(exported, console=SILENT)
            compare_exported(tmp_path / name, FOLDERS[kind].close)
        assert isinstance(ask(foveate.load(tmp_path / name)), Answer)


def compare_exported(run: Path, close: float) -> None:
    """What was trained is written: transformers and foveate read the same tokens, and give the same logits."""
    out = run / "export" / "hf"
    ours, again = foveate.load(run), foveate.load(out)
    theirs = getattr(transformers, read_json(out / "config.json")["architectures"][0]).from_pretrained(out).eval()
    tokens, lengths = torch.randint(3, 50, (2, 11)), torch.tensor([11, 11])
    with torch.no_grad():
        expected = ours.model(tokens, lengths).logits
        found = torch.cat([hidden_or_logits(theirs(row[None])) for row in tokens])  # some have no padding
        torch.testing.assert_close(found, expected[:, 0] if found.ndim == 2 else expected, atol=close, rtol=0)
        torch.testing.assert_close(again.model(tokens, lengths).logits, expected, atol=close, rtol=0)
    if ours.task.name not in CLASSES:
        return
    sides = PAIR.split("\t")
    texts = {"ask": sides[::-1], "pair": sides}.get(ours.task.name, sides[:1])
    reads = ours.processor.reads
    own, _ = reads.tensors([reads.prepare(reads.open("\t".join(sides[: len(texts)])))])
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(out)  # a Qwen's own has other words than these
    assert own["tokens"].tolist() == [tokenizer(*texts)["input_ids"]]
    first, second = (one.run("\t".join(sides[: len(texts)])) for one in (ours, again))
    assert numbers_of(first) == pytest.approx(numbers_of(second), abs=close)


def ask(skill: Any) -> Any:
    """An answer of a model of any task."""
    return skill.run("the [MASK] lit" if skill.task.name == "cloze" else PAIR)


def numbers_of(answer: Any) -> Any:
    """What an answer says, with as many digits as the model computes."""
    if hasattr(answer, "reward"):
        return {"reward": answer.reward}
    kinds = ("probabilities", "numbers", "probability")
    return next((getattr(answer, kind) for kind in kinds if hasattr(answer, kind)), answer.cells)


@cache
def reward_model(place: str) -> Path:
    folder = Path(place) / "reward-model"
    data = Path(place) / "better.tsv"
    data.write_text(DATA["better"])
    recipe = find_task("reward").recipe(data=data, validation=data, steps=2, out=folder, validate_every=2)
    learn(recipe, console=SILENT)
    return folder


def test_it_is_written_back(case: tuple[str, str, Path, Any], tmp_path: Path) -> None:
    """But for models without a head; transformers gives the same logits."""
    kind, head, folder, theirs = case
    if head == "none":
        with pytest.raises(SystemExit):
            main(["export", str(folder), "--out", str(tmp_path / "back")])
        return
    main(["export", str(folder), "--out", str(tmp_path / "back")])
    again = type(theirs).from_pretrained(tmp_path / "back").eval()
    tokens = torch.randint(3, 50, (1, 11))
    with torch.no_grad():
        found, expected = (hidden_or_logits(one(tokens)) for one in (again, theirs))
        torch.testing.assert_close(found, expected, atol=FOLDERS[kind].close, rtol=0)
    first, second = (ask(foveate.load(place)) for place in (folder, tmp_path / "back"))
    assert numbers_of(first) == pytest.approx(numbers_of(second), abs=FOLDERS[kind].close)


def read_alike(folder: Path) -> None:
    """transformers' tokenizer of a folder gives the ids of ours. It builds those of some classes anew from their
    vocabulary, so that the folder must have the tokenizer of its class."""
    own, theirs = open_tokenizer(folder, read_folder(folder)), transformers.AutoTokenizer.from_pretrained(folder)
    for text in [*TEXTS, "it's \u00e9 12"]:
        assert own.encode([text])[0] == theirs(text, add_special_tokens=False)["input_ids"], text


def test_a_tokenizer_of_qwen2_is_written_back(tmp_path: Path) -> None:
    """Byte-level, with the words that it has in its own class."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {piece: number for number, piece in enumerate([*letters, "th", "the", "Ġthe", "<|endoftext|>"])}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    config = transformers.Qwen2Config(**{**SIZES, "vocab_size": len(words), "eos_token_id": len(words) - 1})
    transformers.Qwen2ForCausalLM(config).save_pretrained(tmp_path / "folder")
    transformers.Qwen2Tokenizer(vocab=words, merges=merges).save_pretrained(tmp_path / "folder")
    main(["export", str(tmp_path / "folder"), "--out", str(tmp_path / "back")])
    read_alike(tmp_path / "folder")
    read_alike(tmp_path / "back")


def test_a_text_that_is_too_long(case: tuple[str, str, Path, Any]) -> None:
    """It has no answer, or is cut; of a model that reads any length it is read."""
    _, head, folder, _ = case
    skill = foveate.load(folder)
    text = " ".join(TEXTS * 40)
    if head == "span":
        return  # it is read in windows
    if head == "words" and skill.task.name == "cloze":
        text = f"the [MASK] lit {text}"
    limited = skill.most_positions < 400
    assert isinstance(skill.answer([text])[0], Failure if limited else Answer)
    skill.truncate = True
    (answer,) = skill.answer([text])
    assert isinstance(answer, Answer)
    assert answer.cut == limited
