"""What counting and what programs that compress files make of prose, in bits per byte: the baselines of any language
model on it."""

import bz2
import gzip
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from foveate.baselines.ngrams import Ngrams
from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.documents import Prose
from foveate.data.tokens.tokenizers import train_bpe
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table
from foveate.experiments.drawing import GREY, legend_below, line, panels
from foveate.metrics.perplexity import Perplexity
from foveate.special_tokens import LEARNED

START, END = 256, 257
"""The ids behind those of the bytes."""

PROGRAMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda text: gzip.compress(text, 9),
    "bz2": lambda text: bz2.compress(text, 9),
}
"""What compresses the test text by itself: they have read nothing before it."""

EVERY = 20
"""One paragraph of this many is to test on, where no text is given for it."""


@dataclass
class NgramBaselines(Options):
    """Count the n-grams of a text, of bytes and of subwords, and measure their bits per byte of a held-out text."""

    seeds: int = 1
    source: str | None = None
    """Prose by name, such as prose, the default; see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text instead: plain text files (or .gz), or folders of .txt files."""
    test: tuple[Path, ...] = ()
    """Text to measure on, in the same format. Without it one paragraph of 20 of the data is held out."""
    vocabulary: int = 6000
    """Subwords to learn, at most."""
    orders: tuple[int, ...] = (1, 2, 3, 5)
    """How many tokens an n-gram has."""


OPTIONS = NgramBaselines


@dataclass(frozen=True)
class CompressionResult:
    """The compression of the text by n-grams of one order, or by a program."""

    way: str
    order: int
    bits_per_byte: float
    perplexity: float
    """Per token; 0 for a program."""
    tokens: int
    seconds: float


@dataclass
class _Units:
    """A text in the tokens of one kind, for learning and for testing."""

    name: str
    train: list[list[int]]
    test: list[list[int]]
    size: int
    start: int


def run(options: NgramBaselines, console: Console) -> Comparison:
    """Count and measure. Raises UserError for orders and files that cannot be, and where there is nothing to test."""
    if not options.orders:
        raise UserError("no n-grams to count: give --orders at least one number")
    at_least(1, "orders", min(options.orders))
    splits = _texts(options)
    train, test = ([paragraph.text for paragraph in part] for part in (splits.train, splits.test))
    if not train or not test:
        raise UserError(f"{(splits.train if not train else splits.test).name}: there is no text in it")
    results = [_compressed(name, "\n".join(test).encode()) for name in PROGRAMS]
    size = sum(len(text.encode()) + 1 for text in test)
    words = sum(len(text.split()) + 1 for text in test)
    notes = []
    for units in (_bytes(train, test), _subwords(train, test, options.vocabulary)):
        if lost := sum(row.count(LEARNED.unknown) for row in units.test if units.start == LEARNED.start):
            notes.append(f"{lost:,} tokens of the test text are unknown, and predicted without their letters.")
        for order in sorted(set(options.orders)):
            results.append(_counted(units, order, words, size))
            console.print(f"{units.name}, n = {order}: {results[-1].bits_per_byte:.3f} bits per byte", highlight=False)
    return _report(options, splits, size, results, notes)


def _texts(options: NgramBaselines) -> Splits[Prose]:
    """The text to count in and the text to test on; for a source by name, without its part to validate on."""
    if options.data:
        if options.source is not None:
            raise UserError(f"both the source '{options.source}' and files are given; choose one")
        text = Prose.from_paths(options.data)
        train, test = (text, Prose.from_paths(options.test)) if options.test else text.held_out(EVERY)
        return Splits(train, test, test)
    if options.test:
        raise UserError("--test is for text of your own: give --data too")
    return open_source(options.source or "prose", task="language")


def _bytes(train: Sequence[str], test: Sequence[str]) -> _Units:
    known, asked = ([[*text.encode(), END] for text in texts] for texts in (train, test))
    return _Units("bytes", known, asked, END + 1, START)


def _subwords(train: Sequence[str], test: Sequence[str], size: int) -> _Units:
    tokenizer = train_bpe(train, size)
    known, asked = ([[*row, LEARNED.end] for row in tokenizer.encode(texts)] for texts in (train, test))
    return _Units("subwords", known, asked, len(tokenizer), LEARNED.start)


def _counted(units: _Units, order: int, words: int, size: int) -> CompressionResult:
    began = time.process_time()
    log_probs = Ngrams(units.train, order, units.size, units.start).log_probs(units.test)
    perplexity = Perplexity(-float(log_probs.sum()), len(log_probs), words, size)
    seconds = time.process_time() - began
    return CompressionResult(
        units.name, order, perplexity.bits_per_byte, perplexity.per_token, perplexity.tokens, seconds
    )


def _compressed(name: str, text: bytes) -> CompressionResult:
    began = time.process_time()
    bits = 8 * len(PROGRAMS[name](text)) / len(text)
    return CompressionResult(name, 0, bits, 0.0, 0, time.process_time() - began)


def _report(
    options: NgramBaselines, splits: Splits[Prose], size: int, results: list[CompressionResult], notes: list[str]
) -> Comparison:
    table = Table(["", "n", "bits per byte", "perplexity per token", "seconds"])
    figure, grid = panels(1, 1, 5.4, 3.6)
    axes = grid[0][0]
    for result in results:
        counted = result.order > 0
        perplexity, order = (f"{result.perplexity:.1f}", str(result.order)) if counted else ("", "")
        table.rows.append([result.way, order, f"{result.bits_per_byte:.3f}", perplexity, f"{result.seconds:.1f}"])
        if not counted:
            axes.axhline(result.bits_per_byte, color=GREY, linewidth=1, linestyle=":")
            axes.annotate(result.way, (max(options.orders), result.bits_per_byte), ha="right", va="bottom", color=GREY)
    for number, way in enumerate(("bytes", "subwords")):
        own = [result for result in results if result.way == way]
        line(
            axes,
            number,
            [result.order for result in own],
            [result.bits_per_byte for result in own],
            f"n-grams of {way}",
        )
    axes.set(xlabel="tokens of an n-gram", ylabel="bits per byte", xticks=sorted(set(options.orders)))
    legend_below(figure, axes)
    about = (
        f"{splits.test.name}: {size:,} bytes, after counting in {splits.train.name}. Interpolated Kneser-Ney, each "
        "paragraph read by itself to its end, which counts as a byte; the programs have read nothing before."
    )
    title = "N-grams and compressing programs in bits per byte"
    return Comparison(title, [table], {"": figure}, [asdict(result) for result in results], [about, *notes])
