"""All scores and selections of attention on translation: quality, speed, and alignment.

The translators differ only in the attention of their decoder: text, encoder, sizes and number of steps are the same.
"""

from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from rich.console import Console

from foveate.config import from_dict
from foveate.contracts import Batch, Generator
from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.decoding import step_scores
from foveate.errors import UserError, at_least, unknown
from foveate.experiments import translation_report
from foveate.experiments.alignment_error import alignment_quality, diagonal, is_alignable, messages
from foveate.experiments.comparison import Comparison, DeviceOptions, made_on
from foveate.experiments.gradient_variance import gradient_variance
from foveate.experiments.measurement_cache import conditions_note, measure_once, training_conditions
from foveate.experiments.measuring import side_by_side
from foveate.experiments.translation_report import Speeds, TranslatorResult
from foveate.files import read_json_lines
from foveate.metrics.translation import quality
from foveate.tasks import load
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.translate import TASK
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

RADIUS = 5
"""Radius of local windows: messages have about 20 tokens."""

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
"""The preset of each row, and the fields that it changes. By default attention is soft and follows the step."""

RESULTS = "row.json"
"""The file of results in the folder of each row."""

FIXED = ("from_language", "to_language", "steps", "width", "vocabulary", "sentences", "seed")
"""The options on which the results of a row depend."""

BATCH_TOKENS = 1024
"""The greatest number of tokens in a batch."""


@dataclass
class AttentionOnTranslation(DeviceOptions):
    """Train translators of emoji names with different kinds of attention, and compare them.

    Rows that are already in `--out` are not trained again; an interrupted training is resumed.
    """

    rows: tuple[str, ...] = tuple(ROWS)
    """Rows to compare. "none" gives the decoder one vector of the source at the first step, "none-every" at every step;
    "embeddings" attends to plain word embeddings; "before" is additive attention before the step; "fed" has input
    feeding."""
    from_language: str = "en"
    """Language to translate from."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to."""
    steps: int = 2000
    """Training steps of each row, of up to 1,024 tokens."""
    width: int = 128
    """Width of embeddings and states."""
    vocabulary: int = 1000
    """Number of subwords of both languages together."""
    sentences: int = 1000
    """Unseen messages to translate and to align."""
    repeats: int = 5
    """Measurements of each speed, of which the median counts."""


OPTIONS = AttentionOnTranslation


def run(options: AttentionOnTranslation, console: Console) -> Comparison:
    """Train the rows that are not trained yet, and measure all. Raises UserError for invalid options."""
    at_least(1, "the number of rows", len(options.rows))
    for name in options.rows:
        if name not in ROWS:
            raise unknown("row", name, ROWS)
    for name in ("steps", "width", "vocabulary", "sentences", "repeats"):
        at_least(1, name, getattr(options, name))
    splits = open_source("emoji", options.from_language, options.to_language)
    test = list(islice(zip(splits.test, splits.test.notes, strict=True), options.sentences))
    if not any(is_alignable(left, right, emoji) for (left, right), emoji in test):
        raise UserError(f"none of {len(test)} messages has several names that can be distinguished: increase sentences")
    unseen = ParallelText.from_pairs([pair for pair, _ in test], splits.test.name, [emoji for _, emoji in test])
    measured = {}
    for number, name in enumerate(options.rows, 1):
        console.rule(f"{name}, {number} of {len(options.rows)}")
        measured[name] = _row(name, options, splits, unseen, console)
    console.rule("speed, interleaved")
    translators: dict[str, Any] = {name: load(_folder(options, name)) for name in options.rows}
    batch = _batch(translators, splits.train, options).to(options.device)
    speeds = _speeds(translators, batch, options)
    variances = {
        name: gradient_variance(translator.model, batch, options.seed) for name, translator in translators.items()
    }
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
            "gradient_variance": {name: asdict(value) for name, value in variances.items() if value is not None},
        },
        [
            *translation_report.notes(measured, variances, options.steps, len(test)),
            *conditions_note({name: _folder(options, name) / RESULTS for name in options.rows}),
        ],
    )


def _folder(options: AttentionOnTranslation, name: str) -> Path:
    return options.out / "translation" / name


def _recipe(options: AttentionOnTranslation, name: str) -> Recipe:
    preset, fields = ROWS[name]
    return TASK.recipe(
        source="emoji",
        from_language=options.from_language,
        to_language=options.to_language,
        vocabulary=options.vocabulary,
        batch=BATCH_TOKENS,
        validation_examples=100,
        model=preset,
        architecture={"embedding": options.width, "width": options.width, "dropout": 0.1, **fields},
        out=_folder(options, name),
        steps=options.steps,
        learning_rate=4e-3,
        schedule="linear",
        warmup=100,
        validate_every=options.steps,
        save_every=250,
        average=1,
        seed=options.seed,
        device=options.device,
        threads=options.threads,
    )


def _row(
    name: str, options: AttentionOnTranslation, splits: Splits, unseen: ParallelText, console: Console
) -> TranslatorResult:
    """The results of one translator, which is trained unless an earlier run did it."""
    settings = {"row": list(ROWS[name])} | {what: getattr(options, what) for what in FIXED}

    def measure() -> dict[str, Any]:
        recipe = _recipe(options, name)
        translator = learn(recipe, splits, console)
        sources, references = map(list, zip(*unseen, strict=True))
        translations = [translation.text for translation in translator(sources, method="greedy")]
        known = messages(unseen, translator.processor.reads.tokenizer, translator.processor.writes.tokenizer)
        scores = quality(translations, references)
        measured = TranslatorResult(
            bleu=scores.bleu,
            chrf=scores.chrf,
            signature=scores.bleu_signature,
            alignment=alignment_quality(translator.model, known),
            messages=len(known),
            diagonal=diagonal(known),
            training=_last_metrics(recipe.out / "metrics.jsonl"),
        )
        return asdict(measured)

    folder = _folder(options, name)
    path = folder / RESULTS
    result = measure_once(path, settings, measure, lambda: training_conditions(load(folder).model, options.device))
    return from_dict(TranslatorResult, result, str(path))


def _last_metrics(path: Path) -> dict[str, float]:
    """The last training row of a metrics log."""
    rows = read_json_lines(path)
    return next({name: float(value) for name, value in row.items()} for row in reversed(rows) if "loss" in row)


def _batch(translators: dict[str, Skill], text: ParallelText, options: AttentionOnTranslation) -> Batch:
    """A training batch. All translators have the same tokenizer, trained on the same text."""
    return next(iter(next(iter(translators.values())).batches(text).epoch(0)))


def _speeds(translators: dict[str, Skill], batch: Batch, options: AttentionOnTranslation) -> Speeds:
    """Target tokens a second of each translator, in training and in decoding step by step, on the same batch."""
    models = {name: translator.model for name, translator in translators.items()}
    special = next(iter(translators.values())).processor.writes.tokenizer.special
    updaters = {
        name: Updater(model, CrossEntropy(0.1), Training(device=options.device)) for name, model in models.items()
    }

    def learn(name: str) -> None:
        models[name].train()
        updaters[name]([batch], 0.0, 1)  # a learning rate of 0 does not change the weights

    def write(name: str) -> None:
        step_scores(cast(Generator, models[name].eval()), batch, special)

    with made_on(options.device):
        training, writing = (
            {name: batch.total_weight / seconds for name, seconds in side_by_side(runs, options.repeats).items()}
            for runs in ({name: partial(run_of, name) for name in models} for run_of in (learn, write))
        )
    return Speeds(training, writing)
