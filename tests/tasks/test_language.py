"""Training a language model, writing with it, and measuring it beside n-grams."""

import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tiny_prose
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Passage
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.language import Continued, condition_of
from foveate.metrics.perplexity import Perplexity, perplexity
from foveate.tasks import skill
from foveate.tasks.language import TASK
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.viewers import open_model

QUIET = Console(file=StringIO(), width=200)


def learned(recipe: Recipe, console: Console) -> Any:
    found = tiny_prose.splits()
    assert TASK.arrange is not None
    return learn(
        recipe, Splits(*(TASK.arrange(part, recipe) for part in (found.train, found.dev, found.test))), console
    )


def written(
    author: LanguageModel, text: str = "", condition: str | None = None, seed: int = 1, **decoding: Any
) -> Continued:
    found: Continued = author.run(text, condition=condition, seed=seed, **decoding)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return tiny_prose.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def author(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """One that was told of each passage whether it is of the sea or of the land."""
    recipe = tiny_prose.language(tmp_path_factory.mktemp("language") / "run", steps=400, data=tuple(files))
    learn(recipe, console=QUIET)
    return foveate.load(recipe.out)


def test_what_is_told(tmp_path: Path) -> None:
    told = StringIO()
    learned(tiny_prose.language(tmp_path / "run", steps=2), Console(file=told, width=200))
    lines = told.getvalue().splitlines()
    assert lines[0].startswith("prose.300: 300 passages (")
    assert lines[2] == "prose.300: 0 of 300 passages left out for more than 512 tokens"
    assert lines[3].endswith("subwords, 2 conditions")
    assert lines[4].startswith("the training ends after 2 steps, inside its warm-up of 5")
    assert "validation: perplexity" in lines[5]
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "processor.json"} <= names


def test_it_does_not_attend(author: LanguageModel, tmp_path: Path) -> None:
    author.save(tmp_path)
    prepared = author.reads.prepare(author.reads.open("The whale"))
    assert author.reads.names(prepared)[0] == "<start>"
    author.model(**author.reads.tensors([prepared])[0])
    with pytest.raises(UserError, match="does not attend: there is nothing to see"):
        open_model(tmp_path).look("The whale", 30)


def test_it_goes_on_from_a_beginning(author: LanguageModel) -> None:
    """A noun that it knows is followed by a deed; with a condition, nearly all sentences are of that kind."""
    found = written(author, "The whale", method="greedy")
    assert found.text.startswith("The whale ")
    assert any(found.text.startswith(f"The whale {deed}") for deed in tiny_prose.DEEDS)
    assert found.given == "The whale"
    assert found.line == found.text
    drawn = author([""] * 20, condition="sea")
    nouns = [noun.split()[1] for noun in tiny_prose.SAYINGS["land"]]
    assert sum(not any(noun in one.text for noun in nouns) for one in drawn) > 14
    assert len({one.text for one in drawn}) > 5


def test_draws_repeat_with_their_seed(author: LanguageModel) -> None:
    with pytest.raises(UserError, match="seed is 9223372036854775808, but must be at least 0 and below"):
        written(author, seed=2**63)
    first, again, other = (written(author, condition="land", seed=seed).text for seed in (3, 3, 4))
    assert first == again != other
    several = written(author, "A farmer", n_best=3)
    assert len(several.others) == 2
    assert several.line.count("\tA farmer ") == 2


