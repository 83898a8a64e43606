"""Training a classifier: labelled texts, a tokenizer, model, objective and metric, brought together."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from torch import nn

from foveate.contracts import Tokenizer
from foveate.data import TRAINERS, LabelledBatches, LabelledText, Splits, Tokens, open_source
from foveate.errors import at_least
from foveate.tasks.classifier import Classifier
from foveate.tasks.fine_tuning import FromLanguageModel
from foveate.tasks.labelling import check_labels
from foveate.tasks.measures import accuracy, macro_f1
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import check_vocabulary, learn_and_check, spread
from foveate.training import Training, Validation


@dataclass
class Text:
    """Which texts to learn from, and how they become tokens."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Text by name, instead of your own file: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text: a file with label<TAB>text on each line; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """A file to validate on, likewise. Without it, up to 1,000 texts of the data are held out."""
    tokens: Tokens = "words"
    """What a text is cut into."""
    vocabulary: int = 8000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""
    max_length: int = 512
    """Texts with more tokens than this are left out (and counted)."""
    validation_texts: int = 2000
    """Texts that each validation during training decides about."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_vocabulary(self.vocabulary)
        for name in ("batch_tokens", "max_length", "validation_texts"):
            at_least(1, name, getattr(self, name))


@dataclass
class Classify(FromLanguageModel, Recipe[Architecture]):
    """Train a classifier, which gives a whole text one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify"
    head = "text"
    unit = "texts"
    usual = Training(
        epochs=5,
        learning_rate=2e-3,
        schedule="linear",
        warmup=100,
        label_smoothing=0.0,
        validate_every=50,
        save_every=50,
    )

    examples: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = "rnn-attentive-classifier"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/classify")
    """Folder for the trained model; a training that it holds is resumed."""

    def tokenizer(self, texts: Iterable[str]) -> Tokenizer:
        """That of the trained weights, or one that is learned from the texts."""
        chosen = self.examples
        return self.trained_tokenizer() or TRAINERS[chosen.tokens](texts, chosen.vocabulary, chosen.lowercase)


def run(recipe: Classify, splits: Splits[LabelledText] | None = None, console: Console | None = None) -> Classifier:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    learn, check = (splits.train, splits.dev) if splits else _texts(recipe.examples)
    for text in (learn, check):
        console.print(text.report, markup=False, highlight=False)
    labels = learn.check().labels
    check_labels(learn.name, [*learn.labels()], check.name, [*check.labels()], "text")
    tokenizer = recipe.tokenizer(learn.texts())
    batches = LabelledBatches(
        learn, tokenizer, [*labels], recipe.examples.batch_tokens, recipe.examples.max_length, recipe.training.seed
    )
    console.print(batches.report, markup=False, highlight=False)
    model = recipe.build(vocabulary=len(tokenizer), classes=len(labels))
    known = f"{len(tokenizer):,} {recipe.examples.tokens}, {len(labels)} labels"
    console.print(recipe.summary(model, known), markup=False, highlight=False)
    classifier = Classifier(model, tokenizer, labels, recipe.description(model))
    validation = Validation(_measure(recipe.examples, classifier, check), metric="accuracy")
    recipe.train(model, (learn, check), batches, validation, classifier.save, console)
    return classifier


def _texts(text: Text) -> tuple[LabelledText, LabelledText]:
    """What to learn from and what to validate on."""
    return learn_and_check(
        text,
        lambda: open_source(str(text.source), task="classify"),
        LabelledText.from_paths,
        files="FILE",
        unit="texts",
    )


def _measure(text: Text, classifier: Classifier, check: LabelledText) -> Callable[[nn.Module], dict[str, float]]:
    """Accuracy and macro F1 on texts from all over those to validate on."""
    examples = spread(check, check.check().kept, text.validation_texts)
    texts, right = [example.text for example in examples], [example.label for example in examples]

    def measure(model: nn.Module) -> dict[str, float]:
        found = [decision.label for decision in classifier.classify(texts)]
        return {"accuracy": accuracy(found, right), "macro_f1": macro_f1(found, right)}

    return measure
