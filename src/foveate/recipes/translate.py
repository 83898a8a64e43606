"""Training a translator: text, tokenizers, model, objective, metric and decoding, brought together."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import torch
import tyro
from rich.console import Console
from torch import nn

from foveate import models
from foveate.contracts import Tokenizer, UserError, at_least, from_dict
from foveate.data import PairBatches, ParallelText, Splits, open_source, train_bpe
from foveate.decoding import Decoding
from foveate.recipes.quality import quality
from foveate.recipes.translator import Description, Translator
from foveate.training import CrossEntropy, Training, Validation, train
from foveate.training.hardware import choose_device

DEFAULT_MODEL = "transformer-tiny"

HELD_OUT = 1000
"""At most so many pairs are held out to validate on, and at most one in twenty."""


@dataclass
class Text:
    """Which sentences to learn from, and how they become tokens."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Text by name, instead of your own files: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text: two line-aligned files, or one with source<TAB>target on each line; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """Text to validate on, likewise. Without it, up to 1,000 pairs of the data are held out."""
    from_language: Annotated[str, tyro.conf.arg(name="from")] = "en"
    """Language to translate from, for text by name."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to, for text by name."""
    vocabulary: int = 8000
    """Subwords to learn, of both languages together or (not shared) of each."""
    shared: bool = True
    """One vocabulary for both languages."""
    lowercase: bool = False
    """Read and write lower case only."""
    batch_tokens: int = 4096
    """Tokens of a batch on its longer side, padding included."""
    max_length: int = 128
    """Pairs with more tokens than this on a side are left out (and counted)."""
    validation_sentences: int = 500
    """Sentences that each validation during training translates."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("vocabulary", "batch_tokens", "max_length", "validation_sentences"):
            at_least(1, name, getattr(self, name))


Architecture = TypeVar("Architecture")


@dataclass
class Translate(Generic[Architecture]):
    """Train a translator on pairs of sentences.

    `--config FILE` takes any of the fields below from a TOML or JSON file, such as the config.json of a trained model;
    flags go before it.
    """

    text: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = DEFAULT_MODEL
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/translate")
    """Folder for the trained model; a training that it holds is resumed."""
    training: Annotated[Training, tyro.conf.arg(name="")] = field(default_factory=Training)
    architecture: Architecture = None  # type: ignore[assignment]
    """The preset's sizes, each of which can be changed; in Python, also a mapping of the fields to change."""
    decoding: Decoding = field(default_factory=Decoding)

    def __post_init__(self) -> None:
        given: Any = self.architecture
        if given is None or isinstance(given, Mapping):
            preset = models.preset(self.model)
            values = {"src_vocab": 0, "tgt_vocab": 0, **preset.values, **(given or {})}
            self.architecture = from_dict(models.config_class(preset.family), values, self.model)

    def as_json(self) -> dict[str, Any]:
        """The recipe as `config.json` keeps it; `from_json` reads it back."""
        return json.loads(json.dumps(asdict(self), default=str))

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> "Translate":
        """A recipe from plain values. Raises UserError with the nearest names for a field that does not exist."""
        values = dict(values)
        architecture = values.pop("architecture", None)
        if architecture is not None and not isinstance(architecture, Mapping):
            raise UserError(f"{where}: architecture is {architecture!r}, but must be a table of fields")
        recipe: Any = from_dict(cls, values, where)
        return replace(recipe, architecture=architecture)


