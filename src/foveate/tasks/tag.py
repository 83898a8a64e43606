"""Training a tagger: tagged sentences, a lexicon, model, objective and metric, brought together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from torch import nn

from foveate.data import SPELLINGS, Lexicon, Splits, TaggedBatches, TaggedText, open_source
from foveate.errors import at_least
from foveate.tasks.measures import accuracy
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.tagger import Tagger
from foveate.tasks.texts import learn_and_check, spread
from foveate.training import Training, Validation


@dataclass
class Text:
    """Which tagged sentences to learn from."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Text by name, instead of your own file: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text: a file with word<TAB>tag on each line and an empty line between sentences; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """A file to validate on, likewise. Without it, up to 1,000 sentences of the data are held out."""
    batch_tokens: int = 2048
    """Words of a batch, padding included."""
    max_length: int = 128
    """Sentences with more words than this are left out (and counted)."""
    validation_sentences: int = 1000
    """Sentences that each validation during training tags."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("batch_tokens", "max_length", "validation_sentences"):
            at_least(1, name, getattr(self, name))


@dataclass
class Tag(Recipe[Architecture]):
    """Train a tagger, which gives each word of a sentence a tag, such as its part of speech.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "tag"
    marks = 0
    unit = "words"
    usual = Training(
        epochs=5, learning_rate=3e-3, schedule="cosine", warmup=200, label_smoothing=0.0, validate_every=250
    )

    examples: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = "birnn-tagger"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/tag")
    """Folder for the trained model; a training that it holds is resumed."""


def run(recipe: Tag, splits: Splits[TaggedText] | None = None, console: Console | None = None) -> Tagger:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    learn, check = (splits.train, splits.dev) if splits else _texts(recipe.examples)
    for text in (learn, check):
        console.print(text.report, markup=False, highlight=False)
    lexicon = Lexicon.learn(learn)
    batches = TaggedBatches(
        learn, lexicon, recipe.examples.batch_tokens, recipe.examples.max_length, recipe.training.seed
    )
    console.print(batches.report, markup=False, highlight=False)
    model = recipe.build(vocabulary=lexicon.vocabulary, spellings=SPELLINGS, tags=len(lexicon.tags))
    words = f"{lexicon.repeated:,} words of {len(lexicon.words):,} known by themselves, the others by their spelling"
    console.print(recipe.summary(model, words), markup=False, highlight=False)
    tagger = Tagger(model, lexicon, recipe.description(model))
    validation = Validation(_measure(recipe.examples, tagger, check), metric="accuracy")
    recipe.train(model, (learn, check), batches, validation, tagger.save, console)
    return tagger


def _texts(text: Text) -> tuple[TaggedText, TaggedText]:
    """What to learn from and what to validate on."""
    return learn_and_check(
        text,
        lambda: open_source(str(text.source), task="tag"),
        TaggedText.from_paths,
        files="FILE",
        unit="sentences",
    )


def _measure(text: Text, tagger: Tagger, check: TaggedText) -> Callable[[nn.Module], dict[str, float]]:
    """The accuracy on sentences from all over the text to validate on."""
    sentences = spread(check, check.check().kept, text.validation_sentences)
    right = [tag for sentence in sentences for tag in sentence.tags]

    def measure(model: nn.Module) -> dict[str, float]:
        found = tagger.tag([sentence.words for sentence in sentences])
        return {"accuracy": accuracy([tag for tagging in found for tag in tagging.tags], right)}

    return measure
