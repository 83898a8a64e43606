"""Every score and every selection on translation: quality, speed, and whether attention looks where it should.

The translators differ in nothing but how their decoder attends: the same text, encoder, sizes, number of steps.
"""

import json
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from rich.console import Console

from foveate.config import from_dict
from foveate.contracts import Batch, StepDecoder
from foveate.data import PairBatches, ParallelText, Splits, open_source
from foveate.decoding import Decoding, step_scores
from foveate.errors import UserError, at_least, unknown
from foveate.experiments import translation_report
from foveate.experiments.alignment_error import alignment_quality, diagonal, messages, tellable
from foveate.experiments.comparison import Comparison, Options
from foveate.experiments.gradient_variance import gradient_variance
from foveate.experiments.measurement_cache import conditions_note, measure_once, training_conditions
from foveate.experiments.measuring import side_by_side
from foveate.experiments.translation_report import Measured, Speeds
from foveate.recipes.quality import quality
from foveate.recipes.translate import Text, Translate
from foveate.recipes.translate import run as train_translator
from foveate.recipes.translator import Translator
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

RADIUS = 5
"""Of the local windows: messages have about 20 tokens."""

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("rnn", {}),
    "none-every": ("rnn", {"fixed_vector": "every"}),
    "additive": ("rnn-attentive", {"score": "additive"}),
    "dot": ("rnn-attentive", {"score": "dot"}),
    "scaled-dot": ("rnn-attentive", {"score": "scaled-dot"}),
    "biaffine": ("rnn-attentive", {"score": "biaffine"}),
    "embeddings": ("rnn-attentive", {"score": "biaffine", "encoder": "embeddings"}),
    "before": ("rnn-attentive", {"score": "additive", "score_from": "before"}),
    "fed": ("rnn-attentive", {"score": "biaffine", "input_feeding": True}),
    "local-m": ("rnn-attentive", {"score": "biaffine", "window": "local-m", "window_radius": RADIUS}),
    "local-p": ("rnn-attentive", {"score": "biaffine", "window": "local-p", "window_radius": RADIUS}),
    "hard": ("rnn-hard", {}),
    "monotonic": ("rnn-monotonic", {}),
}
"""The preset of each row, and what it changes. Scores, soft where nothing else is said, are made after the step."""

TOLD = "row.json"
"""In each row's folder: what was measured, and of what."""

DECISIVE = ("from_language", "to_language", "steps", "width", "vocabulary", "sentences", "seed")
"""The options that what is measured of a row depends on."""

BATCH_TOKENS, LONGEST = 1024, 128
"""Of a batch, and of a message that is learned from."""


@dataclass
class AttentionOnTranslation(Options):
    """Train translators of emoji names that differ in how they attend, and compare them.

    Rows that are in `--out` already are not trained again; an interrupted one goes on where it was.
    """

    rows: tuple[str, ...] = tuple(ROWS)
    """Which to compare. "none" gives the decoder one vector of the source at first, "none-every" at every step;
    "embeddings" attends to plain word vectors; "before" is additive, scored before the step; "fed" feeds into each step
    what the last one attended to."""
    from_language: Annotated[str, tyro.conf.arg(name="from")] = "en"
    """Language to translate from."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to."""
    steps: int = 2000
    """Training steps of each row, of up to 1,024 tokens."""
    width: int = 128
    """Width of embeddings and states."""
    vocabulary: int = 1000
    """Subwords of both languages together."""
    sentences: int = 1000
    """Unseen messages to translate and to look at."""
    repeats: int = 5
    """How often each speed is measured; the median counts."""


OPTIONS = AttentionOnTranslation


