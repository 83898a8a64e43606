"""Three translators side by side, in minutes: without attention, with it, and with nothing but it.

Sentences are messages of one to six emoji names. A recurrent network without attention has to squeeze a message into
one vector, which gets harder with every name, though it is an input of every step; attention does not. All three learn
from as many steps, so that a busy machine changes how long it takes and not how well they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import tyro
from rich.console import Console

from foveate.console import plain_console, print_table
from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import at_least
from foveate.metrics.translation import Quality, quality
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.translate import TASK
from foveate.tasks.translator import Translator
from foveate.viewer import Alignment, plot_alignments, save_figure

MODELS: dict[str, tuple[str, dict[str, Any], float]] = {
    "rnn": ("RNN", {"width": 256, "dropout": 0.1, "fixed_vector": "every"}, 3e-3),
    "rnn-attentive": ("RNN + attention", {"width": 256, "dropout": 0.1}, 3e-3),
    "transformer-tiny": ("Transformer", {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1}, 3e-3),
}
"""The presets, what to call them, the fields that differ for so little text, and their learning rates."""

LONG = 4
"""From this many names on, a message counts as long."""

SHOWN = 4
"""How many unseen messages are shown with their translations."""

DRAWN = ((1, 1), (2, 3))
"""Numbers of names of the messages whose heatmaps are drawn, from and to."""

CANDIDATES = 40
"""Unseen messages among which one is chosen to be drawn."""


@dataclass
class Demo:
    """Train three small translators on the names of emoji: an RNN, an RNN with attention, a Transformer.

    Then compare them on names that they never saw, and draw where the two that attend looked.
    """

    from_language: str = "en"
    """Language to translate from: en, fr, de, es, it, pt, ..."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to."""
    steps: int = 900
    """Training steps of each of the three, each with as many tokens."""
    out: Path = Path("runs/demo")
    """Folder for the trained models and the pictures."""
    seed: int = 1
    """Seed of all that is random."""


def demo(options: Demo, console: Console | None = None) -> None:
    """Train, compare, translate and draw; tell it all on `console`."""
    at_least(1, "steps", options.steps)
    console = console or plain_console()
    splits = open_source("emoji", options.from_language, options.to_language)
    translators = {}
    for preset, (name, fields, rate) in MODELS.items():
        console.rule(f"{name}, {options.steps:,} steps")
        translators[name] = cast(Translator, learn(_recipe(options, preset, fields, rate), splits))
    console.rule("messages of names that none of the three has seen")
    _compare(translators, splits.test, console)
    _translate(translators, splits.test, console)
    for path in _draw(translators, options, splits):
        console.print(f"drew {path}", highlight=False, soft_wrap=True)
    last = options.out / list(MODELS)[-1]
    message = next(iter(splits.test))[0]
    console.print(f"now try: foveate run {last} '{message}'", markup=False, highlight=False, soft_wrap=True)
    console.print(f"         foveate look {last} '{message}'", markup=False, highlight=False, soft_wrap=True)


def _recipe(options: Demo, preset: str, fields: dict[str, Any], rate: float) -> Recipe:
    return TASK.recipe(
        source="emoji",
        from_language=options.from_language,
        to_language=options.to_language,
        vocabulary=2000,
        batch=1024,
        validation_examples=200,
        model=preset,
        architecture=fields,
        out=options.out / preset,
        steps=options.steps,
        learning_rate=rate,
        schedule="linear",
        warmup=100,
        validate_every=300,
        save_every=300,
        average=1,
        seed=options.seed,
    )


