"""What every task keeps, whatever it reads and writes: a task is tested by being listed."""

import csv
import json
import math
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import made_examples
import numpy as np
import pytest
import torch
from made_examples import Made
from served_skill import as_input, served
from torch import Tensor
from workshop import SILENT, STEPS, Workshop, names, smallest

import foveate
from foveate import run_dir
from foveate.cli import main
from foveate.cli.folders import next_commands
from foveate.data.folders import allowing_outside
from foveate.errors import UserError, printable
from foveate.files import UNFINISHED, strict_json
from foveate.forms.answers import Answer, Failure, answer_values
from foveate.forms.blanks import FilledBlanks
from foveate.forms.inputs import add_question, read_input
from foveate.forms.rewriting import Rewritten
from foveate.forms.scored import ScoredForm
from foveate.metrics import resampling
from foveate.run_dir import CONFIG, WEIGHTS
from foveate.sight import Scale
from foveate.tasks import TASKS, find_task
from foveate.tasks.comparing import are_compared, whole_figures
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.skill import Skill
from foveate.tasks.task import Task
from foveate.tensor_files import read_tensors
from foveate.training import Interrupted, read_rows
from foveate.viewer.page import read as read_page

pytestmark = pytest.mark.usefixtures(
    "unchecked"
)  # which halves the time; shapes are checked as the models of `trained` are trained

WITHOUT_SCORE = {"embed", "draw", "gan"}
"""Tasks whose answers have no probability: vectors, and drawings."""


@dataclass
class Trained:
    """A trained model of a task, and what it is asked."""

    task: Task
    workshop: Workshop
    folder: Path

    @cached_property
    def skill(self) -> Skill:
        return foveate.load(self.folder)

    @cached_property
    def made(self) -> Made:
        return self.workshop.examples(self.task)

    @property
    def changes(self) -> dict[str, Any]:
        """The flags as keyword arguments."""
        pairs = zip(self.made.flags[::2], self.made.flags[1::2], strict=True)
        return {name.removeprefix("--"): Path(value) if "/" in value else value for name, value in pairs}

    @cached_property
    def inputs(self) -> list[str]:
        """Two inputs that can be read."""
        if self.made.inputs:
            return [*self.made.inputs]
        reads = self.skill.processor.reads
        places = dict.fromkeys(map(reads.place, self.task.read(self.made.data, self.skill.recipe)))
        return [*places][:2]

    def check_effects(self, found: dict[str, Any]) -> None:
        """The measured effects, against what the model says that is changed from outside."""
        (given, *question), takes = look_inputs(self), self.skill.takes
        value = add_question(read_input(given, takes), *(question or [None]), takes)
        scored = self.skill.score_look(value, None, 4096, None)

        def score() -> float:
            with torch.no_grad():
                return float(scored.score(1))

        whole = score()
        assert found["value"] == pytest.approx(whole, abs=1e-3)
        for one in (*found["heads"], *found["layers"]):
            if one["exact"]:
                with foveate.change(self.skill.model, {one["site"]: Scale(0.0, one.get("head"))}):
                    assert one["effect"] == pytest.approx(score() - whole, abs=1e-3)

    @property
    def draws(self) -> bool:
        """Whether answers are drawn, so that one depends on those before it."""
        return hasattr(self.skill.processor.writes.run_options(), "seed")

    @cached_property
    def unreadable(self) -> list[str]:
        """Inputs that cannot be read."""
        return made_examples.unreadable(self.task, self.folder.parent)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("every"))


@pytest.fixture(scope="module", params=TASKS)
def trained(request: pytest.FixtureRequest, workshop: Workshop) -> Trained:
    task = find_task(request.param)
    return Trained(task, workshop, workshop.run(task))


@pytest.fixture(scope="module", params=TASKS)
def attending(request: pytest.FixtureRequest, workshop: Workshop) -> Trained:
    """The smallest model of a task that attends."""
    task = find_task(request.param)
    return Trained(task, workshop, workshop.run(task, attending=True))


@dataclass
class Ended:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def error(self) -> str:
        """The one line that says what was wrong."""
        assert "Traceback" not in self.err
        assert self.status == 2, self
        found = self.err.splitlines()[-1]
        assert found.startswith("foveate: ")
        return found.removeprefix("foveate: ")


