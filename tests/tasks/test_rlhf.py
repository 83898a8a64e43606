"""A reward model and a language model that learns to please it, from end to end on a few words."""

import json
import math
import os
import signal
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE, Batch, Output
from foveate.data.dataset import Dataset
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Paragraph, Prose
from foveate.data.text.preferences import Preference, read_preferences
from foveate.errors import UserError
from foveate.forms.tuned import MeasureDrawn, MeasureSamplesByReward
from foveate.tasks.dpo import TASK as DPO
from foveate.tasks.language import TASK as LANGUAGE
from foveate.tasks.learning import Lesson, learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.reward import TASK as REWARD
from foveate.tasks.rlhf import TASK, read_prompts, sentences_of
from foveate.tasks.skill import skill_class
from foveate.tasks.tuning.common import rewards
from foveate.tasks.tuning.rollouts import WritingPrompt, distinct, token_log_probs, write
from foveate.training import Interrupted, Training
from foveate.training.objectives.preferences import (
    BradleyTerry,
    ClippedPolicyGradient,
    DirectPreference,
    PolicyGradient,
    leave_one_out,
)

CONSOLE = Console(file=StringIO())
SIZES = {"width": 24, "heads": 2, "feedforward": 32, "layers": 1, "dropout": 0.0, "max_length": 32}
NOUNS, ADJECTIVES = ("film", "plot", "cast"), ("good", "bad", "fine", "dull")


def prose() -> Prose:
    texts = [f"The {noun} is {adjective} ." for noun in NOUNS for adjective in ADJECTIVES] * 4
    return Prose.from_paragraphs([Paragraph(f"line {n}", "", text) for n, text in enumerate(texts)], "reviews")


def pairs() -> Dataset[Preference]:
    found = [
        Preference(f"{noun} {better}", f"The {noun} is {better} .", f"The {other} is {worse} .")
        for noun in NOUNS
        for other in NOUNS
        for better in ("good", "fine")
        for worse in ("bad", "dull")
    ]
    return Dataset("pairs", found * 3, "pairs")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base, reward = tmp_path_factory.mktemp("base") / "run", tmp_path_factory.mktemp("reward") / "run"
    steps = Training(steps=40, learning_rate=1e-2, warmup=5, validate_every=40, save_every=40)
    text = {"tokens": "words", "vocabulary": 40, "max_length": 20, "passage_words": 10, "batch": 256}
    language = LANGUAGE.recipe(model="gpt-tiny", architecture=SIZES, out=base, training=steps, **text)
    assert LANGUAGE.arrange is not None
    passages = LANGUAGE.arrange(prose(), language)
    learn(language, Splits(passages, passages, passages), CONSOLE)
    small = {"embedding": 12, "width": 8, "dropout": 0.0}
    settings = Training(steps=40, learning_rate=1e-2, warmup=5, validate_every=40, save_every=40)
    words = {"tokens": "words", "vocabulary": 40, "batch": 400}
    learn(
        REWARD.recipe(architecture=small, training=settings, out=reward, **words),
        Splits(pairs(), pairs(), pairs()),
        CONSOLE,
    )
    return base, reward


def tuning(folders: tuple[Path, Path], out: Path, steps: int = 12, **changes: Any) -> Recipe:
    training = Training(
        steps=steps, learning_rate=5e-3, warmup=1, schedule="constant", average=1, validate_every=6, save_every=6,
        precision="float32", weight_decay=0.0,
    )  # fmt: skip
    texts = {"batch": 4, "samples": 4, "max_tokens": 8, "validation_examples": 24, "kl_weight": 0.2}
    values = {"training": training, **texts, **changes}
    return TASK.recipe(start=folders[0], reward=folders[1], out=out, architecture=SIZES, **values)


def parts(task: Recipe) -> Splits:
    dataset = sentences_of(prose(), task)
    return Splits(dataset, dataset, dataset)


