"""A reward model and a language model that learns to please it, from end to end on a few words."""

import math
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

import foveate
from foveate.cli import main
from foveate.contracts import IGNORE, Batch, Output
from foveate.data import Splits
from foveate.data.dataset import Dataset
from foveate.data.preferences import Preference, read_preferences
from foveate.data.prose import Paragraph, Prose
from foveate.errors import UserError
from foveate.tasks.language import Language, LanguageText
from foveate.tasks.reward import Pairs, TrainReward, rewards
from foveate.tasks.rlhf import Drawing, Prompts, TrainRLHF
from foveate.tasks.rollouts import distinct, write
from foveate.training import Training
from foveate.training.preferences import BradleyTerry, PolicyGradient, leave_one_out

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
    settings = Training(steps=40, learning_rate=1e-2, warmup=5, validate_every=40, save_every=40, label_smoothing=0.0)
    text = LanguageText(tokens="words", vocabulary=40, max_length=20, passage_words=10, batch_tokens=256)
    language = Language(examples=text, model="gpt-tiny", architecture=SIZES, training=settings, out=base)
    passages = language.passages(prose())
    language.learn(Splits(passages, passages, passages), CONSOLE)
    small = {"embedding": 12, "width": 8, "dropout": 0.0}
    settings = Training(steps=40, learning_rate=1e-2, warmup=5, validate_every=40, save_every=40)
    examples = Pairs(tokens="words", vocabulary=40, batch=400)
    TrainReward(examples=examples, architecture=small, training=settings, out=reward).learn(
        Splits(pairs(), pairs(), pairs()), CONSOLE
    )
    return base, reward


def tuning(folders: tuple[Path, Path], out: Path, steps: int = 12, **changes: object) -> TrainRLHF:
    training = Training(
        steps=steps, learning_rate=5e-3, warmup=1, schedule="constant", average=1, validate_every=6, save_every=6,
        precision="float32", weight_decay=0.0,
    )  # fmt: skip
    examples = Prompts(batch=4, samples=4, max_tokens=8, validation_examples=24)
    values = {"examples": examples, "training": training, "kl_weight": 0.2, **changes}
    return TrainRLHF(base=folders[0], reward=folders[1], out=out, architecture=SIZES, **values)


def parts(task: TrainRLHF) -> Splits:
    dataset = task.examples.of_prose(prose())
    return Splits(dataset, dataset, dataset)


@pytest.fixture(scope="module")
def tuned(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rlhf") / "run"
    task = tuning(folders, out)
    task.learn(parts(task), CONSOLE)
    return out


def test_the_reward_model_prefers_what_people_prefer(folders: tuple[Path, Path], capsys: pytest.CaptureFixture) -> None:
    predictor = foveate.load(folders[1])
    good, bad = rewards(predictor, ["The cast is good .", "The cast is dull ."])
    assert good > bad + 1
    main(["run", str(folders[1]), "The cast is good ."])
    assert capsys.readouterr().out == f"{good:.3f}\n"


def test_tuning_raises_the_reward_and_stays_near(folders: tuple[Path, Path], tuned: Path) -> None:
    predictor = foveate.load(tuned)
    task = predictor.task
    examples = list(task.examples.of_prose(prose()))[:24]
    after = task.measure(predictor, examples, Drawing()).metrics
    (before,) = task.baselines(predictor, examples, Drawing()).values()
    assert before["kl"] == pytest.approx(0, abs=1e-4)
    assert after["reward"] > before["reward"] + 0.5
    assert 0 < after["kl"] < 10


def test_a_resumed_tuning_is_the_same(folders: tuple[Path, Path], tuned: Path, tmp_path: Path) -> None:
    half = tuning(folders, tmp_path / "run", steps=6)
    half.learn(parts(half), CONSOLE)
    whole = tuning(folders, tmp_path / "run")
    whole.learn(parts(whole), CONSOLE)
    found, expected = (foveate.load(place).model.state_dict() for place in (tmp_path / "run", tuned))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_texts_are_drawn_with_their_probabilities(folders: tuple[Path, Path]) -> None:
    author = foveate.load(folders[0])
    prompts = author.processor.tokenizer.encode(["The film", "The"])
    generator = torch.Generator().manual_seed(5)
    found = write(author.model, author.model, author.processor.tokenizer, prompts, 3, 5, generator)
    assert [text.startswith("The film") for text in found.texts] == [True] * 3 + [
        text.startswith("The film") for text in found.texts[3:]
    ]
    assert found.kl.tolist() == [0] * 6
    assert (found.labels[:3, :2] == IGNORE).all()
    assert (found.labels[:3, 2] != IGNORE).all()
    assert found.length.max() <= 5


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


def test_bad_input(folders: tuple[Path, Path], tmp_path: Path) -> None:
    task = tuning((folders[0], folders[0]), tmp_path / "a")
    with pytest.raises(UserError, match="--reward takes a reward model"):
        task.learn(parts(task), CONSOLE)
    with pytest.raises(UserError, match="--from takes a language model"):
        tuning((folders[1], folders[1]), tmp_path / "b").check()
    (tmp_path / "pairs.tsv").write_text("better\tworse\nonly one\n")
    with pytest.raises(UserError, match=r"pairs.tsv, line 2: one tab must stand between"):
        read_preferences([tmp_path / "pairs.tsv"])
    (tmp_path / "pairs.tsv").write_text("\n")
    with pytest.raises(UserError, match="there is no pair in it"):
        read_preferences([tmp_path / "pairs.tsv"])
    with pytest.raises(UserError, match="samples is 1, but must be at least 2"):
        tuning(folders, tmp_path / "c", examples=Prompts(samples=1)).check()