Command = Callable[..., Ended]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """Runs a command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")  # tables have a line for each row

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        status = 0
        try:
            main([*map(str, arguments)])
        except SystemExit as ended:
            status = int(ended.code or 0)
        return Ended(status, *capsys.readouterr())

    return run


@pytest.fixture
def run(trained: Trained, command: Command) -> Command:
    """Runs a verb of the command line on the trained model."""
    return lambda verb, *arguments: command(verb, trained.folder, *arguments)


NUMBER = re.compile(r"-?\b\d+\.\d+\b")


def alike(lines: list[str], others: list[str]) -> bool:
    """Whether lines say the same, but for the rounding of numbers."""
    (words, numbers), (others, other_numbers) = (
        (NUMBER.sub("", "\n".join(some)), [*map(float, NUMBER.findall("\n".join(some)))]) for some in (lines, others)
    )
    return words == others and numbers == pytest.approx(other_numbers, abs=2e-3)


def test_run(trained: Trained, run: Command) -> None:
    """Answers come in order, for one input and for several."""
    first, second = trained.inputs
    flags = trained.made.flags
    alone, both = run("run", first, *flags), run("run", first, second, *flags)
    turned = run("run", second, first, *flags)
    assert [(ended.status, len(ended.lines)) for ended in (alone, both, turned)] == [(0, 1), (0, 2), (0, 2)]
    if not trained.draws:
        assert alike(both.lines, turned.lines[::-1])
        assert alike(both.lines[:1], alone.lines)


def test_an_input_that_cannot_be_read_costs_no_other_its_answer(trained: Trained, run: Command) -> None:
    first, second = trained.inputs
    flags = trained.made.flags
    readable = run("run", first, second, *flags)
    for unreadable in trained.unreadable:
        ended = run("run", first, unreadable, second, *flags)
        assert ended.error
        assert len(ended.lines) == 3
        assert not ended.lines[1]
        if not trained.draws:
            assert alike(ended.lines[::2], readable.lines)


def test_json(trained: Trained, run: Command) -> None:
    """A failed input has its reason, in one way for all tasks."""
    first, second = trained.inputs
    given = [first, *trained.unreadable, second]
    ended = run("run", *given, "--json", *trained.made.flags)
    rows = [json.loads(line) for line in ended.lines]
    assert ended.error
    assert [row["input"] for row in rows] == [*map(printable, given)]
    assert [row.keys() == {"input", "error"} for row in rows] == [one not in trained.inputs for one in given]
    assert all(len(row) > 1 and "error" not in row for row in (rows[0], rows[-1]))
    assert all(isinstance(row["error"], str) and row["error"] for row in rows[1:-1])


def test_answers_in_a_file(trained: Trained, run: Command, tmp_path: Path) -> None:
    """A table and lines of JSON have what is printed, also of inputs that cannot be read."""
    first, second = trained.inputs
    given = [first, *trained.unreadable, second]
    printed = [json.loads(line) for line in run("run", *given, "--json", *trained.made.flags).lines]
    for name in ("answers.csv", "answers.tsv", "answers.jsonl"):
        ended = run("run", *given, "--output", tmp_path / name, *trained.made.flags)
        assert ended.error
        assert not ended.lines
        assert f"{name}: 2 answers, {len(trained.unreadable)} error" in ended.err
        if name == "answers.jsonl":
            rows = [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
            assert [row.keys() for row in rows] == [row.keys() for row in printed]
        else:
            with (tmp_path / name).open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file, delimiter="," if name == "answers.csv" else "\t"))
        assert [row["input"] for row in rows] == [row["input"] for row in printed]
        assert [bool(row.get("error")) for row in rows] == ["error" in row for row in printed]


def test_inputs_of_a_table(trained: Trained, run: Command, tmp_path: Path) -> None:
    """A table is read by its header, among other columns; an input of two parts stands in two of them. The user names a
    column that has another title."""
    columns = trained.skill.processor.reads.columns
    given = [one for one in trained.inputs if one.count("\t") == len(columns) - 1]
    assert given or len(columns) > 1
    with (tmp_path / "inputs.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["number", *(["Ours"] if len(columns) == 1 else [column.name for column in columns])])
        table.writerows([number, *one.split("\t")] for number, one in enumerate(given))
    named = ("--columns", f"{columns[0].key}=Ours") if len(columns) == 1 else ()
    table_of_them = ("--file", "inputs.csv", *named)
    asked = [run("run", *way, "--json", *trained.made.flags) for way in (table_of_them, given)]
    assert [json.loads(line)["input"] for line in asked[0].lines] == [
        json.loads(line)["input"] for line in asked[1].lines
    ]


def test_served(trained: Trained) -> None:
    """A service answers what the skill does, and nothing of a place on this machine comes with it."""
    skill, takes = trained.skill, trained.skill.takes
    options = skill.options_with(**trained.changes)
    expected = [*map(answer_values, trained.inputs, skill.answer(trained.inputs, options))]
    with served(skill, options) as client:
        found = client.answer(inputs=[as_input(given, takes) for given in trained.inputs])
        looked = client("POST", "/look", {"input": as_input(trained.made.look or trained.inputs[0], takes)})
    assert found.status == 200, found.json
    answers = found.json["answers"]
    apart = {"file", "question"}
    assert [one.keys() - apart for one in answers] == [one.keys() - apart for one in expected]
    assert all("error" not in one for one in answers)
    assert UNFINISHED not in json.dumps(answers)
    if not trained.draws:
        own = [name for name in expected[0] if name not in ("input", "place", *apart)]
        lines = [[strict_json({name: one[name] for name in own}) for one in values] for values in (answers, expected)]
        assert alike(*lines)
    assert looked.status == (200 if skill.attends() else 422), looked.json


def test_picture(attending: Trained, command: Command) -> None:
    """A model that attends is drawn, unless it writes nothing."""
    arguments = ("run", attending.folder, attending.inputs[0], *attending.made.flags, "--picture", "look.png")
    ended = command(*arguments)
    if ended.status:
        assert ended.error == "no picture to draw into look.png: there was nothing to answer"
        answer = attending.skill(attending.inputs[0], **attending.changes)
        assert not getattr(answer, "text", answer.line)
    else:
        assert Path("look.png").stat().st_size > 1000


def test_attention_is_watched_while_it_trains(attending: Trained) -> None:
    rows = read_rows(attending.folder / "metrics.jsonl")
    ((step, seen),) = [(row["step"], row["attention"]) for row in rows if "attention" in row]
    assert step == STEPS
    assert seen
    for heads in (heads for measures in seen.values() for heads in measures.values()):
        assert heads
        assert all(math.isfinite(number) for number in heads)
    assert {"entropy", "largest_score", "sink_share"} == set(next(iter(seen.values())))


def test_no_picture_of_a_model_that_does_not_attend(trained: Trained, run: Command) -> None:
    if not trained.skill.attends():
        ended = run("run", trained.inputs[0], *trained.made.flags, "--picture", "look.png")
        assert ended.error == "no picture to draw into look.png: this model has no attention"
        assert not Path("look.png").exists()


def look_inputs(trained: Trained) -> list[str]:
    """What a look is given: of an image with a text about it, two arguments."""
    given = trained.made.look or trained.inputs[0]
    return given.split("\t") if trained.skill.takes == "question" else [given]


def test_look(attending: Trained, command: Command) -> None:
    ended = command("look", attending.folder, *look_inputs(attending), "--out", "page.html")
    assert ended.status == 0, ended.err
    assert ended.lines[-1].startswith("wrote page.html: ")
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_effect(attending: Trained, command: Command) -> None:
    """What an answer needs, of every model whose answers have a score: measured in a batch as alone."""
    given, writes = look_inputs(attending), attending.skill.processor.writes
    ended = command("effect", attending.folder, *given, "--json", "--exact", "3")
    if not isinstance(writes, ScoredForm):
        assert ended.error.endswith("its answers have no probability that a head could change")
        assert attending.task.name in WITHOUT_SCORE
        return
    assert attending.task.name not in WITHOUT_SCORE
    found = json.loads(ended.out)
    assert math.isfinite(found["value"])
    kinds = [found["heads"], found["layers"]]
    for site in {one["site"]: None for one in found["places"]}:  # an image and its caption are measured apart
        kinds.append([one for one in found["places"] if one["site"] == site])
    for effects in kinds:
        assert all(math.isfinite(one["effect"]) for one in effects)
        assert sum(one["exact"] for one in effects) == min(3, len(effects))
    attending.check_effects(found)
    page = command("effect", attending.folder, *given, "--out", "page.html", "--picture", "effect.png")
    assert page.status == 0, page.err
    assert page.lines[0].endswith("and its change without")
    effects = read_page("page.html").effects
    assert effects is not None
    assert effects.value == pytest.approx(found["value"], abs=1e-3)
    assert [len(own) for own in effects.heads.values()] == [*Counter(one["site"] for one in found["heads"]).values()]
    assert Path("effect.png").stat().st_size > 1000


def test_no_look_at_a_model_that_does_not_attend(trained: Trained, run: Command) -> None:
    if not trained.skill.attends():
        ended = run("look", *look_inputs(trained), "--out", "page.html")
        assert "does not attend: there is nothing to see" in ended.error
        assert not Path("page.html").exists()


def test_eval(trained: Trained, run: Command) -> None:
    """The metric that chose the weights is measured, of the model and of trivial ways to answer."""
    data = ("--data", *trained.made.data)
    ended = run("eval", *data, "--json")
    assert ended.status == 0, ended.err
    ways, metric = json.loads(ended.out)["ways"], trained.skill.processor.writes.metric
    model, *baselines = ways
    assert model == trained.skill.recipe.model
    assert metric in ways[model]
    assert any(metric in ways[one] for one in baselines)
    table = run("eval", *data).out
    assert metric.lower() in table.lower().replace(" ", "_")
    assert all(name in table for name in baselines)


def test_compare(trained: Trained, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured of any examples is of all what eval measures; a run is not better than itself."""
    monkeypatch.setattr(resampling, "MOST_DRAWS", 20)
    skill = trained.skill
    writes, options = skill.processor.writes, skill.processor.writes.measure_options()
    with allowing_outside(False):
        examples = list(skill.answerable(skill.test_examples(trained.made.data, options)))
        measured = skill.measured(examples, options)
    ended = run("compare", "--data", *trained.made.data)
    assert ended.error == "give two runs or more to compare"
    ended = run("compare", trained.folder, "--data", *trained.made.data, "--json", "--picture", "c.png")
    assert are_compared(trained.task) == (measured is not None)
    if measured is None:
        assert all(map(math.isfinite, whole_figures([skill])))
        assert ended.error == f"runs of {trained.task.name} are measured as a whole: see foveate eval of each"
        return
    assert ended.status == 0, ended.err
    first, second = json.loads(ended.lines[0])["runs"]
    whole = skill.measure(examples, options)[1][writes.metric]
    assert measured.all()[writes.metric] == pytest.approx(whole, rel=1e-4)
    assert first["value"] == pytest.approx(whole, rel=1e-4)
    assert second["difference"] == 0
    assert second["p"] == 1
    assert Path("c.png").stat().st_size > 1000