def test_beginnings_are_read_in_batches_and_answered_in_order(
    author: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long line fills up no other, and the draws of all come from one generator."""
    texts, shapes, start = ["The cow", "The whale rests. " * 30, "", "A farmer"], [], author.model.prefill

    def noted(tokens: torch.Tensor, **inputs: torch.Tensor) -> Any:
        shapes.append(tuple(tokens.shape))
        return start(tokens=tokens, **inputs)

    monkeypatch.setattr(author.model, "prefill", noted)
    monkeypatch.setattr(author, "optimized", lambda precision: author.model)
    monkeypatch.setitem(skill.PLACES, "cpu", 20)
    greedy = author(texts, method="greedy")
    assert [one.given for one in greedy] == texts
    assert [one.text for one in greedy] == [written(author, text, method="greedy").text for text in texts]
    assert [rows for rows, _ in shapes[:2]] == [1, 3]
    assert shapes[1][1] < 20 < shapes[0][1]
    drawn = [one.text for one in author([""] * 40, seed=3)]
    assert drawn[:20] != drawn[20:]


def test_the_length_is_limited(author: LanguageModel) -> None:
    short = written(author, "The cow", method="greedy", length_extra=1)
    assert not short.ended
    assert len(author.reads.words.encode([short.text])[0]) == len(author.reads.words.encode(["The cow"])[0]) + 1


def test_the_condition_matters_and_so_does_what_came_before(author: LanguageModel, files: list[Path]) -> None:
    found = author.evaluate(files, NoOptions(), QUIET)
    names = [row[0] for row in found.rows]
    assert names == ["rnn-conditioned", "told no condition", "told a wrong one", "unigram", "bigram", "trigram"]
    per_word = {name: found.figures["ways"][name]["perplexity_per_word"] for name in names}
    assert max(per_word["rnn-conditioned"], per_word["bigram"]) < per_word["unigram"] / 5
    assert per_word["rnn-conditioned"] < per_word["told no condition"] < per_word["told a wrong one"]
    assert found.headings == ["answers by", "perplexity", "perplexity per word", "bits per byte"]
    assert found.answers[0].count("\t") == 2
    assert len(found.answers) == 400
    json.dumps(found.figures)


def test_perplexity_by_hand(author: LanguageModel) -> None:
    """The end of a passage counts as a token and as a word."""
    passages = [Passage("here", "sea", ("The ship rests now.",)), Passage("there", "land", ("The cow",))]
    scored = author.scores(passages)
    found = perplexity(scored)
    tokens = author.reads.words.encode([passage.text for passage in passages])
    assert (found.tokens, found.words) == (sum(map(len, tokens)) + 2, 4 + 1 + 2 + 1)
    assert [one.passage for one in scored] == passages, "in their order, though the second is shorter"
    halves = Perplexity(nats=found.words * math.log(2), tokens=2 * found.words, words=found.words)
    assert halves.per_word == pytest.approx(2)
    assert halves.per_token == pytest.approx(math.sqrt(2))
    assert found.bytes == len("The ship rests now.") + len("The cow") + 2
    assert Perplexity(8 * math.log(2), 1, 1, bytes=4).bits_per_byte == pytest.approx(2)


def test_without_conditions(tmp_path: Path) -> None:
    author = learned(tiny_prose.language(tmp_path / "run", 2, "rnn-language"), QUIET)
    assert author.reads.conditions == ()
    assert author.reads.numbers is None
    with pytest.raises(UserError, match="this model was trained without conditions"):
        written(author, "The cow", condition="land")
    with pytest.raises(UserError, match=r"trained on files: give --data FILE \.\.\. to measure it on"):
        author.evaluate([], NoOptions(), QUIET)
    path = tiny_prose.write_files(tmp_path)[0]
    found = author.evaluate([path], NoOptions(), QUIET)
    assert list(found.figures["ways"]) == ["rnn-language", "unigram", "bigram", "trigram"]


def test_words_and_characters(tmp_path: Path) -> None:
    """What a vocabulary of words does not know is told, for it makes the figures incomparable."""
    (tmp_path / "new.txt").write_text("The whale rests xylophonically.\n")
    for tokens, unknown in (("words", "1 tokens are unknown"), ("characters", "3 tokens are unknown")):
        told = StringIO()
        recipe = tiny_prose.language(tmp_path / tokens, 1, "rnn-language", tokens=tokens)
        author = learned(recipe, Console(file=told, width=200))
        assert told.getvalue().splitlines()[3].endswith(f" {tokens}")
        found = author.evaluate([tmp_path / "new.txt"], NoOptions(), QUIET)
        assert found.notes[2].startswith(unknown)
        written(author, "The whale")


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (5, r"conditions is 5, but must be a list"),
        ([1, 2], r"conditions is .*1, 2.*, but must be a list"),
        (["a", "b", "c"], None),
    ],
)
def test_damaged_conditions(author: LanguageModel, tmp_path: Path, conditions: Any, message: str | None) -> None:
    author.save(tmp_path)
    assert foveate.load(tmp_path).processor.reads.conditions == ("land", "sea")
    values = json.loads((tmp_path / "processor.json").read_text())
    values["reads"]["conditions"] = conditions
    (tmp_path / "processor.json").write_text(json.dumps(values))
    expected = rf"processor\.json: {message}" if message else "has the conditions 3, but the files beside it 4"
    with pytest.raises(UserError, match=expected):
        foveate.load(tmp_path)


def test_any_vector_is_a_condition(author: LanguageModel) -> None:
    """A condition's own numbers, and a mixture of it alone, write what the condition writes."""
    numbers = ",".join(map(repr, author.model.condition.weight[2].tolist()))
    usual = written(author, condition="sea", method="greedy").text
    assert written(author, condition=numbers, method="greedy").text == usual
    assert written(author, condition="sea:1.0", method="greedy").text == usual
    assert written(author, condition="land:0, sea", method="greedy").text == usual
    table = author.model.condition
    half = condition_of(author.reads.conditions, table, "land:0.5,sea:0.5")
    torch.testing.assert_close(half, table.weight[1:].mean(0).detach())


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("land:0.5,seas:0.5", r"unknown condition 'seas'; did you mean sea\?"),
        ("land:much", "the weight of the condition land is 'much', but must be a number"),
        ("1,2", "--condition has 2 numbers, but the vector of a condition "),
    ],
)
def test_what_is_no_vector(author: LanguageModel, condition: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        written(author, condition=condition)


def test_an_unknown_condition(author: LanguageModel) -> None:
    with pytest.raises(UserError, match=r"unknown condition 'seas'; did you mean sea\?"):
        written(author, condition="seas")


def test_a_resumed_training_ends_as_the_uninterrupted_one(tmp_path: Path) -> None:
    whole = learned(tiny_prose.language(tmp_path / "whole", steps=7), QUIET)
    learned(tiny_prose.language(tmp_path / "parts", steps=3), QUIET)
    resumed = learned(tiny_prose.language(tmp_path / "parts", steps=7), QUIET)
    ours, theirs = resumed.model.state_dict(), whole.model.state_dict()
    assert all(ours[name].equal(theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            {},
            "nothing to learn from: name a source (see `foveate data`) or give --data FILE ...",
        ),
        ({"source": "emoji"}, "emoji is text for translate"),
        ({"passage_words": 0}, "passage_words is 0, but must be at least 1"),
        ({"model": "rnn-luong"}, "rnn-luong is a model for another task; the task language takes gpt-tiny,"),
    ],
)
def test_what_cannot_be(tmp_path: Path, recipe: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        learn(TASK.recipe(out=tmp_path, **recipe), console=QUIET)
    assert str(caught.value).startswith(message)


def test_one_kind_of_text_is_no_condition(tmp_path: Path, files: list[Path]) -> None:
    with pytest.raises(UserError, match=r"all of sea\.txt is of one, 'sea': give several files"):
        learn(tiny_prose.language(tmp_path / "run", 2, data=(files[0],)), console=QUIET)


def test_words_too_long_for_any_number() -> None:
    """As in scripts without spaces."""
    found = Perplexity(nats=2000.0, tokens=400, words=2)
    assert (found.per_word, found.per_token) == (math.inf, pytest.approx(math.exp(5)))


@pytest.mark.parametrize(
    ("model", "changes", "refused"),
    [
        ("gpt-tiny", {}, ""),
        ("gpt1-tiny", {}, ""),
        ("gpt3-tiny", {}, "this GPT has the window 63, but transformers' GPT None: it has no public layout"),
        ("gpt-tiny", {"positions": "rotary", "norm_kind": "rms"}, "only a GPT with learned positions"),
    ],
)
def test_which_of_its_models_are_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture, model: str, changes: dict, refused: str
) -> None:
    """As docs/language.md says."""
    sizes = {"width": 12, "heads": 3, "layers": 2, "feedforward": 48, "dropout": 0.0}
    learned(tiny_prose.language(tmp_path / "run", steps=1, model=model, architecture=sizes | changes), QUIET)
    exported = ["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    if refused:
        with pytest.raises(SystemExit):
            main(exported)
        assert refused in capsys.readouterr().err
    else:
        main(exported)
        assert foveate.load(tmp_path / "out").run("The ship").line.startswith("The ship")
