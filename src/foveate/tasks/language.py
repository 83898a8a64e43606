"""Training a language model: prose, a tokenizer, a model, an objective and perplexity, brought together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from torch import nn

from foveate.data import PassageBatches, Prose, Splits
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.tasks.author import Author
from foveate.tasks.perplexity import perplexity
from foveate.tasks.prose_text import LanguageText
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import spread
from foveate.tasks.trained import unlearned
from foveate.training import Training, Validation


@dataclass
class Language(Recipe[Architecture]):
    """Train a language model on running prose: to write it, and to go on from a beginning.

    With a model such as rnn-conditioned, it is told of each passage what kind of text it is of: the decade of an
    address, or of your own files the name.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "language"
    usual = Training(learning_rate=2e-3, warmup=200, label_smoothing=0.0)

    examples: Annotated[LanguageText, tyro.conf.arg(name="")] = field(default_factory=LanguageText)
    model: str = "rnn-language"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/language")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(method="sample", length_factor=0.0, length_extra=100, top_p=0.9)
    )


def run(recipe: Language, splits: Splits[Prose] | None = None, console: Console | None = None) -> Author:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    text = recipe.examples
    learn, check = (splits.train, splits.dev) if splits else text.open(recipe.task)
    for prose in (learn, check):
        console.print(prose.report, markup=False, highlight=False)
    tokenizer = text.tokenizer(passage.text for passage in learn.passages(text.passage_words))
    conditions = _conditions(recipe, learn)
    model = recipe.build(vocabulary=len(tokenizer), conditions=1 + len(conditions))
    author = Author(model, tokenizer, conditions, recipe.description(model), recipe.decoding)
    passages = learn.passages(text.passage_words)
    batches = PassageBatches(
        passages, tokenizer, text.batch_tokens, text.max_length, recipe.training.seed, author.numbers
    )
    console.print(f"{learn.name}: {batches.report}", markup=False, highlight=False)
    kinds = f", {len(conditions)} conditions" if conditions else ""
    console.print(recipe.summary(model, f"{len(tokenizer):,} {text.tokens}{kinds}"), markup=False, highlight=False)
    if conditions:
        for note in unlearned("conditions", [paragraph.condition for paragraph in check], conditions):
            console.print(f"{check.name}: {note}; it is told none", markup=False, highlight=False)
    validation = Validation(_measure(text, author, check), metric="perplexity", higher_is_better=False)
    recipe.train(model, (learn, check), batches, validation, author.save, console)
    return author


def _conditions(recipe: Language, learn: Prose) -> list[str]:
    """The names of the kinds of text that the model will tell apart; none if it is told of none."""
    if recipe.architecture.condition is None:
        return []
    found = learn.conditions()
    if len(found) < 2:
        raise UserError(
            f"{recipe.model} learns to write several kinds of text, but all of {learn.name} is of one, "
            f"'{found[0] if found else ''}': give several files, whose names tell the kinds, or take rnn-language"
        )
    return found


def _measure(text: LanguageText, author: Author, check: Prose) -> Callable[[nn.Module], dict[str, float]]:
    """The perplexity, per token and per word, of passages from all over the text to validate on."""
    passages = list(check.passages(text.passage_words))
    passages = spread(passages, len(passages), text.validation_passages)

    def measure(model: nn.Module) -> dict[str, float]:
        found = perplexity(author.scores(passages))
        return {"perplexity": found.per_token, "perplexity_per_word": found.per_word}

    return measure
