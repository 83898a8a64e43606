"""The task `pair`: two texts, read together by a BERT, get a label."""

import random
from io import StringIO
from pathlib import Path

import pytest
import tiny_bert
import torch
import transformers
import verdicts
from rich.console import Console
from tiny_folders import byte_tokenizer
from tiny_prose import write_files

import foveate
from foveate.cli import main
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled_pairs import LabelledPair
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.errors import UserError
from foveate.forms.answers import Failure, NoOptions
from foveate.forms.label import ShowLabels
from foveate.forms.text_pair import PairText, fit_rules
from foveate.special_tokens import LEARNED
from foveate.tasks.cloze import TASK as CLOZE
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.viewers import open_model

START, END = LEARNED.start, LEARNED.end

CONSOLE = Console(file=StringIO())

SIZES = {"width": 20, "heads": 5, "layers": 2, "feedforward": 28, "max_length": 19, "dropout": 0.0}


def pairs(count: int, seed: int) -> list[LabelledPair]:
    """The label is the verdict of the second text; the first one's verdict is any."""
    draw = random.Random(seed)
    firsts, seconds = verdicts.examples(count, seed), verdicts.examples(count, seed + 1)
    draw.shuffle(firsts)
    both = zip(firsts, seconds, strict=True)
    return [
        LabelledPair(f"pair {number}", label, first, second)
        for number, ((_, first), (label, second)) in enumerate(both)
    ]


def splits() -> Splits:
    return Splits(*(Dataset(f"pairs.{count}", pairs(count, count), "pairs") for count in (400, 40, 60)))