def begun(task: Recipe) -> Any:
    """The model before its tuning."""
    lesson = Lesson(TASK, task)
    lesson.check()
    processor = lesson.processor_of(parts(task).train)
    model = lesson.model_of(processor.sizes())
    return TASK.skill()(TASK, task, model, processor, lesson.description(model))


@pytest.fixture(scope="module")
def tuned(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rlhf") / "run"
    task = tuning(folders, out)
    learn(task, parts(task), CONSOLE)
    return out


def test_the_reward_model_prefers_what_people_prefer(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    predictor = foveate.load(folders[1])
    good, bad = rewards(predictor, ["The cast is good .", "The cast is dull ."])
    assert good > bad + 1
    main(["run", str(folders[1]), "The cast is good .", "--picture", str(tmp_path / "weights.png")])
    assert capsys.readouterr().out == f"{good:.3f}\n"
    assert (tmp_path / "weights.png").exists()
    main(["look", str(folders[1]), "The cast is good .", "--out", str(tmp_path / "look.html")])
    assert f"Answer: {good:.3f}" in capsys.readouterr().out
    main(["run", str(folders[1]), "", "--json"])
    assert '"reward": null' in capsys.readouterr().out
    _, measured = predictor.measure([*pairs()], None)
    assert measured["accuracy"] > 90
    ways = predictor.baselines([*pairs()], None)
    assert ways == {"the longer text": {"accuracy": 50}}


def test_tuning_raises_the_reward_and_stays_near(folders: tuple[Path, Path], tuned: Path) -> None:
    predictor = foveate.load(tuned)
    examples = list(sentences_of(prose(), predictor.recipe))[:24]
    after = predictor.measure(examples, MeasureDrawn())[1]
    (before,) = predictor.baselines(examples, MeasureDrawn()).values()
    assert before["kl"] == pytest.approx(0, abs=1e-4)
    assert after["reward"] > before["reward"] + 0.5
    assert 0 < after["kl"] < 10


def test_a_resumed_tuning_is_the_same(folders: tuple[Path, Path], tuned: Path, tmp_path: Path) -> None:
    half = tuning(folders, tmp_path / "run", steps=6)
    learn(half, parts(half), CONSOLE)
    whole = tuning(folders, tmp_path / "run")
    learn(whole, parts(whole), CONSOLE)
    found, expected = (foveate.load(place).model.state_dict() for place in (tmp_path / "run", tuned))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_texts_are_drawn_with_their_probabilities(folders: tuple[Path, Path]) -> None:
    author = foveate.load(folders[0])
    words = author.reads.words
    prompts = [WritingPrompt([words.special.start, *row]) for row in words.encode(["The film", "The"])]
    generator = torch.Generator().manual_seed(5)
    found = write(author.model, author.model, author.reads.words, prompts, 3, 5, generator)
    assert [text.startswith("The film") for text in found.texts] == [True] * 3 + [
        text.startswith("The film") for text in found.texts[3:]
    ]
    assert found.kl.tolist() == [0] * 6
    assert (found.labels[:3, :2] == IGNORE).all()
    assert (found.labels[:3, 2] != IGNORE).all()
    assert found.length.max() <= 5


def test_ppo_takes_clipped_steps_on_the_same_texts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    task = tuning(folders, tmp_path / "run", method="ppo", passes=3)
    batches: Any = begun(task).batches(parts(task).train)
    sources = [batch.source for batch in islice(batches.epoch(0), 4)]
    assert sources == ["step 1 of pass 1"] * 3 + ["step 2 of pass 1"]
    assert [batch.source for batch in islice(batches.epoch(0, skip=2), 2)] == sources[2:]
    predictor: Any = learn(task, parts(task), CONSOLE)
    examples = list(parts(task).train)[:24]
    after = predictor.measure(examples, MeasureDrawn())[1]
    (before,) = predictor.baselines(examples, MeasureDrawn()).values()
    assert after["reward"] > before["reward"] + 0.5
    rows = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    assert '"clipped"' in rows
    with pytest.raises(UserError, match="save_every is 6, but must be a multiple of the 4 passes"):
        Lesson(TASK, tuning(folders, tmp_path / "a", method="ppo")).check()


def test_ppo_is_not_stopped_between_steps_on_the_same_texts(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """They would be written anew, by another model."""
    task = tuning(folders, tmp_path / "run", method="ppo", passes=3)
    task.training.log_every = 1
    stop = [lambda row: os.kill(os.getpid(), signal.SIGINT) if row["step"] == 3 else None]
    with pytest.raises(Interrupted, match="stopped after step 6;"):
        learn(task, parts(task), CONSOLE, callbacks=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (0.0, r"gives 48 sentences the same reward, 0: there is nothing to learn from it$"),
        (math.nan, r"the model's numbers are not finite: its training went wrong, or its file is damaged$"),
    ],
)
def test_a_reward_that_is_constant_or_not_finite(
    folders: tuple[Path, Path], tmp_path: Path, change: float, message: str
) -> None:
    task = tuning(folders, tmp_path / "run")
    skill = begun(task)
    with torch.no_grad():
        for parameter in skill.judge.model.parameters():
            parameter.fill_(change)
    with pytest.raises(UserError, match=message):
        skill.batches(parts(task).train)


@pytest.mark.parametrize(
    ("changed", "weight", "message"),
    [
        (
            "policy",
            math.nan,
            "the model gave NaN within 2 steps of decoding; its weights are damaged or diverged; the last",
        ),
        ("base", math.nan, r"the KL of '.+' is nan; the last checkpoint has the weights before: try a lower learning_"),
    ],
)
def test_a_kl_that_is_not_finite(
    folders: tuple[Path, Path], tmp_path: Path, changed: str, weight: float, message: str
) -> None:
    task = tuning(folders, tmp_path / "run")
    skill = begun(task)
    batches: Any = skill.batches(parts(task).train)
    with torch.no_grad():
        (skill.model if changed == "policy" else skill.author.model).embedding.weight.fill_(weight)
    with pytest.raises(UserError, match=f"^step 1 of pass 1 stopped: {message}"):
        next(batches.epoch(0))


def test_a_reward_model_of_another_tokenizer_or_of_another_task(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """It reads texts, so that its tokens may be others; a folder that holds no reward model is told at once."""
    small = {"embedding": 6, "width": 4, "dropout": 0.0}
    settings = Training(steps=1, validate_every=1, save_every=1)
    letters = {"tokens": "characters", "batch": 400, "out": tmp_path / "letters"}
    learn(REWARD.recipe(architecture=small, training=settings, **letters), Splits(pairs(), pairs(), pairs()), CONSOLE)
    task = tuning((folders[0], tmp_path / "letters"), tmp_path / "run")
    batch = next(begun(task).batches(parts(task).train).epoch(0))
    assert batch.targets["reward"].unique().numel() > 1
    with pytest.raises(UserError, match="was trained for the task language; --reward takes a reward model"):
        Lesson(TASK, tuning((folders[0], folders[0]), tmp_path / "run")).check()


def test_dpo_learns_from_pairs_without_a_reward_model(folders: tuple[Path, Path], tmp_path: Path) -> None:
    training = Training(
        steps=30, learning_rate=5e-3, warmup=1, average=1, validate_every=15, save_every=15, precision="float32",
    )  # fmt: skip
    texts = {"batch": 200, "validation_examples": 20, "beta": 1.0}
    splits = Splits(pairs(), pairs(), pairs())
    out = tmp_path / "run"
    learn(DPO.recipe(start=folders[0], out=out, architecture=SIZES, training=training, **texts), splits, CONSOLE)
    predictor = foveate.load(out)
    assert len(predictor.run("The film").line.split()) > 2
    measured = predictor.measure(list(pairs()), MeasureSamplesByReward(reward=folders[1]))[1]
    (before,) = predictor.baselines(list(pairs()), MeasureSamplesByReward(reward=folders[1])).values()
    assert measured["accuracy"] > 90
    assert measured["reward"] > before["reward"] + 0.5
    assert measured["kl"] > 0.1
    with pytest.raises(UserError, match="beta is 0, but must be above 0"):
        Lesson(DPO, DPO.recipe(start=folders[0], beta=0)).check()


def test_losses_of_ppo_and_dpo_by_hand() -> None:
    logits = torch.tensor([0.0, math.log(3)])[None, None].expand(2, 3, 2)
    labels = torch.tensor([[IGNORE, 1, 0], [IGNORE, 1, IGNORE]])
    written = torch.tensor([[0.0, math.log(0.5), math.log(0.5)], [0.0, math.log(0.5), 0.0]])
    targets = {"labels": labels, "advantage": torch.tensor([2.0, -1.0]), "log_prob": written}
    targets |= {name: torch.ones(2) for name in ("reward", "kl", "length")}
    found = ClippedPolicyGradient(0.2)(Output(logits), Batch({}, targets, torch.ones(2).long(), ""))
    # Ratios 1.5 and 0.5 for the first text, 1.5 for the second; only what would still gain is clipped.
    assert float(found.total) == pytest.approx(-2 * 1.2 - 2 * 0.5 + 1.5)
    assert float(found.log["clipped"]) == 2
    targets = {"labels": labels, "reference": torch.tensor([math.log(0.75 * 0.25) - 2, math.log(0.75) - 1])}
    loss = DirectPreference(0.5)(Output(logits), Batch({}, targets, torch.ones(1).long(), ""))
    assert float(loss.total) == pytest.approx(math.log(1 + math.exp(-0.5)))
    assert float(loss.log["margin"]) == pytest.approx(0.5)


def test_losses_by_hand() -> None:
    logits = torch.tensor([1.0, 0.0, 0.5, 2.0], requires_grad=True)
    found = BradleyTerry()(Output(logits[:, None, None]), Batch({}, {}, torch.ones(2).long(), ""))
    expected = math.log(1 + math.exp(-1.0)) + math.log(1 + math.exp(1.5))
    assert float(found.total.detach()) == pytest.approx(expected)
    assert found.log["accuracy"] == 1
    assert leave_one_out(torch.tensor([[1.0, 2.0, 6.0]])).tolist() == [[-3.0, -1.5, 4.5]]
    targets = {"labels": torch.tensor([[IGNORE, 1]]), "advantage": torch.tensor([2.0])}
    targets |= {name: torch.tensor([3.0]) for name in ("reward", "kl", "length")}
    loss = PolicyGradient()(Output(torch.zeros(1, 2, 4)), Batch({}, targets, torch.ones(1).long(), ""))
    assert float(loss.total.detach()) == pytest.approx(2 * math.log(4))
    assert distinct(["a b c", "a b d"]) == 75


def test_the_base_of_low_rank_updates_is_the_model_without_them(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """No second copy of the weights: the reference of each pair is that of the language model to begin from."""
    splits = Splits(pairs(), pairs(), pairs())
    recipe = DPO.recipe(start=folders[0], out=tmp_path / "run", lora=2, batch=200)
    lesson = Lesson(DPO, recipe)
    model = lesson.model_of({}).train()
    for name, parameter in model.named_parameters():
        if name.endswith(".up"):
            torch.nn.init.normal_(parameter)
    forms = lesson.processor_of(splits.train)
    skill: Any = skill_class(DPO, forms)(DPO, recipe, model, forms, lesson.description(model))
    batch = next(iter(skill.batches(splits.train).epoch(0)))
    assert "author" not in skill.__dict__
    assert model.training
    expected = token_log_probs(skill.author.model, batch.inputs, batch.labels, skill.device).sum(1)
    torch.testing.assert_close(batch.targets["reference"], expected, atol=1e-4, rtol=0)
    own = token_log_probs(model.eval(), batch.inputs, batch.labels, skill.device).sum(1)
    assert float((own - expected).abs().max()) > 0.1


def test_low_rank_updates_tune(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """The layers that get none are those of the language model."""
    task = tuning(folders, tmp_path / "run", steps=5, lora=2)
    found: Any = learn(task, parts(task), CONSOLE)
    tuned, before = found.model.state_dict(), found.author.model.state_dict()
    changed = {name for name, one in before.items() if not torch.equal(one, tuned[name])}
    assert changed
    assert all(name.endswith(("self.query.weight", "self.value.weight")) for name in changed)
    with pytest.raises(UserError, match="there is nothing to tune: name a language model with --from"):
        Lesson(TASK, TASK.recipe(reward=folders[1])).check()


def test_bad_input(folders: tuple[Path, Path], tmp_path: Path) -> None:
    task = tuning((folders[0], folders[0]), tmp_path / "a")
    with pytest.raises(UserError, match="--reward takes a reward model"):
        learn(task, parts(task), CONSOLE)
    with pytest.raises(UserError, match="is a run of reward, but rlhf begins from one of language"):
        Lesson(TASK, tuning((folders[1], folders[1]), tmp_path / "b")).check()
    (tmp_path / "pairs.tsv").write_text("better\tworse\nonly one\n")
    with pytest.raises(UserError, match=r"pairs.tsv, line 2: 0 tabs, but a line must be better<TAB>worse"):
        read_preferences([tmp_path / "pairs.tsv"])
    (tmp_path / "pairs.tsv").write_text("\n")
    with pytest.raises(UserError, match="there is no pair in it"):
        read_preferences([tmp_path / "pairs.tsv"])
    with pytest.raises(UserError, match="samples is 1, but must be at least 2"):
        Lesson(TASK, tuning(folders, tmp_path / "c", samples=1)).check()


@pytest.mark.parametrize("form", [lambda text: {"prompt": text}, lambda text: text], ids=["object", "text"])
def test_prompts_may_be_whole_texts(form: Any, folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Of lines of JSON: they are not cut after the first words."""
    texts = [f"The {noun} is" for noun in NOUNS] * 4
    data = tmp_path / "prompts.jsonl"
    data.write_text("".join(json.dumps(form(text)) + "\n" for text in texts))
    recipe = tuning(folders, tmp_path / "run", data=data, validation=data)
    found = learn(recipe, console=CONSOLE)
    assert [found.processor.reads.value(one) for one in read_prompts([data], recipe)] == texts
    assert all(text.startswith("The ") for text in found.measure([*read_prompts([data], recipe)], MeasureDrawn())[0])


def test_prompts_that_are_none(folders: tuple[Path, Path], tmp_path: Path) -> None:
    data = tmp_path / "prompts.jsonl"
    recipe = tuning(folders, tmp_path / "run", data=data, validation=data)
    data.write_text('{"prompt": " "}\n')
    with pytest.raises(UserError, match=r"^prompts\.jsonl, line 1: the prompt is empty$"):
        learn(recipe, console=CONSOLE)
    data.write_text('"The film"\n[{"role": "user", "content": "what?"}]\n')
    with pytest.raises(UserError, match=r"line 2: no conversation, which is an object"):
        learn(recipe, console=CONSOLE)
    data.write_text('"The film"\n{"prompt": [{"role": "user", "content": "what?"}]}\n')
    with pytest.raises(UserError, match=r"line 2: the prompt is a list of messages, but a text in prompts\.jsonl"):
        learn(recipe, console=CONSOLE)
    data.write_text(json.dumps("The film is good " * 20) + "\n")
    with pytest.raises(UserError, match=r"^the prompt 'The film is good .*' has \d+ tokens, and 8 may be written, but"):
        learn(recipe, console=CONSOLE)
