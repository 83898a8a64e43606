"""Matching: whether two texts belong together, such as a sentence and its translation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.baselines.match_rules import MEASURES, Rule, best_threshold, fit
from foveate.baselines.match_vectors import vector_measures
from foveate.data import Judged, judged_pairs
from foveate.data.buckets import BucketedBatches
from foveate.data.text.match_processor import MatchProcessor
from foveate.data.text.pair_buckets import PairBuckets
from foveate.errors import UserError, one_line
from foveate.metrics.classification import accuracy, macro_f1, roc_auc
from foveate.sight import look
from foveate.tasks.answers.pair_reading import QUERY, pair_inputs, probabilities
from foveate.tasks.examples.pair_text import PairTask, PairText, split_pair
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import NoOptions
from foveate.tasks.run_folder import check_unchanged
from foveate.training import Batches
from foveate.viewer import Alignment, plot_alignments
from foveate.viewer.protocol import Input, LookResult

FITTED_TO = 10_000
"""Pairs from all over the training text that the rules beside the model are fitted to, at most."""

COUNTED = 50_000
"""Pairs from all over the training text in which words are counted, at most."""

TEST_SEED = 1
"""Of the wrong pairs that a model is measured on."""


@dataclass
class Pairs(PairText):
    """Which pairs to learn from, and how they become tokens."""

    from_language: str = "en"
    """Language of the first texts, for text by name and programs' translations."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language of the second texts, likewise."""
    lowercase: bool = False
    """Read lower case only."""
    batch_tokens: int = 1024
    """Tokens of a batch on its longer side, padding included."""
    validation_sentences: int = 500
    """Pairs that each validation tells from as many wrong ones."""


@dataclass
class Judgement:
    """How probable it is that two texts belong together."""

    source: str
    target: str
    probability: float

    @property
    def line(self) -> str:
        """The probability and both texts, parted by tabs, ready to be sorted or filtered."""
        sides = f"{one_line(self.source)}\t{one_line(self.target)}"
        return f"{self.probability:.4f}\t{sides}" if self.source or self.target else ""


@dataclass
class Match(PairTask[Architecture]):
    """Train a matcher, which tells whether two texts belong together, such as a sentence and its translation.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "match"
    unit = "pairs"
    processor = MatchProcessor
    default_training = Training(
        usual_epochs=5, learning_rate=2e-3, schedule="cosine", usual_warmup=200, label_smoothing=0.0, validate_every=250
    )

    examples: Annotated[Pairs, tyro.conf.arg(name="")] = field(default_factory=Pairs)
    model: str = "siamese-attentive"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/match")
    """Folder for the trained model; a training that it holds is resumed."""

    def check(self) -> None:
        architecture: Any = self.architecture
        if architecture.one_encoder and not self.examples.shared:
            raise UserError(
                "one encoder for both texts needs one vocabulary: share it, or set --architecture.no-one-encoder"
            )
        super().check()

    def fit(self, train: Any) -> MatchProcessor:
        pairs = judged_pairs(train.some(FITTED_TO), self.training.seed)
        rules = [fit(name, pairs) for name in MEASURES]
        return MatchProcessor(*self.examples.train_tokenizers(train), {rule.name: rule.threshold for rule in rules})

    def batches(self, train: Any, processor: MatchProcessor) -> Batches:
        pairs = PairBuckets(train, processor, self.examples.max_length)
        return BucketedBatches(pairs, self.examples.batch_tokens, self.training.seed)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Judgement]:
        """The judgement about each `source<TAB>target`. Raises TextError for one that is no pair."""
        pairs = [split_pair(text, place) for place, text in enumerate(texts)]
        return [Judgement(*pair, one) for pair, one in zip(pairs, probabilities(predictor, pairs), strict=True)]

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        sides = predictor.processor.encode([split_pair(text) for text in texts])
        lengths = enumerate(max(map(len, pair)) for pair in zip(*sides, strict=True))
        return [place for place, length in lengths if length > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[tuple[str, str]], options: NoOptions) -> Measured:
        """How well pairs are told from as many wrong ones."""
        pairs = judged_pairs(examples, TEST_SEED)
        found = probabilities(predictor, [(pair.source, pair.target) for pair in pairs])
        lines = [Judgement(pair.source, pair.target, one).line for pair, one in zip(pairs, found, strict=True)]
        return Measured(lines, _metrics(found, 0.5, pairs))

    def baselines(
        self, predictor: Predictor, examples: Sequence[tuple[str, str]], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """Rules that were fitted to the training text, and vectors that are counted in it."""
        pairs, thresholds = judged_pairs(examples, TEST_SEED), predictor.processor.thresholds
        rules = [Rule(name, thresholds[name]) for name in MEASURES if name in thresholds]
        found = {rule.name: _metrics(rule.measure(pairs), rule.threshold, pairs) for rule in rules}
        if not self._lost(predictor):
            found |= self._vectors(predictor, pairs)
        return {**found, "always yes": _metrics([1.0] * len(pairs), 0.5, pairs)}

    def _vectors(self, predictor: Predictor, pairs: Sequence[Judged]) -> dict[str, dict[str, float]]:
        """By vectors of words that are counted in the training text; thresholds are the best of the validation text."""
        train, validation = self.open()
        known, found = judged_pairs(validation.some(FITTED_TO), TEST_SEED), {}
        for name, measure in vector_measures(predictor.processor, train.some(COUNTED)).items():
            found[name] = _metrics(measure(pairs), best_threshold(measure(known), known), pairs)
        return found

    def _lost(self, predictor: Predictor) -> str:
        """Why the training text cannot be counted; empty if it can."""
        try:
            check_unchanged(predictor.description)
            if not all(map(len, self.open())):
                return "it is empty"
        except UserError as error:
            return str(error)
        return ""

    def notes(self, predictor: Predictor, examples: Sequence[tuple[str, str]]) -> list[str]:
        wrong = len(judged_pairs(examples, TEST_SEED)) - len(examples)
        notes = [f"{len(examples):,} right pairs, {wrong:,} wrong ones with targets of about the same length"]
        lost = self._lost(predictor)
        return [*notes, *([f"no vectors of words to compare with: {lost}"] if lost else [])]

    def picture(self, predictor: Predictor, prediction: Judgement) -> Any:
        """Where the model looked in either text."""
        inputs, pieces = pair_inputs(predictor, f"{prediction.source}\t{prediction.target}")
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.model(**inputs)
        weights = [sight[site].weights()[0, 0].cpu() for site in sight.sites]
        # one map for both texts where one encoder reads the same twice
        maps = [Alignment(found, [QUERY] * len(found), names) for found, names in zip(weights, pieces, strict=False)]
        return plot_alignments(maps, columns=1) if maps else None

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.matchers import look_at_pair

        return look_at_pair(predictor, given, max_length, sites)


def _metrics(scores: Sequence[float], threshold: float, pairs: Sequence[Judged]) -> dict[str, float]:
    """How well scores decide, where yes is a score of at least the threshold."""
    found = ["yes" if score >= threshold else "no" for score in scores]
    right = ["yes" if pair.right else "no" for pair in pairs]
    return {
        "accuracy": accuracy(found, right),
        "macro_f1": macro_f1(found, right),
        "roc_auc": roc_auc(scores, [pair.right for pair in pairs]),
    }
