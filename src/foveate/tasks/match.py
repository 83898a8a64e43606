"""Matching: whether two texts belong together, such as a sentence and its translation."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from foveate.baselines.match_rules import best_threshold
from foveate.baselines.match_vectors import vector_measures
from foveate.data.text.match_pairs import Judged, judged_pairs
from foveate.data.text.parallel_corpus import ParallelText
from foveate.forms.matched_texts import FITTED_TO, TEST_SEED, Match, MatchedTexts, match_metrics
from foveate.metrics.resampling import Measured
from foveate.tasks.recipe import PairExamples
from foveate.tasks.skill import Skill
from foveate.tasks.task import Task
from foveate.tasks.training_data import lost
from foveate.tasks.translate import PairRun
from foveate.training import CrossEntropy, Training

COUNTED = 50_000
"""Pairs from all over the training text in which words are counted, at most."""


class Matcher(Skill):
    """A model that tells right pairs from wrong ones, of which there are none in the data: they are drawn."""

    def measure(
        self, examples: Sequence[tuple[str, str]], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """How well pairs are separated from as many wrong ones. Lines are for the pairs alone."""
        pairs = judged_pairs(examples, TEST_SEED)
        answers = self.answer_examples([(pair.source, pair.target) for pair in pairs], options, console)
        return [one.line for one in answers[: len(examples)]], self.processor.writes.metrics(answers, pairs)

    def measured(self, examples: Sequence[tuple[str, str]], options: Any, console: Console | None = None) -> Measured:
        """Right and wrong pairs are drawn one by one."""
        pairs, metrics = judged_pairs(examples, TEST_SEED), self.processor.writes.metrics
        answers = self.answer_examples([(pair.source, pair.target) for pair in pairs], options, console)
        return Measured(len(pairs), lambda rows: metrics([answers[row] for row in rows], [pairs[row] for row in rows]))

    def baselines(self, examples: Sequence[tuple[str, str]], options: Any) -> dict[str, dict[str, float]]:
        """Rules that were fitted to the training text, and vectors that are counted in it."""
        pairs = judged_pairs(examples, TEST_SEED)
        found = super().baselines(pairs, options)
        if not lost(self):
            found |= self._vectors(pairs)
        return {**found, "always yes": match_metrics([1.0] * len(pairs), 0.5, pairs)}

    def _vectors(self, pairs: Sequence[Judged]) -> dict[str, dict[str, float]]:
        """By vectors of words that are counted in the training text; thresholds are the best of the validation text."""
        train, validation = self.training_parts()
        known, found = judged_pairs(validation.some(FITTED_TO), TEST_SEED), {}
        for name, measure in vector_measures(self.processor.reads.tokenizers, train.some(COUNTED)).items():
            found[name] = match_metrics(measure(pairs), best_threshold(measure(known), known), pairs)
        return found

    def notes(self, examples: Sequence[tuple[str, str]]) -> list[str]:
        wrong = len(judged_pairs(examples, TEST_SEED)) - len(examples)
        counts = f"{len(examples):,} right pairs, {wrong:,} wrong ones with targets of about the same length"
        why = lost(self)
        return [counts, *([f"no vectors of words to compare with: {why}"] if why else [])]


TASK = Task(
    name="match",
    also="similarity",
    about="Train a matcher, which tells whether two texts belong together, such as a sentence and its translation.",
    families=("siamese",),
    reads=MatchedTexts(),
    writes=Match(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: ParallelText.from_paths(paths, recipe.examples.languages),
    files="SRC TGT",
    layout="Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz; or "
    "folders of programs' translations (.mo, .po), such as /usr/share/locale.",
    examples=PairExamples(batch=1024, validation_examples=500),
    model="siamese-bag",
    training=Training(usual_epochs=5, learning_rate=2e-3, schedule="cosine", usual_warmup=200, validate_every=250),
    start=PairRun(),
    unit="pairs",
    skill=lambda: Matcher,
)
