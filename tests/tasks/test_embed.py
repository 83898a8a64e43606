"""The task `embed`: from pairs of texts to vectors that find each other."""

from io import StringIO
from pathlib import Path

import pytest
import torch
import words
from rich.console import Console

import foveate
from foveate.contracts import Output
from foveate.data import ParallelText, Splits
from foveate.errors import UserError
from foveate.metrics.retrieval import as_recall, target_ranks
from foveate.tasks.embed import Embed, Pairs
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Training
from foveate.tasks.protocols import NoOptions
from foveate.tasks.public.embedder import Embedding
from foveate.training.objectives.contrastive import ContrastiveTexts

CONSOLE = Console(file=StringIO())

SIZES = {"width": 32, "heads": 4, "feedforward": 48, "layers": 1, "max_length": 20}


def splits() -> Splits:
    return Splits(*(ParallelText.from_pairs(words.pairs(count, count), f"words.{count}") for count in (300, 40, 60)))


def recipe(out: Path, **changes: object) -> Embed:
    training = Training(steps=60, learning_rate=1e-2, warmup=5, average=1, device="cpu")
    return Embed(
        **{
            "examples": Pairs(batch_tokens=256, max_length=15, validation_pairs=20),
            "out": out,
            "training": training,
            "architecture": SIZES,
            **changes,
        }
    )


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return recipe(tmp_path_factory.mktemp("embed") / "run").learn(splits(), CONSOLE)


def test_it_learns_which_texts_mean_the_same(embedder: Predictor, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in dict.fromkeys(words.pairs(40, 9))))
    found = embedder.evaluate([path], NoOptions(), CONSOLE)
    own, letters, chance = found.figures["ways"].values()
    assert own["recall_1"] > 50 > chance["recall_1"]
    assert own["recall_1"] > letters["recall_1"]
    assert "each source among" in found.notes[-1]


def test_a_folder_gives_vectors_and_nearest_texts(embedder: Predictor, tmp_path: Path) -> None:
    again = foveate.load(embedder.task.out)
    assert again.model.config.pooling == "mean"
    assert again.run("red cat").vector == pytest.approx(embedder.run("red cat").vector, abs=1e-6)
    near = tmp_path / "french.txt"
    near.write_text("petit chien\nrouge chat\nlune mer\n")
    assert again.run("red cat", Embedding(near=near, count=1)).near[0][1] == "rouge chat"
    assert again.task.longer_than_training(again, ["red", "red " * 30]) == [1]
    assert again.task.model_inputs(again, "red cat").pieces


def test_training_from_an_embedder_is_compared_with_it(embedder: Predictor, tmp_path: Path) -> None:
    task = recipe(tmp_path / "more", start=embedder.task.out, training=Training(steps=1, learning_rate=0.0, average=1))
    more = task.learn(splits(), CONSOLE)
    examples = list(splits().test)
    ways = task.baselines(more, examples, NoOptions())
    assert ways[f"{embedder.task.out} as it is"] == task.measure(more, examples, NoOptions()).metrics


def test_ranks_by_hand() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    targets = torch.tensor([[1.0, 0.1], [1.0, 0.0], [1.0, 1.0]])
    ranks = target_ranks(queries, targets, ["a", "b", "c"], ["x", "y", "z"])
    assert ranks == [1, 2, 0]
    assert target_ranks(queries, targets, ["a", "a", "c"], ["x", "y", "z"]) == [0, 1, 0]
    assert as_recall([0, 1, 4, 5])["recall_5"] == 75
    with pytest.raises(UserError, match="one target alone cannot be chosen from"):
        target_ranks(queries[:1], targets[:1], ["a"], ["x"])


def test_the_loss_by_hand() -> None:
    batch = next(iter(recipe(Path("x")).batches(splits().train, recipe(Path("x")).fit(splits().train)).epoch(0)))
    pair = batch.select(slice(2, 4))
    assert torch.equal(pair.inputs["tokens"], batch.inputs["tokens"][4:8])
    pair.targets = {"labels": torch.tensor([[0], [1]]), "sources": torch.tensor([[0], [1]])}
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    loss = ContrastiveTexts(3.0)(Output(vectors[:, None]), pair)
    assert float(loss.total) == pytest.approx(2 * torch.log1p(torch.tensor(-3.0).exp()).item(), abs=1e-6)
    assert float(loss.log["accuracy"]) == 2


def test_pairs_too_long_for_any_batch(tmp_path: Path) -> None:
    task = recipe(tmp_path, examples=Pairs(batch_tokens=256, max_length=1, validation_pairs=20))
    long = ParallelText.from_pairs([("red cat dog", "rouge chat chien")] * 30, "long")
    with pytest.raises(UserError, match="each of the 30 pairs has more than 1 tokens on a side"):
        task.batches(long, recipe(tmp_path).fit(splits().train))