def give_weights(folder: Path, change: Callable[[Tensor], Tensor]) -> None:
    """Change each floating-point tensor of a run folder, which stays whole."""
    weights = read_tensors(folder / WEIGHTS).tensors
    changed = {name: change(one) if one.is_floating_point() else one for name, one in weights.items()}
    description = json.loads((folder / CONFIG).read_text())
    run_dir.save(folder, {name: description[name] for name in description.keys() - {"format", "weights"}}, changed)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_weights_that_are_not_finite_give_no_answer(
    number: float, trained: Trained, command: Command, tmp_path: Path
) -> None:
    shutil.copytree(trained.folder, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    give_weights(
        tmp_path / "run", lambda one: one.index_fill(0, torch.tensor([len(one) - 1]), number) if one.ndim else one
    )
    for verb, *given in (("run", trained.inputs[0], *trained.made.flags), ("eval", "--data", *trained.made.data)):
        ended = command(verb, "run", *given)
        assert re.fullmatch(r".* its tensor '\S+' has numbers that are not finite: .*", ended.error)
        assert ended.out == ""


def test_numbers_that_overflow_give_no_answer(trained: Trained, command: Command, tmp_path: Path) -> None:
    """Of finite weights too; where these overflow nothing, there is an answer in numbers."""
    shutil.copytree(trained.folder, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    give_weights(tmp_path / "run", lambda one: one.sign() * 1e38)
    for verb, *given in (("run", trained.inputs[0], *trained.made.flags), ("eval", "--data", *trained.made.data)):
        ended = command(verb, "run", *given)
        assert ended.status == 0 or re.search("not finite|NaN", ended.error)
        assert not re.search(r"\b(nan|inf)\b", ended.out.lower())


def with_a_gap(data: Path, folder: Path) -> tuple[Path, int] | None:
    """A copy of a table with an empty second line, or of a folder with a damaged second image, and the number of that
    line; None for other data."""
    if data.is_dir():
        shutil.copytree(data, folder / "gap")
        found = sorted((folder / "gap").rglob("*.png"))
        if not found or (folder / "gap" / "masks").exists():
            return None
        found[1].write_bytes(b"no image")
        return folder / "gap", 1
    rows = data.read_text(encoding="utf-8").split("\n")
    if data.suffix != ".tsv" or "" in rows[:-1]:  # tagged words
        return None
    place = data.with_name("gap.tsv")
    place.write_text("\n".join([rows[0], "", *rows[1:]]), encoding="utf-8")
    return place, 1


def test_eval_writes_a_line_for_each_line_of_the_data(trained: Trained, run: Command, tmp_path: Path) -> None:
    """Also for one that is empty or cannot be read."""
    (data, *_), writes = trained.made.data, trained.skill.processor.writes
    if isinstance(writes, FilledBlanks | Rewritten):
        return  # of prose, rows and what fits are measured
    assert run("eval", "--data", data, "--output", "all.txt").status == 0
    whole = Path("all.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(whole) == len(trained.task.read([data], trained.skill.recipe).lines)
    if (made := with_a_gap(data, tmp_path / "folder")) is not None:
        place, gap = made
        ended = run("eval", "--data", place, "--output", "gap.txt")
        assert ended.status == 0, ended.err
        found = Path("gap.txt").read_text(encoding="utf-8").split("\n")[:-1]
        assert found[gap] == ""
        assert len(found) == len(whole) + (not place.is_dir())
        assert all(one or not other for one, other in zip(found[:gap] + found[gap + 1 :], whole, strict=False))


HOSTILE = (
    "[1]",
    '"text"',
    "{",
    '{"format": NaN}',
    '{"format": 1e999}',
    f'{{"a": {"[" * 200}{"]" * 200}}}',
    '{"a": "\\ud800"}',
)
"""JSON that no file of a run can be."""


def test_hostile_files(trained: Trained, tmp_path: Path) -> None:
    """Every JSON file of a run, its tokenizers too, goes through one gate."""
    shutil.copytree(trained.folder, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    for path in sorted((tmp_path / "run").glob("*.json")):
        whole = path.read_text(encoding="utf-8")
        for content in HOSTILE:
            path.write_text(content)
            with pytest.raises(UserError) as caught:
                foveate.load(tmp_path / "run")
            assert len(str(caught.value).splitlines()) == 1
            assert path.name in str(caught.value), content
        path.write_text(whole, encoding="utf-8")
    assert foveate.load(tmp_path / "run").model is not None


def test_a_stopped_training_ends_with_the_same_weights(trained: Trained, tmp_path: Path) -> None:
    def stop(row: Any) -> None:
        if row["step"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    recipe = partial(trained.workshop.recipe, trained.task, trained.skill.recipe.model, tmp_path / "run")
    with pytest.raises(Interrupted, match=r"^stopped after step 2;"):
        learn(recipe(), console=SILENT, callbacks=[stop])
    learn(recipe(), console=SILENT)
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == (trained.folder / WEIGHTS).read_bytes()


def test_a_run_is_taken_whole(trained: Trained, tmp_path: Path) -> None:
    """Its weights, what it reads and writes by, and its settings, where the new ones are silent."""
    task, made = trained.task, trained.made
    judge = {name: trained.workshop.run(find_task(name)) for name in names(task.objective) if name in TASKS}
    recipe = task.recipe(data=made.data, validation=made.data, start=trained.folder, out=tmp_path / "next", **judge)
    lesson = Lesson(task, recipe)
    lesson.check()
    processor = lesson.processor_of(lesson.open()[0])
    own, known = lesson.model_of(processor.sizes()).state_dict(), trained.skill.model.state_dict()
    assert [name for name in own if name not in known or not torch.equal(own[name], known[name])] == []
    assert processor.sizes() == trained.skill.processor.sizes()
    assert processor.writes.class_names == trained.skill.processor.writes.class_names
    given = {*made.settings} & {*names(recipe.reads), *names(recipe.writes)}
    assert {name: getattr(part, name) for part in (recipe.reads, recipe.writes) for name in given & {*names(part)}} == {
        name: made.settings[name] for name in given
    }


def test_training_goes_on_from_a_run(trained: Trained, command: Command, tmp_path: Path) -> None:
    recipe = trained.workshop.recipe(
        trained.task, trained.skill.recipe.model, tmp_path / "run", start=trained.folder, steps=1
    )
    found = learn(recipe, console=SILENT)
    assert isinstance(found(trained.inputs[0], **trained.changes), Answer)


def test_export(trained: Trained, run: Command) -> None:
    ended = run("export", "--out", "exported")
    if ended.status:
        assert ended.error
        assert not Path("exported").exists()
    else:
        assert (Path("exported") / "model.safetensors").is_file()


def test_in_python(trained: Trained) -> None:
    """One input has one answer, several have a list of answers; what is no input is refused."""
    skill, (first, second) = trained.skill, trained.inputs
    changes = trained.changes
    assert isinstance(skill(first, **changes), Answer)
    answers = skill([first, second], **changes)
    assert [(type(one), one.given) for one in answers] == [(type(answers[0]), first), (type(answers[0]), second)]
    assert [type(one) for one in skill([first, None], **changes)] == [type(answers[0]), Failure]
    for given in (None, 3, b"text", {"text": first}, np.zeros(2)):
        with pytest.raises(UserError, match=r"is not an input: give a text, a path, or a list of them$"):
            skill(given, **changes)
    assert skill([], **changes) == []


def test_what_to_do_next_is_with_an_input_of_the_model_s_kind(trained: Trained) -> None:
    given = {"text": '"..."', "image": "photo.jpg", "audio": "sound.wav", "question": 'photo.jpg "..."'}
    command, *look = next_commands(trained.skill, Path("a b")).split(", or to see where it looks: ")
    assert command == f"foveate run 'a b' {given[trained.skill.takes]}"
    assert look == [command.replace(" run ", " look ")] * trained.skill.attends()


def test_an_empty_input_is_no_mistake(trained: Trained, run: Command) -> None:
    """It has no answer, or that of a model that writes from nothing, and adds no column to a table of answers."""
    first, _ = trained.inputs
    ended = run("run", "", first, "--json", *trained.made.flags)
    assert ended.status == 0, ended.err
    empty, whole = map(json.loads, ended.lines)
    assert (empty["input"], whole["input"]) == ("", first)
    assert empty.keys() <= whole.keys()


@pytest.mark.parametrize("name", ["classify", "tag", "pair"])
def test_a_training_reads_its_file_once(
    name: str, workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is compared with simple ways, which learn from the same examples."""
    read, read_named = [], Task.read_named

    def counting(task: Task, paths: Any, recipe: Any) -> Any:
        read.append(paths)
        return read_named(task, paths, recipe)

    monkeypatch.setattr(Task, "read_named", counting)
    task = find_task(name)
    recipe = workshop.recipe(task, smallest(task).name, tmp_path / "run", validation=())
    skill = learn(recipe, console=SILENT)
    assert read == [recipe.examples.data]
    assert skill.training_parts() is skill.training_parts()
    assert skill.train_examples() is skill.training_parts()[0]
