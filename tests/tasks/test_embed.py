"""The task `embed`: from pairs of texts to vectors that find each other."""

from io import StringIO
from pathlib import Path

import pytest
import scipy.stats
import torch
import words
from rich.console import Console

import foveate
from foveate.contracts import Output
from foveate.data.buckets import BucketedBatches
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError
from foveate.forms.answers import NoOptions
from foveate.forms.processor import Processor
from foveate.forms.text_vector import NearOptions, PairedText, TextVector
from foveate.metrics.retrieval import as_recall, rank_correlation, target_ranks
from foveate.tasks.embedder import Embedder
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.training.objectives.contrastive import ContrastiveTexts

CONSOLE = Console(file=StringIO())

SIZES = {"width": 32, "heads": 4, "feedforward": 48, "layers": 1, "max_length": 20}


def splits() -> Splits:
    return Splits(*(ParallelText.from_pairs(words.pairs(count, count), f"words.{count}") for count in (300, 40, 60)))


def recipe(out: Path, **changes: object) -> Recipe:
    settings = {"steps": 60, "learning_rate": 1e-2, "warmup": 5, "average": 1, "device": "cpu"}
    settings |= {"batch": 256, "max_length": 15, "validation_examples": 20, "architecture": SIZES}
    return foveate.recipe("embed", out=out, **{**settings, **changes})


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return learn(recipe(tmp_path_factory.mktemp("embed") / "run"), splits(), CONSOLE)


def test_it_learns_which_texts_mean_the_same(embedder: Embedder, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in dict.fromkeys(words.pairs(40, 9))))
    found = embedder.evaluate([path], NoOptions(), CONSOLE)
    own, letters, chance = found.figures["ways"].values()
    assert own["recall_1"] > 50 > chance["recall_1"]
    assert own["recall_1"] > letters["recall_1"]
    assert "each source among" in found.notes[-1]


def test_scored_pairs_are_measured_by_rank_correlation(embedder: Embedder, tmp_path: Path) -> None:
    """Of all pairs of the table, also of those that do not mean the same, which recall leaves out."""
    pairs = [*dict.fromkeys(words.pairs(40, 9))]
    apart = [(source, pairs[place - 1][1]) for place, (source, _) in enumerate(pairs)]
    rows = [(*pair, "5.0") for pair in pairs] + [(*pair, "0.5") for pair in apart]
    path = tmp_path / "sts.tsv"
    path.write_text("sentence1\tsentence2\tscore\n" + "".join("\t".join(row) + "\n" for row in rows))
    found = embedder.evaluate([path], NoOptions(), CONSOLE)
    own, letters = (found.figures["ways"][way] for way in (embedder.recipe.model, "shared letter triples, TF-IDF"))
    sides = (embedder.embed([row[side] for row in rows]) for side in (0, 1))
    cosines = torch.cosine_similarity(*sides).tolist()
    expected = scipy.stats.spearmanr(cosines, [float(row[2]) for row in rows]).statistic
    assert own["spearman"] == pytest.approx(100 * expected, abs=0.01)
    assert own["spearman"] > letters["spearman"]
    assert own["spearman"] > 50
    assert found.headings[-1] == "spearman"
    assert f"of {len(rows)} pairs" in found.notes[-1]
    assert "spearman" not in found.figures["ways"]["chance"]


def test_ranks_of_equal_values() -> None:
    one, other = [3.0, 1.0, 1.0, 5.0, 2.0], [0.1, 0.2, 0.2, 0.9, 0.2]
    assert rank_correlation(one, other) == pytest.approx(scipy.stats.spearmanr(one, other).statistic)
    assert rank_correlation(one, [2.0] * 5) == 0


def test_a_folder_gives_vectors_and_nearest_texts(embedder: Embedder, tmp_path: Path) -> None:
    again = foveate.load(embedder.folder)
    assert again.model.config.pooling == "mean"
    assert again.run("red cat").vector == pytest.approx(embedder.run("red cat").vector, abs=1e-6)
    near = tmp_path / "french.txt"
    near.write_text("petit chien\nrouge chat\nlune mer\n")
    assert again.run("red cat", NearOptions(near=near, count=1)).near[0][1] == "rouge chat"
    found = again.answer(["red", "red " * 30, ""])
    assert [one.long for one in found] == [False, True, False]
    assert found[2].line == ""
    result = again.look("red cat")
    assert all([*keys] == [*queries] for queries, keys in result.tokens.values())
    assert again.picture(again.run("red cat")) is not None


def test_training_from_an_embedder_is_compared_with_it(embedder: Embedder, tmp_path: Path) -> None:
    more = learn(recipe(tmp_path / "more", start=embedder.folder, steps=1, learning_rate=0.0), splits(), CONSOLE)
    examples = list(splits().test)
    ways = more.baselines(examples, NoOptions())
    assert ways[f"{embedder.folder} as it is"] == more.measure(examples, NoOptions())[1]


def test_ranks_by_hand() -> None:
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    targets = torch.tensor([[1.0, 0.1], [1.0, 0.0], [1.0, 1.0]])
    ranks = target_ranks(queries, targets, ["a", "b", "c"], ["x", "y", "z"])
    assert ranks == [1, 2, 0]
    assert target_ranks(queries, targets, ["a", "a", "c"], ["x", "y", "z"]) == [0, 1, 0]
    assert as_recall([0, 1, 4, 5])["recall_5"] == 75
    with pytest.raises(UserError, match="one target alone cannot be chosen from"):
        target_ranks(queries[:1], targets[:1], ["a"], ["x"])


def batches(train: ParallelText, **settings: object) -> BucketedBatches:
    reads = PairedText(**settings).learn(splits().train, recipe(Path("x")).architecture)
    return BucketedBatches(reads.buckets(train, Processor(reads, TextVector())), 256, 1)


def test_the_loss_by_hand() -> None:
    batch = next(batches(splits().train).epoch(0))
    pair = batch.select(slice(2, 4))
    assert torch.equal(pair.inputs["tokens"], batch.inputs["tokens"][4:8])
    pair.targets = {"labels": torch.tensor([[0], [1]]), "sources": torch.tensor([[0], [1]])}
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    loss = ContrastiveTexts(3.0)(Output(vectors[:, None]), pair)
    assert float(loss.total) == pytest.approx(2 * torch.log1p(torch.tensor(-3.0).exp()).item(), abs=1e-6)
    assert float(loss.log["accuracy"]) == 2


def test_pairs_too_long_for_any_batch() -> None:
    long = ParallelText.from_pairs([("red cat dog", "rouge chat chien")] * 30, "long")
    with pytest.raises(UserError, match="each of the 30 pairs has more than 1 tokens on a side"):
        batches(long, max_length=1)
