"""Training a matcher: parallel text, wrong pairs, tokenizers, model, objective and metric, brought together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from torch import nn

from foveate.data import MatchBatches, PairBatches, ParallelText, Splits, judged_pairs
from foveate.errors import UserError
from foveate.tasks.match_rules import MEASURES, fit
from foveate.tasks.matcher import Matcher, figures_of
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import spread
from foveate.tasks.translate import Text, known, parallel_texts, train_tokenizers
from foveate.training import Training, Validation

FITTED_TO = 10_000
"""Pairs from all over the training text that the rules beside the model are fitted to, at most."""


@dataclass
class Pairs(Text):
    """Which pairs to learn from, and how they become tokens."""

    from_language: Annotated[str, tyro.conf.arg(name="from")] = "en"
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
class Match(Recipe[Architecture]):
    """Train a matcher, which tells whether two texts belong together, such as a sentence and its translation.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "match"
    unit = "pairs"
    usual = Training(
        epochs=5, learning_rate=2e-3, schedule="cosine", warmup=200, label_smoothing=0.0, validate_every=250
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


def run(recipe: Match, splits: Splits[ParallelText] | None = None, console: Console | None = None) -> Matcher:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    learn, check = (splits.train, splits.dev) if splits else parallel_texts(recipe.examples, recipe.task)
    for text in (learn, check):
        console.print(text.report, markup=False, highlight=False)
    sources, targets = train_tokenizers(recipe.examples, learn)
    seed = recipe.training.seed
    pairs = PairBatches(learn, sources, targets, recipe.examples.batch_tokens, recipe.examples.max_length, seed)
    batches = MatchBatches(pairs, seed)
    console.print(batches.report, markup=False, highlight=False)
    model = recipe.build(src_vocab=len(sources), tgt_vocab=len(targets))
    console.print(recipe.summary(model, known(recipe.examples, sources, targets)), markup=False, highlight=False)
    fitted_to = judged_pairs(spread(learn, learn.check().kept, FITTED_TO), seed)
    rules = [fit(name, fitted_to) for name in MEASURES]
    matcher = Matcher(model, sources, targets, rules, recipe.description(model))
    validation = Validation(_measure(recipe.examples, matcher, check), metric="accuracy")
    recipe.train(model, (learn, check), batches, validation, matcher.save, console)
    return matcher


def _measure(text: Pairs, matcher: Matcher, check: ParallelText) -> Callable[[nn.Module], dict[str, float]]:
    """How well pairs from all over the text to validate on are told from as many wrong ones."""
    pairs = judged_pairs(spread(check, check.check().kept, text.validation_sentences), seed=0)

    def measure(model: nn.Module) -> dict[str, float]:
        found = matcher.probabilities([(pair.source, pair.target) for pair in pairs])
        return figures_of(found, 0.5, pairs)

    return measure
