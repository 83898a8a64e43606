"""Embedding: texts become vectors that are near where the texts mean the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from torch import nn

from foveate import models
from foveate.data import TRAINERS, ParallelText, Splits, open_source
from foveate.data.buckets import BucketedBatches
from foveate.data.text.batches import surroundings
from foveate.data.text.pair_buckets import PairBuckets
from foveate.data.text.paired_texts import PairedTextProcessor
from foveate.errors import at_least
from foveate.metrics.retrieval import as_recall, letter_vectors, target_ranks
from foveate.nn import skip_init
from foveate.tasks.answers.label_texts import read_whole_text
from foveate.tasks.examples.text_task import TextExamples, TextTask
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import ModelInputs, NoOptions
from foveate.tasks.public.embedder import Embedded, Embedder, Embedding
from foveate.tasks.start.parts import FromLanguageModel, LanguageModel
from foveate.tasks.start.weights import open_start
from foveate.training import Batches, Objective
from foveate.training.objectives.contrastive import ContrastiveTexts

PIECES = 8000
"""Pieces of words that a BERT learns, at most, where there are no trained weights."""


@dataclass
class Pairs(TextExamples):
    """Which pairs to learn from."""

    data: tuple[Path, ...] = ()
    """Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz."""
    validation: tuple[Path, ...] = ()
    """Text to validate on, likewise. Without it, up to 1,000 pairs of the data are held out."""
    from_language: str = "en"
    """Language of the sources, for text by name."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language of the targets, likewise."""
    batch_tokens: int = 2048
    """Tokens of a batch on its longer side, padding included. Each source is compared with all targets of its batch."""
    max_length: int = 128
    """Pairs with more tokens than this on a side are left out (and counted)."""
    validation_pairs: int = 500
    """Pairs that each validation during training retrieves."""

    @property
    def validation_examples(self) -> int:
        return self.validation_pairs

    @property
    def languages(self) -> tuple[str, str]:
        return self.from_language, self.to_language

    def check(self) -> None:
        super().check()
        at_least(2, "validation_pairs", self.validation_pairs)


@dataclass
class Embed(TextTask[Architecture]):
    """Train a model that gives texts vectors, from pairs of texts that mean the same: questions and answers, sentences
    and their translations.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "embed"
    unit = "pairs"
    files = "SRC TGT"
    metric = "recall_1"
    processor = PairedTextProcessor
    options = Embedding
    start_parts = LanguageModel()
    default_training = Training(
        epochs=5, learning_rate=1e-3, schedule="linear", warmup=100, validate_every=200, save_every=200
    )

    examples: Annotated[Pairs, tyro.conf.arg(name="")] = field(default_factory=Pairs)
    model: str = "bert-mini"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/embed")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromLanguageModel = None
    scale: float = 20.0
    """What cosines are multiplied by before the softmax over the targets of a batch."""

    def __post_init__(self) -> None:
        given: Any = self.architecture or {}
        if isinstance(given, Mapping):
            self.architecture = {"pooling": "mean", **given}  # type: ignore[assignment]
        super().__post_init__()

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Any:
        return NoOptions()

    def check(self) -> None:
        at_least(0, "scale", self.scale)
        super().check()

    def read(self, paths: Sequence[Path]) -> Any:
        return ParallelText.from_paths(paths, self.examples.languages)

    def open_source(self, name: str) -> Splits[Any]:
        return open_source(name, *self.examples.languages, task=self.task)

    def hold_out(self, train: Any, every: int) -> tuple[Any, Any]:
        return train.held_out(every)

    def key(self, example: tuple[str, str]) -> str:
        return example[0]

    def fit(self, train: Any) -> PairedTextProcessor:
        texts = (text for pair in train for text in pair)
        return PairedTextProcessor(self.trained_tokenizer() or TRAINERS["subwords"](texts, PIECES, False))

    def lengths(self, processor: PairedTextProcessor, examples: Iterable[Any]) -> list[int]:
        """The tokens of the longer side."""
        sides = zip(*(tuple(pair) for pair in examples), strict=True)
        counted = ([len(tokens) for tokens in processor.tokenizer.encode(list(side))] for side in sides)
        return [max(both) for both in zip(*counted, strict=True)]

    def positions(self, processor: PairedTextProcessor, examples: Iterable[Any]) -> list[int]:
        around = sum(map(len, surroundings(processor.tokenizer)))
        return [around + length for length in self.lengths(processor, examples)]

    def batches(self, train: Any, processor: PairedTextProcessor) -> Batches:
        """Of the pairs with at most `max_length` tokens on either side. Raises UserError where there is none."""
        pairs = PairBuckets(train, processor, self.examples.max_length)
        return BucketedBatches(pairs, self.examples.batch_tokens, self.training.seed)

    def objective(self) -> Objective:
        return ContrastiveTexts(self.scale)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Embedding) -> list[Embedded]:
        """The vector of each text, or the texts of a file that are nearest to it."""
        return _embedder(predictor).answer(texts, options)

    def measure(self, predictor: Predictor, examples: Sequence[tuple[str, str]], options: Any) -> Measured:
        """How often a source's own target is the nearest of all, or one of the nearest five."""
        sources, targets = _sides(examples)
        embedder = _embedder(predictor)
        ranks = target_ranks(embedder.embed(sources), embedder.embed(targets), sources, targets)
        lines = [f"{source}\t{rank + 1}" for source, rank in zip(sources, ranks, strict=True)]
        return Measured(lines, as_recall(ranks))

    def baselines(
        self, predictor: Predictor, examples: Sequence[tuple[str, str]], options: Any
    ) -> dict[str, dict[str, float]]:
        """The trained weights as they were, and the letters that texts share."""
        sources, targets = _sides(examples)
        ways = {}
        if self.start is not None:
            embedder = _embedder(Predictor(self, _as_begun(self, predictor), predictor.processor, {}))
            ranks = target_ranks(embedder.embed(sources), embedder.embed(targets), sources, targets)
            ways[f"{self.start} as it is"] = as_recall(ranks)
        ranks = target_ranks(*letter_vectors(sources, targets), sources, targets)
        chance = {"recall_1": 100 / len(targets), "recall_5": min(100.0, 500 / len(targets))}
        return {**ways, "shared letter triples, TF-IDF": as_recall(ranks), "chance": chance}

    def notes(self, predictor: Predictor, examples: Sequence[Any]) -> list[str]:
        return [f"each source among {len(examples):,} targets"]

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        lengths = enumerate(map(len, predictor.processor.tokenizer.encode(list(texts))))
        return [place for place, length in lengths if length > self.examples.max_length]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        return read_whole_text(predictor.model, predictor.processor.tokenizer, text)


def _sides(examples: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    sources, targets = zip(*examples, strict=True)
    return list(sources), list(targets)


def _embedder(predictor: Predictor) -> Embedder:
    return Embedder(predictor.model, predictor.processor.tokenizer, predictor.description)


def _as_begun(task: Embed[Any], predictor: Predictor) -> nn.Module:
    """The model with the weights that its training began from."""
    model: Any = predictor.model
    with skip_init():
        found = models.build(task.preset.family, model.config)
    open_start(task.start or task.out).fill(found)
    return found.to(predictor.device).eval()
