"""The bottleneck of one fixed vector: quality and time against the length of the source.

An RNN without attention encodes a source of any length into one vector, of which its decoder reads in its first state
alone or at every step, and takes O(n + m) time. An RNN with attention takes O(n m) time. A Transformer consists of
attention.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console

from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError, at_least
from foveate.experiments import bottleneck_report
from foveate.experiments.bottleneck_report import Group, Times
from foveate.experiments.comparison import Comparison, DeviceOptions, check_growing, made_on
from foveate.experiments.measurement_cache import conditions_note, measure_once, training_conditions
from foveate.experiments.measuring import side_by_side
from foveate.metrics.translation import quality_by_length
from foveate.special_tokens import LEARNED
from foveate.tasks import load
from foveate.tasks.examples.data_options import held_out
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.translate import TASK

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "RNN": ("rnn", {"tie": "all"}),
    "RNN, vector at every step": ("rnn", {"tie": "all", "fixed_vector": "every"}),
    "RNN with attention": ("rnn-attentive", {"tie": "all"}),
    "Transformer": ("transformer-tiny", {"encoder_layers": 2, "decoder_layers": 2, "tie": "all"}),
}
"""The preset of each model, and the fields that it changes: for little text, and to read the vector at every step."""


@dataclass
class Bottleneck(DeviceOptions):
    """Train two RNNs without attention, one with it and a Transformer, and compare them by source length.

    Sentences of your own (`--data`, some ten thousand pairs) show the limits of one vector. Emoji names, the default,
    are available in seconds, but long messages repeat their words.

    Models that are already in `--out` are not trained again; an interrupted training is resumed.
    """

    text: str = "emoji"
    """Name of a text source, see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text instead: two line-aligned files, or one file of lines source<TAB>target."""
    test: tuple[Path, ...] = ()
    """Your own test text, in the same format. By default, some sentences of the data are held out."""
    from_language: str = "en"
    """Language to translate from, for a named source."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to, for a named source."""
    joined: int = 2
    """Up to this many neighbouring sentences are joined into a longer one, in training and test."""
    steps: int = 1500
    """Training steps of each model, of up to 1,024 tokens."""
    width: int = 128
    """Width of embeddings and states."""
    vocabulary: int = 1000
    """Number of subwords of both languages together."""
    groups: int = 6
    """Number of groups by source length."""
    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048, 4096)
    """Lengths n = m of source and target, in tokens, whose time is measured."""
    longest_written: int = 1024
    """The greatest of these lengths at which the target is also decoded token by token."""
    repeats: int = 3
    """Measurements of each time, of which the median counts."""


OPTIONS = Bottleneck


def run(options: Bottleneck, console: Console) -> Comparison:
    """Train the models that are not trained yet, and measure all. Raises UserError for invalid options."""
    for name in ("joined", "steps", "width", "vocabulary", "groups", "repeats"):
        at_least(1, name, getattr(options, name))
    check_growing("lengths", options.lengths)
    written = [length for length in options.lengths if length <= options.longest_written]
    at_least(2, "the number of lengths up to longest_written", len(written))
    splits = _texts(options)
    separator = " " if options.data else BETWEEN.get(options.text, " ")
    parts = (
        join_sentences(part, options.joined, options.seed, separator)
        for part in (splits.train, splits.dev, splits.test)
    )
    splits = Splits(*parts)
    qualities = {}
    for number, name in enumerate(MODELS, 1):
        console.rule(f"{name}, {number} of {len(MODELS)}")
        settings = {"model": list(MODELS[name])} | _fixed(options)
        measure = partial(_by_length, _recipe(options, name), splits, options, console)
        qualities[name] = measure_once(_results(options, name), settings, measure, partial(_conditions, options, name))
    translators: dict[str, Any] = {name: load(_recipe(options, name).out) for name in MODELS}
    times = {}
    for what, run_of, lengths in (
        ("reading a known target", _read, options.lengths),
        ("writing step by step", _write, written),
    ):
        console.rule(what)
        with made_on(options.device):
            times[what] = _times(translators, run_of, lengths, options.repeats)
    named = f"{options.text}, {options.from_language}-{options.to_language}"
    return Comparison(
        f"The bottleneck: {splits.train.name if options.data else named}",
        bottleneck_report.tables(qualities, times),
        {"": bottleneck_report.figure(qualities, times)},
        {"by_length": qualities, "seconds": times},
        [
            *bottleneck_report.notes(options.steps, options.joined),
            *conditions_note({name: _results(options, name) for name in MODELS}),
        ],
    )