def _compare(translators: dict[str, Translator], test: ParallelText, console: Console) -> None:
    """A table of quality by the number of names, and by how much attention is ahead where messages are long."""
    sources, references = map(list, zip(*test, strict=True))
    names = [len(emoji.split()) for emoji in test.notes]
    rows: dict[str, list[str]] = {}
    long: dict[str, Quality] = {}
    for title, translator in translators.items():
        found = [prediction.text for prediction in translator(sources)]
        for number in sorted(set(names)):
            rows.setdefault(str(number), []).append(_scores(_part(found, references, names, number, number)))
        long[title] = _part(found, references, names, LONG, max(names))
        rows.setdefault(f"{LONG} and more", []).append(_scores(long[title]))
        rows.setdefault("all", []).append(_scores(quality(found, references)))
    for name in ("all", f"{LONG} and more"):
        rows[name] = rows.pop(name)
    cells = [[name, *quality_of] for name, quality_of in rows.items()]
    print_table(console, ["names in the message", *translators], cells, "BLEU / chrF")
    plain, *attentive = long
    for title in attentive:
        margin = long[title].bleu - long[plain].bleu
        console.print(
            f"{title}: {margin:+.1f} BLEU against {plain} on messages of {LONG} and more names", highlight=False
        )
    console.print(f"BLEU|{long[plain].bleu_signature}", highlight=False, soft_wrap=True)
    console.print(f"chrF|{long[plain].chrf_signature}", highlight=False, soft_wrap=True)


def _part(found: Sequence[str], references: Sequence[str], names: Sequence[int], fewest: int, most: int) -> Quality:
    places = [place for place, number in enumerate(names) if fewest <= number <= most]
    return quality([found[place] for place in places], [references[place] for place in places])


def _scores(measured: Quality) -> str:
    return f"{measured.bleu:.1f} / {measured.chrf:.1f}"


def _translate(translators: dict[str, Translator], test: ParallelText, console: Console) -> None:
    """The first unseen messages, of growing length, as each model translates them."""
    shown = sorted(zip(test.notes, test, strict=True), key=lambda line: len(line[0].split()))
    for emoji, (source, reference) in shown[:: max(1, len(shown) // SHOWN)][:SHOWN]:
        console.print(f"\n{emoji}  {source}", markup=False, highlight=False)
        for title, translator in translators.items():
            console.print(f"  {title:16} {translator.run(source).text}", markup=False, highlight=False)
        console.print(f"  {'people say':16} {reference}", markup=False, highlight=False)
    console.print()


def _draw(translators: dict[str, Translator], options: Demo, splits: Splits) -> list[Path]:
    """Heatmaps of some messages, with a map for each model that attends."""
    paths = []
    for number, message in enumerate(_telling(translators, splits.test), 1):
        maps = _alignments(translators, message)
        if maps:
            paths.append(options.out / f"alignment-{number}.png")
            save_figure(plot_alignments(maps), paths[-1])
    return paths


def _telling(translators: dict[str, Translator], test: ParallelText) -> list[str]:
    """Unseen messages, a short one and a longer one: of those that the models that attend translate as people do, the
    one whose words look most decidedly."""
    found = []
    for fewest, most in DRAWN:
        fitting = [pair for emoji, pair in zip(test.notes, test, strict=True) if fewest <= len(emoji.split()) <= most]
        some = fitting[:CANDIDATES] or list(test)[:1]
        sources = [source for source, _ in some]
        attending = [one for one in translators.values() if one.attends()]
        texts = [[answer.text for answer in one(sources)] for one in attending]
        right = [source for (source, target), *own in zip(some, *texts, strict=True) if all(x == target for x in own)]
        found.append(max(right or sources[:1], key=lambda source: _decided(_alignments(translators, source))))
    return found


def _alignments(translators: dict[str, Translator], message: str) -> list[Alignment]:
    """Where each model that attends looks while it writes its own translation."""
    maps = []
    for title, translator in translators.items():
        found = translator.alignment(message, translator.run(message).text)
        if found is not None:
            maps.append(Alignment(found.weights, found.target, found.source, f"{title}: {found.title}"))
    return maps


def _decided(maps: Sequence[Alignment]) -> float:
    """How much the places get that are looked at most, times how many different ones these are: a share of 1."""
    weights = [np.asarray(one.weights) for one in maps]
    shares = [one.max(-1).mean() * len({*one.argmax(-1).tolist()}) / one.shape[-1] for one in weights]
    return float(np.mean(shares)) if shares else 0.0
