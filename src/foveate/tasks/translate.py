"""Training a translator: text, tokenizers, model, objective, metric and decoding, brought together."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from torch import nn

from foveate.contracts import Tokenizer
from foveate.data import TRAINERS, PairBatches, ParallelText, Splits, Tokens, open_source
from foveate.decoding import Decoding
from foveate.errors import UserError, at_least
from foveate.tasks.quality import quality
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import check_vocabulary, learn_and_check, unknown_note
from foveate.tasks.trained import without_too_long
from foveate.tasks.translator import Translator
from foveate.training import Training, Validation

__all__ = ["Text", "Training", "Translate", "run"]

THOROUGHNESS = 4
"""How many times as many pairs choose in the end, at most, as validate during training."""


@dataclass
class Text:
    """Which sentences to learn from, and how they become tokens."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Text by name, instead of your own files: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz; or folders of
    programs' translations (.mo, .po), such as /usr/share/locale."""
    validation: tuple[Path, ...] = ()
    """Text to validate on, likewise. Without it, up to 1,000 pairs of the data are held out."""
    from_language: Annotated[str, tyro.conf.arg(name="from")] = "en"
    """Language to translate from, for text by name and programs' translations."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to, likewise."""
    tokens: Tokens = "subwords"
    """What a sentence is cut into. By characters it is long: give --max-length, too."""
    vocabulary: int = 8000
    """How many of them to learn, at most, of both languages together or (not shared) of each."""
    shared: bool = True
    """One vocabulary for both languages."""
    lowercase: bool = False
    """Read and write lower case only."""
    batch_tokens: int = 4096
    """Tokens of a batch on its longer side, padding included."""
    max_length: int = 128
    """Pairs with more tokens than this on a side are left out (and counted)."""
    validation_sentences: int = 500
    """Pairs that each validation during training measures the model on, by greedy search. In the end up to four times
    as many others, translated as you asked, choose between the best checkpoint and the average; or all, if there are
    fewer others than these."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_vocabulary(self.vocabulary)
        for name in ("batch_tokens", "max_length", "validation_sentences"):
            at_least(1, name, getattr(self, name))


@dataclass
class Translate(Recipe[Architecture]):
    """Train a translator on pairs of sentences.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "translate"

    examples: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = "transformer-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/translate")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(default_factory=Decoding)

    def check(self) -> None:
        super().check()
        if not self.examples.shared and getattr(self.architecture, "tie", None) == "all":
            raise UserError(
                "tie='all' shares one embedding, but each language has a vocabulary of its own; "
                "share one vocabulary, or use tie='output'"
            )


def run(recipe: Translate, splits: Splits | None = None, console: Console | None = None) -> Translator:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    learn, check = (splits.train, splits.dev) if splits else parallel_texts(recipe.examples, recipe.task)
    for text in (learn, check):
        console.print(text.report, markup=False, highlight=False)
    sources, targets = train_tokenizers(recipe.examples, learn)
    for side, tokenizer, texts in (("source", sources, check.sources()), ("target", targets, check.targets())):
        for note in unknown_note(f"{check.name}, {side}", tokenizer, texts):
            console.print(note, markup=False, highlight=False)
    batches = _batches(recipe, learn, (sources, targets))
    console.print(batches.report, markup=False, highlight=False)
    model = recipe.build(src_vocab=len(sources), tgt_vocab=len(targets))
    console.print(recipe.summary(model, known(recipe.examples, sources, targets)), markup=False, highlight=False)
    translator = Translator(model, sources, targets, recipe.description(model), recipe.decoding)
    count = recipe.examples.validation_sentences
    often, others = _to_validate_on(_readable(translator, check, (1 + THOROUGHNESS) * count, console), count)
    validation = Validation(
        _measure(translator, often, Decoding(method="greedy"), recipe.examples.lowercase),
        metric="bleu",
        thorough=_measure(translator, others, recipe.decoding, recipe.examples.lowercase),
    )
    recipe.train(model, (learn, check), batches, validation, translator.save, console)
    return translator


def parallel_texts(text: Text, task: str) -> tuple[ParallelText, ParallelText]:
    """What a task learns from and what it validates on."""
    return learn_and_check(
        text,
        lambda: open_source(str(text.source), text.from_language, text.to_language, task=task),
        lambda paths: ParallelText.from_paths(paths, (text.from_language, text.to_language)),
        files="SRC TGT",
        unit="pairs",
    )


def train_tokenizers(text: Text, learn: ParallelText) -> tuple[Tokenizer, Tokenizer]:
    """Of the source and of the target; the same one twice where the text shares a vocabulary."""
    trained = TRAINERS[text.tokens]
    if text.shared:
        both = trained(chain.from_iterable(learn), text.vocabulary, text.lowercase)
        return both, both
    return (
        trained(learn.sources(), text.vocabulary, text.lowercase),
        trained(learn.targets(), text.vocabulary, text.lowercase),
    )


def known(text: Text, sources: Tokenizer, targets: Tokenizer) -> str:
    """How many tokens both languages have together or each has, for the user."""
    counted = f"{len(sources):,}" if text.shared else f"{len(sources):,} and {len(targets):,}"
    return f"{counted} {text.tokens}"


def _batches(recipe: Translate, learn: ParallelText, tokenizers: tuple[Tokenizer, Tokenizer]) -> PairBatches:
    text = recipe.examples
    return PairBatches(learn, *tokenizers, text.batch_tokens, text.max_length, recipe.training.seed)


def _readable(translator: Translator, check: ParallelText, count: int, console: Console) -> list[tuple[str, str]]:
    """The first pairs, without those whose source is longer than the model can read."""
    pairs = list(islice(check, count))
    lengths = [len(tokens) + 1 for tokens in translator.source_tokenizer.encode([source for source, _ in pairs])]
    return without_too_long(translator.model, pairs, lengths, check.name, console)


def _to_validate_on(
    check: Iterable[tuple[str, str]], count: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The pairs of each validation, and those that choose in the end.

    The best checkpoint is the best on the former by chance too, so that it is compared on pairs that it was not picked
    by, unless they are too few.
    """
    pairs = list(islice(check, (1 + THOROUGHNESS) * count))
    often, others = pairs[:count], pairs[count:]
    return often, others if len(others) >= count else pairs


def _measure(
    translator: Translator, pairs: Iterable[tuple[str, str]], decoding: Decoding, lowercase: bool
) -> Callable[[nn.Module], dict[str, float]]:
    """BLEU and chrF of what `pairs` are translated to."""
    sources, references = zip(*pairs, strict=True)

    def measure(model: nn.Module) -> dict[str, float]:
        found = translator.translate(sources, decoding)
        scores = quality([prediction.text for prediction in found], references, lowercase)
        return {"bleu": scores.bleu, "chrf": scores.chrf}

    return measure