def run(options: AttentionOnTranslation, console: Console) -> Comparison:
    """Train what is not trained yet, and measure. Raises UserError for options that do not work."""
    at_least(1, "the number of rows", len(options.rows))
    for name in options.rows:
        if name not in ROWS:
            raise unknown("row", name, ROWS)
    for name in ("steps", "width", "vocabulary", "sentences", "repeats"):
        at_least(1, name, getattr(options, name))
    splits = open_source("emoji", options.from_language, options.to_language)
    test = list(islice(zip(splits.test, splits.test.notes, strict=True), options.sentences))
    if not any(tellable(left, right, emoji) for (left, right), emoji in test):
        raise UserError(f"none of {len(test)} messages has several names that can be told apart; raise sentences")
    unseen = ParallelText.from_pairs([pair for pair, _ in test], splits.test.name, [emoji for _, emoji in test])
    measured = {}
    for number, name in enumerate(options.rows, 1):
        console.rule(f"{name}, {number} of {len(options.rows)}")
        measured[name] = _row(name, options, splits, unseen, console)
    console.rule("speed, all taking turns")
    translators = {name: Translator.load(_folder(options, name)) for name in options.rows}
    batch = _batch(translators, splits.train, options)
    speeds = _speeds(translators, batch, options)
    variances = {name: gradient_variance(each.model, batch, options.seed) for name, each in translators.items()}
    console.rule("maps")
    title = f"Attention on translation: emoji names, {options.from_language}-{options.to_language}"
    picture = translation_report.maps(translators, unseen)
    return Comparison(
        title,
        [translation_report.table(measured, speeds)],
        {} if picture is None else {"maps": picture},
        {
            "rows": {name: asdict(row) for name, row in measured.items()},
            "tokens_per_second": asdict(speeds),
            "gradient_variance": {name: asdict(found) for name, found in variances.items() if found is not None},
        },
        [
            *translation_report.notes(measured, variances, options.steps, len(test)),
            *conditions_note({name: _folder(options, name) / TOLD for name in options.rows}),
        ],
    )


def _folder(options: AttentionOnTranslation, name: str) -> Path:
    return options.out / "translation" / name


def _recipe(options: AttentionOnTranslation, name: str) -> Translate:
    preset, fields = ROWS[name]
    return Translate(
        text=Text(
            source="emoji",
            from_language=options.from_language,
            to_language=options.to_language,
            vocabulary=options.vocabulary,
            batch_tokens=BATCH_TOKENS,
            validation_sentences=100,
        ),
        model=preset,
        architecture={"embedding": options.width, "width": options.width, "dropout": 0.1, **fields},
        out=_folder(options, name),
        training=Training(
            steps=options.steps,
            learning_rate=4e-3,
            schedule="linear",
            warmup=100,
            validate_every=options.steps,
            save_every=250,
            average=1,
            seed=options.seed,
            device="cpu",
            threads=options.threads,
        ),
    )


def _row(
    name: str, options: AttentionOnTranslation, splits: Splits, unseen: ParallelText, console: Console
) -> Measured:
    """What is measured of one translator, which is trained now unless an earlier run did it."""
    of = {"row": list(ROWS[name])} | {what: getattr(options, what) for what in DECISIVE}

    def measure() -> dict[str, Any]:
        recipe = _recipe(options, name)
        translator = train_translator(recipe, splits, console)
        sources, references = map(list, zip(*unseen, strict=True))
        translations = [each.text for each in translator.translate(sources, Decoding(method="greedy"))]
        known = messages(unseen, translator.source_tokenizer, translator.target_tokenizer)
        scores = quality(translations, references)
        measured = Measured(
            bleu=scores.bleu,
            chrf=scores.chrf,
            signature=scores.bleu_signature,
            alignment=alignment_quality(translator.model, known),
            messages=len(known),
            diagonal=diagonal(known),
            training=_last_figures(recipe.out / "metrics.jsonl"),
        )
        return asdict(measured)

    folder = _folder(options, name)
    told = folder / TOLD
    found = measure_once(told, of, measure, lambda: training_conditions(Translator.load(folder).model))
    return from_dict(Measured, found, str(told))


def _last_figures(path: Path) -> dict[str, float]:
    """The last row of a training's record that tells of training."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return next({name: float(value) for name, value in row.items()} for row in reversed(rows) if "loss" in row)


def _batch(translators: dict[str, Translator], text: ParallelText, options: AttentionOnTranslation) -> Batch:
    """A batch as all of them were trained on: the same text and vocabulary gave all the same tokenizer."""
    first = next(iter(translators.values()))
    batches = PairBatches(text, first.source_tokenizer, first.target_tokenizer, BATCH_TOKENS, LONGEST, options.seed)
    return next(batches.epoch(0))


def _speeds(translators: dict[str, Translator], batch: Batch, options: AttentionOnTranslation) -> Speeds:
    """Target tokens a second of each translator, in training and in writing step by step, on the same batch."""
    models = {name: translator.model for name, translator in translators.items()}
    updaters = {name: Updater(model, CrossEntropy(0.1), Training(device="cpu")) for name, model in models.items()}

    def learn(name: str) -> None:
        models[name].train()
        updaters[name]([batch], 0.0, 1)  # at a rate of 0 the weights stay what they are

    def write(name: str) -> None:
        step_scores(cast(StepDecoder, models[name].eval()), batch)

    training, writing = (
        {name: batch.tokens / seconds for name, seconds in side_by_side(runs, options.repeats).items()}
        for runs in ({name: partial(run_of, name) for name in models} for run_of in (learn, write))
    )
    return Speeds(training, writing)