def run(recipe: Translate, splits: Splits | None = None, console: Console | None = None) -> Translator:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = console or Console(stderr=True)
    family = models.preset(recipe.model).family
    _check(recipe, family)
    learn, check = (splits.train, splits.dev) if splits else _texts(recipe.text)
    for text in (learn, check):
        console.print(text.report, markup=False, highlight=False)
    sources, targets = _tokenizers(recipe.text, learn)
    batches = _batches(recipe, learn, (sources, targets))
    console.print(batches.report, markup=False, highlight=False)
    architecture = replace(recipe.architecture, src_vocab=len(sources), tgt_vocab=len(targets))
    torch.manual_seed(recipe.training.seed)
    model = models.build(family, architecture)
    console.print(_summary(recipe, model, len(sources), len(targets)), markup=False, highlight=False)
    translator = Translator(model, sources, targets, _description(recipe, family, architecture), recipe.decoding)
    validation = Validation(_measure(recipe.text, translator, check), metric="bleu")
    identity = {key: value for key, value in recipe.as_json().items() if key in ("text", "model", "architecture")}
    objective = CrossEntropy(recipe.training.label_smoothing)
    train(model, batches, objective, recipe.training, recipe.out, validation, identity=identity, console=console)
    model.eval()
    translator.save(recipe.out)
    return translator


def _check(recipe: Translate, family: str) -> None:
    """Tell what cannot work before any text is read, which may take long."""
    recipe.text.check()
    recipe.training.check()
    choose_device(recipe.training.device)
    with torch.device("meta"):
        models.build(family, replace(recipe.architecture, src_vocab=1, tgt_vocab=1))


def _texts(text: Text) -> tuple[ParallelText, ParallelText]:
    """What to learn from and what to validate on."""
    if text.source is not None and text.data:
        raise UserError(f"both the source '{text.source}' and files are given; choose one")
    validation = ParallelText.from_paths(text.validation) if text.validation else None
    if text.source is not None:
        splits = open_source(text.source, text.from_language, text.to_language)
        return splits.train, validation or splits.dev
    if not text.data:
        raise UserError("no text to learn from: name a source (see `foveate data`) or give --data SRC TGT")
    learn = ParallelText.from_paths(text.data)
    return (learn, validation) if validation else _held_out(learn)


def _held_out(text: ParallelText) -> tuple[ParallelText, ParallelText]:
    """The text without every twentieth line (or, in a long one, fewer), and these lines."""
    kept = text.check().kept
    every = max(20, math.ceil(kept / HELD_OUT))
    if kept < every:
        raise UserError(f"{text.name} has {kept} pairs, too few to hold some out; give --validation SRC TGT")
    return (
        text.part(text.name, lambda line: line % every != 0),
        text.part(f"{text.name}, held out", lambda line: line % every == 0),
    )


def _tokenizers(text: Text, learn: ParallelText) -> tuple[Tokenizer, Tokenizer]:
    if text.shared:
        both = train_bpe(chain.from_iterable(learn), text.vocabulary, text.lowercase)
        return both, both
    return (
        train_bpe(learn.sources(), text.vocabulary, text.lowercase),
        train_bpe(learn.targets(), text.vocabulary, text.lowercase),
    )


def _batches(recipe: Translate, learn: ParallelText, tokenizers: tuple[Tokenizer, Tokenizer]) -> PairBatches:
    text = recipe.text
    return PairBatches(learn, *tokenizers, text.batch_tokens, text.max_length, recipe.training.seed)


def _measure(text: Text, translator: Translator, check: ParallelText) -> Callable[[nn.Module], dict[str, float]]:
    """BLEU and chrF of greedy translations of the first sentences to validate on."""
    pairs = list(islice(check, text.validation_sentences))
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]

    def measure(model: nn.Module) -> dict[str, float]:
        found = translator.translate(sources, Decoding(method="greedy"))
        scores = quality([prediction.text for prediction in found], references, text.lowercase)
        return {"bleu": scores.bleu, "chrf": scores.chrf}

    return measure


def _summary(recipe: Translate, model: nn.Module, sources: int, targets: int) -> str:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    vocabulary = f"{sources:,} subwords" if recipe.text.shared else f"{sources:,} and {targets:,} subwords"
    return f"{recipe.model}: {parameters:,} parameters, {vocabulary}"


def _description(recipe: Translate, family: str, architecture: Any) -> dict[str, Any]:
    return asdict(Description("translate", family, asdict(architecture), recipe.as_json()))