def recipe(out: Path, start: Path, steps: int = 120, **changes: object) -> Recipe:
    settings = {"steps": steps, "learning_rate": 1e-2, "warmup": 5, "average": 1, "validate_every": 60, **changes}
    settings |= {"device": "cpu", "batch": 512, "max_length": 15, "architecture": SIZES | {"attention_dropout": 0.0}}
    return foveate.recipe("pair", model="bert-base", start=start, out=out, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert.write_folder(tmp_path_factory.mktemp("bert"), initial=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Skill:
    torch.manual_seed(0)
    return learn(recipe(tmp_path_factory.mktemp("pair") / "run", folder), splits(), CONSOLE)


def write(path: Path, examples: list[LabelledPair]) -> Path:
    path.write_text("".join(f"{one.label}\t{one.first}\t{one.second}\n" for one in examples))
    return path


def test_both_texts_are_read_as_transformers_reads_them(folder: Path) -> None:
    reads = PairText(tokenizer=BertTokenizer.load(folder), segments=True)
    inputs, _ = reads.tensors([reads.prepare(pair) for pair in (("bad dogs", "a good film!"), ("cats", "fine"))])
    theirs = transformers.BertTokenizer(str(folder / "vocab.txt"))
    expected = theirs(["bad dogs", "cats"], ["a good film!", "fine"], padding=True, return_tensors="pt")
    assert torch.equal(inputs["tokens"], expected["input_ids"])
    assert torch.equal(inputs["token_types"], expected["token_type_ids"])
    assert inputs["lengths"].tolist() == expected["attention_mask"].sum(1).tolist() == [9, 5]


def test_two_separators_of_roberta() -> None:
    reads = PairText(tokenizer=BertTokenizer(byte_tokenizer().backend_tokenizer), segments=False)
    begin, end = reads.tokenizer.begin[0], reads.tokenizer.end[0]
    first, second = reads.words.encode(["lamp", "the keeper"])
    assert reads.prepare(("lamp", "the keeper")).tokens.tolist() == [begin, *first, end, end, *second, end]
    assert sum(map(len, reads.around)) == 4


def test_it_learns_which_text_is_the_second(trained: Skill, tmp_path: Path) -> None:
    assert trained.run("bad dogs\ta good film").label == "praise"
    assert trained.run("a good film\tbad dogs").label == "blame"
    found = trained.evaluate([write(tmp_path / "test.tsv", pairs(60, 7))], NoOptions(), CONSOLE)
    ways = {name: figures["accuracy"] for name, figures in found.figures["ways"].items()}
    assert next(iter(ways)) == "bert-base"
    assert ways.pop("bert-base") > 90 > max(ways.values())
    assert max(ways["length ratio"], ways["shared letter triples"]) < 75


def test_a_folder_gives_the_same_model_and_nothing_for_nothing(trained: Skill, folder: Path) -> None:
    loaded = foveate.load(trained.folder)
    assert loaded.processor.writes.rules == trained.processor.writes.rules
    texts = ["bad dogs\ta good film", "", "cats\t", "the cats\tpoor story"]
    found = loaded.answer(texts, ShowLabels())
    assert found == trained.answer(texts, ShowLabels())
    assert [bool(one.line) for one in found] == [True, False, False, True]
    assert [one.long for one in loaded.answer(["cats\tdogs", "cats\t" + "dogs " * 15])] == [False, True]


def test_a_page_of_both_texts(trained: Skill) -> None:
    viewer = open_model(trained.folder)
    seen = viewer.look("bad dogs\ngood film\n", 20)
    assert "[CLS] bad dogs [SEP] good film [SEP]" in {" ".join(keys) for _, keys in seen.tokens.values()}
    assert trained.picture(trained.run("bad dogs\tgood film")) is not None
    with pytest.raises(UserError, match="reads two texts: separate them by a newline or a tab"):
        viewer.look("bad dogs", 20)


def test_from_a_run_of_cloze(tmp_path: Path) -> None:
    """Without --model, with the tokenizer and the sizes of the run; texts stand between START and END."""
    text = {"vocabulary": 60, "max_length": 12, "validation_examples": 5, "steps": 2, "average": 1, "device": "cpu"}
    sizes = SIZES | {"heads": 2, "layers": 1, "max_length": 80, "norm": "pre", "positions": "rotary"}
    out = tmp_path / "cloze"
    foveate.train(CLOZE.recipe(data=write_files(tmp_path), model="bert-tiny", out=out, architecture=sizes, **text))
    more = {"steps": 2, "average": 1, "device": "cpu", "architecture": {"pooling": "mean"}}
    task = foveate.recipe("pair", start=tmp_path / "cloze", out=tmp_path / "run", **more)
    found = learn(task, splits(), CONSOLE)
    assert (task.model, found.model.config.width, found.model.config.head) == ("bert-tiny", 20, "pair")
    joined = found.processor.reads.join([7], [8, 9])
    assert (joined.tokens.tolist(), joined.second) == ([START, 7, END, 8, 9, END], 3)
    assert foveate.load(tmp_path / "run").run("A cow\tThe ship") == found.run("A cow\tThe ship")


def test_from_nothing_with_one_kind_of_tokens(tmp_path: Path) -> None:
    """RoBERTa has no vectors of first and second texts."""
    settings = {"vocabulary": 80, "max_length": 15, "steps": 1, "average": 1, "device": "cpu"}
    task = foveate.recipe("pair", model="roberta-base", out=tmp_path, architecture=SIZES, **settings)
    found = learn(task, splits(), CONSOLE)
    reads = found.processor.reads
    assert sum(map(len, reads.around)) == 3
    assert "token_types" not in reads.tensors([reads.join([5], [6, 7])])[0]
    assert found.run("bad dogs\tgood").label in ("praise", "blame")


def test_three_labels_have_no_rules() -> None:
    three = Dataset("three", [LabelledPair("", label, "a", "b") for label in "xyz"])
    assert fit_rules(three) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("praise\tbad dogs\n", "line 1: 1 tabs, but a line must be label<TAB>text<TAB>other text"),
        ("praise\tbad\tgood\nblame\t\tgood\n", "line 2: the text is empty"),
        ("\n", "there is no pair in it"),
        ("praise\tbad\tgood\n" * 60, "every pair has the label 'praise'; deciding takes two labels"),
    ],
)
def test_data_that_cannot_be(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text(text)
    task = recipe(tmp_path / "run", folder)
    task.examples.data = task.examples.validation = (data,)
    with pytest.raises(UserError, match=message):
        learn(task, console=CONSOLE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bad dogs", "has 0 tabs, where one tab must separate two texts"),
        ("bad dogs\t" + "good " * 17, "takes 22 positions, but the model learned only 19"),
    ],
)
def test_what_cannot_be_decided(trained: Skill, text: str, message: str) -> None:
    (found,) = trained.answer([text])
    assert isinstance(found, Failure)
    assert message in found.reason


def test_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write(tmp_path / "pairs.tsv", pairs(60, 7)), str(tmp_path / "run")
    sizes = [f"--architecture.{name.replace('_', '-')}={value}" for name, value in SIZES.items()]
    arguments = ["--data", str(data), "--from", str(folder), "--model", "bert-base", *sizes, "--steps", "2"]
    main(["train", "pair", *arguments, "--out", out, "--threads", "1"])
    capsys.readouterr()
    main(["run", out, "bad dogs\tgood film"])
    assert capsys.readouterr().out.split("\t")[0] in ("praise", "blame")
