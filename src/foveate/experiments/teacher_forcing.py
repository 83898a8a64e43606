"""Teacher forcing against decoding: a known target at once, or one token after the other.

Training does the first, translation the second. A recurrent layer takes the same number of steps either way; layers
without recurrence compute all positions of a known target in parallel.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.contracts import Generator
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.drawing import legend_below, line, panels, powers_of_two
from foveate.experiments.measuring import Run, exponent, side_by_side
from foveate.special_tokens import LEARNED

MODES = {"forced": "teacher-forced", "stepped": "step by step"}


@dataclass
class TeacherForcing(DeviceOptions):
    """Compare the time of models for a known target and for decoding step by step."""

    seeds: int = 1
    models: tuple[str, ...] = ("rnn", "rnn-attentive", "rnn-bahdanau", "convolutional-tiny", "transformer-tiny")
    """Presets of translators."""
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    """Tokens of the source and of the target."""
    width: int = 128
    """Width of all models and of their embeddings; the number of layers is that of the preset."""
    vocabulary: int = 2000
    """Vocabulary size of each language."""
    batch: int = 8
    """Sentences in a batch."""
    repeats: int = 3
    """Measurements of each time, of which the median counts."""


@dataclass(frozen=True)
class DecodingTime:
    """Seconds for a batch of sentences of one length."""

    model: str
    mode: str
    length: int
    seconds: float
    kept: int
    """Bytes of the decoder state of a sentence after the last step; 0 for teacher forcing."""


@on_device
def run(options: TeacherForcing, console: Console) -> Comparison:
    """Measure all models at all lengths. Raises UserError for invalid sizes and for models that do not translate."""
    for name in ("width", "batch", "repeats"):
        at_least(1, name, getattr(options, name))
    at_least(LEARNED.first_word + 1, "vocabulary", options.vocabulary)
    at_least(1, "the number of models", len(options.models))
    check_growing("lengths", options.lengths)
    built = {name: _model(options, name) for name in options.models}
    results = []
    for length in options.lengths:
        console.print(f"{length:,} tokens", highlight=False)
        runs = {(name, mode): _run(options, model, length, mode) for name, model in built.items() for mode in MODES}
        with torch.inference_mode():
            kept = {
                case: state_bytes(run_of()) // options.batch for case, run_of in runs.items() if case[1] == "stepped"
            }
            seconds = side_by_side(runs, options.repeats)
        results += [DecodingTime(*case, length, took, kept.get(case, 0)) for case, took in seconds.items()]
    return _report(options, results)


def _model(options: TeacherForcing, name: str) -> nn.Module:
    config = models.config_class(models.preset(name).family)
    known = {field.name for field in fields(config)}
    sizes = {
        "src_vocab": options.vocabulary,
        "tgt_vocab": options.vocabulary,
        "width": options.width,
        "embedding": options.width,
    }
    values: dict[str, Any] = {size: value for size, value in sizes.items() if size in known}
    model = models.create(name, **values).eval() if {"src_vocab", "tgt_vocab"} <= known else None
    if not isinstance(model, Generator):  # a matcher reads two texts, for example
        raise UserError(f"{name} does not translate; `foveate train translate --help` lists models that do")
    return model


def state_bytes(state: Any) -> int:
    """The bytes of all tensors in the state of a decoder, each counted once."""
    sizes: dict[int, int] = {}
    left, seen = [state], set()
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, nn.Module):
            continue
        seen.add(id(part))
        if isinstance(part, Tensor):
            sizes[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
        elif isinstance(part, (list, tuple)):
            left += part
        else:
            left += (part if isinstance(part, dict) else getattr(part, "__dict__", {})).values()
    return sum(sizes.values())


def _run(options: TeacherForcing, model: Any, length: int, mode: str) -> Run:
    source = torch.randint(LEARNED.first_word, options.vocabulary, (options.batch, length))
    lengths = torch.full((options.batch,), length)
    target = torch.randint(LEARNED.first_word, options.vocabulary, (options.batch, length))
    target[:, 0] = LEARNED.start

    def forced() -> Tensor:
        return model(source, lengths, target).logits

    def stepped() -> Any:
        return model.prefill(target, source=source, source_lengths=lengths)[1]

    return forced if mode == "forced" else stepped


def _report(options: TeacherForcing, results: list[DecodingTime]) -> Comparison:
    def seconds(name: str, mode: str) -> list[float]:
        return [result.seconds for result in results if (result.model, result.mode) == (name, mode)]

    longest, start = options.lengths[-1], len(options.lengths) // 2
    table = Table(
        ["model", *(f"{mode}, {longest} tokens, ms" for mode in MODES.values()), "times as long", "growth", "kept, KiB"]
    )
    figure, grid = panels(1, 3, 3.6, 3.2)
    for number, name in enumerate(options.models):
        forced, stepped = (seconds(name, mode) for mode in MODES)
        ratio = [slow / fast for slow, fast in zip(stepped, forced, strict=True)]
        growth = [exponent(options.lengths[start - 1 :], times[start - 1 :]) for times in (forced, stepped)]
        table.rows.append(
            [
                name,
                *(f"{1000 * times[-1]:.1f}" for times in (forced, stepped)),
                f"{ratio[-1]:.1f}",
                "n^{:.2f}, n^{:.2f}".format(*growth),
                " ".join(
                    f"{result.kept / 1024:,.0f}"
                    for result in results
                    if (result.model, result.mode) == (name, "stepped")
                ),
            ]
        )
        for axes, values in zip(grid[0], (forced, stepped, ratio), strict=True):
            line(axes, number, options.lengths, values, name)
    for axes, title in zip(grid[0], (*MODES.values(), "step by step / teacher-forced"), strict=True):
        axes.set(title=title, xlabel="tokens of source and target")
        powers_of_two(axes, options.lengths)
    times = [result.seconds for result in results]
    for axes in grid[0][:2]:
        axes.set(yscale="log", ylim=(min(times) / 1.3, max(times) * 1.3))
    grid[0][0].set_ylabel("seconds")
    grid[0][2].set_ylim(0)
    legend_below(figure, grid[0][0])
    return Comparison(
        "Reading a known target at once, against writing it step by step",
        [table],
        {"": figure},
        [asdict(result) for result in results],
        [
            f"{options.batch} sentences at once, width {options.width}, vocabulary {options.vocabulary:,}, reading the "
            "source included, without gradients; steps keep what is known (states, keys and values, windows). Growth: "
            f"fitted exponents of both times from {options.lengths[start - 1]} tokens on. Kept: what writing one "
            f"sentence of {', '.join(map(str, options.lengths))} tokens holds in the end, its source included, but for "
            "the weights."
        ],
    )


OPTIONS = TeacherForcing
