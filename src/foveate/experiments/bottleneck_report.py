"""The tables, the notes and the figure of `bottleneck`."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from foveate.experiments.comparison import Table
from foveate.experiments.drawing import GREY, legend_below, line, panels, powers_of_two
from foveate.experiments.measuring import exponent
from foveate.viewer.plain_figure import PlainFigure

Group = dict[str, float]
"""The quality of sentences of similar length: "shortest" and "longest" in words, "sentences", "bleu", "chrf"."""

Times = dict[str, dict[int, float]]
"""Seconds for one sentence, by model and by length in tokens."""

LAST = 3
"""The exponent of growth is fitted to this many of the greatest lengths, where the fastest term dominates."""


def tables(qualities: Mapping[str, Sequence[Group]], times: Mapping[str, Times]) -> list[Table]:
    """BLEU by source length, then milliseconds by length."""
    return [_quality(qualities), *(_milliseconds(what, measured) for what, measured in times.items())]


def _quality(qualities: Mapping[str, Sequence[Group]]) -> Table:
    first = next(iter(qualities.values()))
    table = Table(["words in the source", "sentences", *qualities], title="BLEU")
    for number, group in enumerate(first):
        cells = [f"{groups[number]['bleu']:.1f}" for groups in qualities.values()]
        table.rows.append([f"{group['shortest']:.0f}-{group['longest']:.0f}", f"{group['sentences']:.0f}", *cells])
    return table


def _milliseconds(what: str, measured: Times) -> Table:
    table = Table(["tokens n = m", *measured], title=f"Milliseconds a sentence, {what}")
    for length in next(iter(measured.values())):
        table.rows.append([f"{length:,}", *(f"{1000 * seconds[length]:,.1f}" for seconds in measured.values())])
    grows = [f"n^{exponent(*_last(seconds)):.2f}" for seconds in measured.values()]
    table.rows.append([f"grows, last {min(LAST, len(table.rows))}", *grows])
    return table


def _last(seconds: Mapping[int, float]) -> tuple[list[int], list[float]]:
    lengths = sorted(seconds)[-LAST:]
    return lengths, [seconds[length] for length in lengths]


def notes(steps: int, joined: int) -> list[str]:
    """Notes about the tables."""
    return [
        f"Each model was trained for {steps:,} steps on sentences of which up to {joined} neighbours were joined; "
        "greedy search, sacreBLEU's tokenisation 13a.",
        "Times are those of one sentence of n tokens and a translation of m = n, without gradients.",
    ]


def figure(qualities: Mapping[str, Sequence[Group]], times: Mapping[str, Times]) -> PlainFigure:
    """BLEU by words, and time by tokens on logarithmic axes, with lines of slope n^1 and n^2."""
    drawn, grid = panels(1, 1 + len(times), width=4.4, height=3.6)
    by_length, *by_time = grid[0]
    for number, (name, groups) in enumerate(qualities.items()):
        middles = [(group["shortest"] + group["longest"]) / 2 for group in groups]
        line(by_length, number, middles, [group["bleu"] for group in groups], name)
    by_length.set(title="quality", xlabel="words in the source (middle of the group)", ylabel="BLEU", ylim=(0, None))
    for axes, (what, measured) in zip(by_time, times.items(), strict=True):
        for number, seconds in enumerate(measured.values()):
            line(axes, number, list(seconds), [1000 * second for second in seconds.values()])
        _guides(axes, measured)
        axes.set(title=what, xlabel="tokens n = m", ylabel="ms a sentence")
    legend_below(drawn, by_length)
    return drawn


def _guides(axes: Axes, measured: Times) -> None:
    """Grey lines of slope n and n^2, which end at the last time of the slowest model."""
    lengths = sorted(next(iter(measured.values())))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    powers_of_two(axes, lengths)
    axes.tick_params(axis="x", labelrotation=45)
    bottom, top = axes.get_ylim()
    highest = 1000 * max(seconds[lengths[-1]] for seconds in measured.values())
    for name, power, style in (("n", 1, ":"), ("n²", 2, "--")):
        falling = [highest * (length / lengths[-1]) ** power for length in lengths]
        axes.plot(lengths, falling, style, color=GREY, linewidth=1, zorder=1, label=f"grows with {name}")
    axes.set_ylim(bottom, top)
    axes.legend(frameon=False, fontsize="small")