def _fixed(options: Bottleneck) -> dict[str, Any]:
    """The options on which the quality of a model depends, as JSON values."""
    of_text = ("text", "from_language", "to_language")
    numbers = {what: getattr(options, what) for what in ("joined", "steps", "width", "vocabulary", "groups", "seed")}
    if not options.data:
        return {what: getattr(options, what) for what in of_text} | numbers
    return {what: [str(path) for path in getattr(options, what)] for what in ("data", "test")} | numbers


BETWEEN = {"emoji": ", "}
"""The separator of joined sentences, by text, if it is not a space: messages are lists of names."""


def _texts(options: Bottleneck) -> Splits:
    """The texts for training, validation and test, before sentences are joined."""
    if not options.data:
        if options.test:
            raise UserError("--test needs --data")
        return open_source(options.text, options.from_language, options.to_language)
    train, dev = held_out(ParallelText.from_paths(options.data), "SRC TGT", "pairs", instead="a longer --data")
    if options.test:
        return Splits(train, dev, ParallelText.from_paths(options.test))
    train, test = held_out(train, "SRC TGT", "pairs", instead="--test")
    return Splits(train, dev, test)


def join_sentences(text: ParallelText, most: int, seed: int, between: str) -> ParallelText:
    """The text with 1 to `most` neighbouring sentences, a random number, joined by `between`."""
    generator, left, pairs = random.Random(seed), iter(text), []
    while some := list(islice(left, generator.randint(1, most))):
        sources, targets = zip(*some, strict=True)
        pairs.append((between.join(sources), between.join(targets)))
    return ParallelText.from_pairs(pairs, f"{text.name}, joined")


def _recipe(options: Bottleneck, name: str) -> Recipe:
    preset, fields = MODELS[name]
    widths, rate = dict.fromkeys(("embedding", "width"), options.width), 4e-3
    if preset.startswith("transformer"):
        # With Adam, the best learning rate is inversely proportional to the width (Yang et al. 2022).
        widths, rate = {"width": options.width}, 4e-3 * 128 / options.width
    return TASK.recipe(
        vocabulary=options.vocabulary,
        batch=1024,
        max_length=256,
        validation_examples=100,
        model=preset,
        architecture={**widths, "dropout": 0.1, **fields},
        out=options.out / "bottleneck" / name.replace(",", "").replace(" ", "-").lower(),
        steps=options.steps,
        learning_rate=rate,
        schedule="linear",
        warmup=200,
        validate_every=options.steps,
        save_every=250,
        average=1,
        seed=options.seed,
        device=options.device,
        threads=options.threads,
    )


def _results(options: Bottleneck, name: str) -> Path:
    return _recipe(options, name).out / "by_length.json"


def _conditions(options: Bottleneck, name: str) -> str:
    return training_conditions(load(_recipe(options, name).out).model, options.device)


def _by_length(recipe: Recipe, splits: Splits, options: Bottleneck, console: Console) -> list[Group]:
    """Train a translator and measure its quality by groups of source lengths in words."""
    translator = learn(recipe, splits, console)
    sources, references = map(list, zip(*splits.test, strict=True))
    translations = [translation.text for translation in translator(sources, method="greedy")]
    return [
        {
            "shortest": group.shortest,
            "longest": group.longest,
            "sentences": group.quality.sentences,
            "bleu": group.quality.bleu,
            "chrf": group.quality.chrf,
        }
        for group in quality_by_length(sources, translations, references, options.groups)
    ]


def _read(model: Any, source: torch.Tensor, target: torch.Tensor) -> None:
    """One forward pass over a sentence and its translation."""
    with torch.inference_mode():
        model(source=source, source_lengths=torch.tensor([source.shape[1]]), target=target)


def _write(model: Any, source: torch.Tensor, target: torch.Tensor) -> None:
    """Decode a translation of this length token by token, as in greedy search."""
    with torch.inference_mode():
        model.prefill(target, source=source, source_lengths=torch.tensor([source.shape[1]]))


def _times(translators: dict[str, Skill], run_of: Callable[..., None], lengths: Sequence[int], repeats: int) -> Times:
    """Seconds for one sentence of each length, by model; measurements are interleaved."""
    times: Times = {name: {} for name in translators}
    for translator in translators.values():
        translator.model.to(torch.get_default_device())
    for length in lengths:
        tokens = torch.randint(
            LEARNED.first_word,
            min(len(translator.processor.reads.tokenizer) for translator in translators.values()),
            (1, length),
        )
        runs = {name: partial(run_of, translator.model, tokens, tokens) for name, translator in translators.items()}
        for name, seconds in side_by_side(runs, repeats).items():
            times[name][length] = seconds
    return times
