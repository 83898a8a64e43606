"""How far back a gradient reaches: through the steps of recurrent networks, and through one step of attention.

The gradient of a state with respect to an input d steps before is a product of d Jacobians, which shrinks or grows with
d (Hochreiter 1991; Bengio et al. 1994, https://doi.org/10.1109/72.279181). Gates keep it alive for longer (Hochreiter
and Schmidhuber 1997), and attention reads each state directly, so that what shrinks is a share of 1/n alone.

B batch    N length    C width
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate.attention import attend
from foveate.errors import at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, check_growing, on_device
from foveate.experiments.drawing import legend_below, line, panels, powers_of_two

Read = Callable[[Float[Tensor, "B N C"]], Float[Tensor, "B C"]]
"""One vector of a sequence."""

LEAST = 1e-12
"""Smaller gradients are not drawn: training cannot distinguish them from zero."""


@dataclass
class Vanishing(DeviceOptions):
    """Measure the gradient of the last output with respect to inputs before it, by distance and by length."""

    lengths: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)
    """Lengths of sequences; distances are measured in the longest one."""
    width: int = 64
    """Width of inputs and states."""
    repeats: int = 20
    """Networks with random weights, over which gradients are averaged."""


@dataclass(frozen=True)
class Gradient:
    """How much of an input arrives at the output: the norm of the gradient, the geometric mean over networks."""

    network: str
    length: int
    distance: int
    norm: float


@on_device
def run(options: Vanishing, console: Console) -> Comparison:
    """Measure all networks. Raises UserError for invalid sizes."""
    check_growing("lengths", options.lengths)
    at_least(1, "width", options.width)
    at_least(1, "repeats", options.repeats)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        networks = [_networks(options.width) for _ in range(options.repeats)]
    names, longest, results = [*networks[0]], options.lengths[-1], list[Gradient]()
    for name in names:
        for length in options.lengths:
            norms = _norms([own[name] for own in networks], length, options)
            distances = [one - 1 for one in options.lengths] if length == longest else [length - 1]
            results += [Gradient(name, length, far, float(norms[-1 - far])) for far in distances]
    return _report(options, names, results)


def _networks(width: int) -> dict[str, Read]:
    """The networks with random weights, as their training begins."""
    plain, gated = nn.RNN(width, width, batch_first=True), nn.GRU(width, width, batch_first=True)
    lstm = nn.LSTM(width, width, batch_first=True)
    query = torch.randn(1, 1, width)
    with torch.no_grad():
        lstm.get_parameter("bias_hh_l0")[width : 2 * width] = (
            1.0  # gates that forget little, as is usual since Jozefowicz et al. 2015
        )

    def attended(x: Float[Tensor, "B N C"]) -> Float[Tensor, "B C"]:
        return attend(query, x, x)[:, 0]

    return {
        "RNN": lambda x: plain(x)[0][:, -1],
        "GRU": lambda x: gated(x)[0][:, -1],
        "LSTM, open gates": lambda x: lstm(x)[0][:, -1],
        "GRU, attention over states": lambda x: attended(gated(x)[0]),
        "attention over inputs": attended,
    }


def _norms(networks: list[Read], length: int, options: Vanishing) -> Float[Tensor, "N"]:
    """The norm of the gradient of one random projection of the output at each input."""
    generator, logarithms = torch.Generator().manual_seed(options.seed), torch.zeros(length)
    for network in networks:
        x, direction = (
            torch.randn(1, *size, generator=generator, device="cpu").to(torch.get_default_device())
            for size in ((length, options.width), (options.width,))
        )
        x.requires_grad_()
        (gradient,) = torch.autograd.grad((network(x) * direction / options.width**0.5).sum(), x)
        logarithms += gradient[0].double().norm(dim=-1).clamp_min(1e-45).log().float()
    return (logarithms / len(networks)).exp()


def _report(options: Vanishing, names: list[str], results: list[Gradient]) -> Comparison:
    longest = options.lengths[-1]
    by_distance = {name: [one for one in results if (one.network, one.length) == (name, longest)] for name in names}
    ends = [one for one in results if one.distance == one.length - 1]
    by_length = {name: [one for one in ends if one.network == name] for name in names}
    tables = [
        _table("distance", f"By the distance, in sequences of {longest:,}", by_distance, lambda one: one.distance),
        _table("length", "At the first input, by the length", by_length, lambda one: one.length),
    ]
    figure, (axes,) = panels(1, 2, 4.4, 3.4)
    for number, name in enumerate(names):
        far = [one for one in by_distance[name] if one.distance]
        line(axes[0], number, [one.distance + 1 for one in far], [one.norm for one in far], name)
        line(axes[1], number, [one.length for one in by_length[name]], [one.norm for one in by_length[name]], name)
    for plot, label in ((axes[0], "distance to the end, and 1"), (axes[1], "length of the sequence")):
        powers_of_two(plot, options.lengths)
        plot.set(yscale="log", ylim=(LEAST, 2), xlabel=label)
    axes[0].set_title(f"gradient at an input, of {longest:,}")
    axes[1].set_title("gradient at the first input")
    legend_below(figure, axes[0], 3)
    return Comparison(
        "How far back gradients reach",
        tables,
        {"": figure},
        [asdict(one) for one in results],
        [
            f"The norm of the gradient of one random unit direction of the last output at an input; the geometric mean "
            f"of {options.repeats} networks of width {options.width} as training begins, which read standard normal "
            "vectors. The forget gates of the LSTM have a bias of 1. The query of attention is one random vector."
        ],
    )


def _table(heading: str, title: str, columns: dict[str, list[Gradient]], key: Callable[[Gradient], int]) -> Table:
    rows: list[Any] = [
        [f"{key(parts[0]):,}", *(f"{one.norm:.1e}" for one in parts)] for parts in zip(*columns.values(), strict=True)
    ]
    return Table([heading, *columns], rows, title)


OPTIONS = Vanishing
