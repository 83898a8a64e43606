"""A linear probe: what each layer of a trained image model knows about labels that it may never have seen.

Chen et al. 2020 (https://cdn.openai.com/papers/Generative_Pretraining_from_Pixels_V2.pdf, section 3.4): the features of
a layer, averaged over all places, are read by a linear classifier. The best layer, chosen on validation images, lies in
the middle of a model that learned to predict pixels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from rich.console import Console
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from foveate import tasks
from foveate.data.images.labelled import LabelledImage
from foveate.data.sources import open_source
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table
from foveate.experiments.drawing import GREY, line, panels
from foveate.nn import TransformerStack
from foveate.tasks.skill import Skill
from foveate.viewer.plain_figure import PlainFigure

DECAYS = (1e-4, 1e-3, 1e-2)
"""Weights of the squared weights in the loss of a classifier, of which validation images choose one."""

ITERATIONS = 100
"""Steps of L-BFGS: enough that more change nothing."""


@dataclass
class LinearProbe(Options):
    """Read the features of each layer of a trained image model with a linear classifier, beside one of the pixels."""

    seeds: int = 1
    run: Path = Path("runs/pixels")
    """A run of complete-image or classify-image, of an Image GPT or a vision Transformer."""
    source: str = "fashion-mnist"
    """Labelled images by name: see `foveate data`."""
    images: int = 10_000
    """Images that the classifiers learn from, at most, from all over the training part."""
    batch: int = 250
    """Images that the model reads together."""


@dataclass(frozen=True)
class ProbeAccuracy:
    """The features of a linear classifier, and how often it is right, in percent."""

    features: str
    validation: float
    test: float


def run(options: LinearProbe, console: Console) -> Comparison:
    """Probe all layers. Raises UserError for a run whose model has no stack of Transformer blocks."""
    at_least(1, "images", options.images)
    at_least(1, "batch", options.batch)
    predictor: Any = tasks.load(options.run)
    model: Any = getattr(predictor, "model", None)
    if not (hasattr(model, "grid") and isinstance(getattr(model, "stack", None), TransformerStack)):
        raise UserError(f"{options.run} has no Image GPT or vision Transformer: only their layers are probed")
    splits = open_source(options.source, task="classify-image", announce=console.print)
    parts = splits.train.some(options.images), list(splits.dev), list(splits.test)
    names = sorted({example.label for part in parts for example in part})
    labels = [torch.tensor([names.index(example.label) for example in part]) for part in parts]
    features = [read_features(predictor, part, options.batch) for part in parts]
    probed = []
    for number, name in enumerate(features[0]):
        probed.append(ProbeAccuracy(name, *probe([part[name] for part in features], labels, len(names))))
        layer = f"{number} of {len(features[0]) - 1}"
        console.print(f"{name} ({layer}): {probed[-1].validation:.1f} % of validation images", highlight=False)
    return _report(options, probed, len(parts[0]))


def read_features(skill: Skill, examples: Sequence[LabelledImage], batch: int) -> dict[str, Float[Tensor, "N C"]]:
    """The pixels as the model reads them, the mean of the embeddings over all places, and that of each block's output.
    A class token counts as a place."""
    pooled: dict[str, list[Tensor]] = {}
    stack: Any = skill.model.stack
    for begin in range(0, len(examples), batch):
        pixels = _pixels(skill, examples[begin : begin + batch])
        for name, value in [("pixels", pixels.flatten(1)), *_layers(skill, stack, pixels)]:
            pooled.setdefault(name, []).append(value)
    return {name: torch.cat(values) for name, values in pooled.items()}


def _pixels(skill: Skill, examples: Sequence[LabelledImage]) -> Tensor:
    reads = skill.processor.reads
    pixels: Tensor = reads.tensors([reads.prepare(example.read()) for example in examples])[0]["pixels"]
    return pixels


def _layers(skill: Skill, stack: Any, pixels: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The mean over all places of what goes into the first block, and of what comes out of each."""
    outputs: list[Tensor] = []

    def note_input(block: nn.Module, given: tuple[Any, ...]) -> None:
        outputs.append(given[0].mean(1))

    def note_output(block: nn.Module, given: Any, output: Any) -> None:
        outputs.append((output[0] if isinstance(output, tuple) else output).mean(1))

    hooks = [stack.blocks[0].register_forward_pre_hook(note_input)]
    hooks += [block.register_forward_hook(note_output) for block in stack.blocks]
    try:
        with torch.inference_mode():
            skill.model.eval().grid(pixels.to(skill.device))  # type: ignore[operator]
    finally:
        for hook in hooks:
            hook.remove()
    for number, output in enumerate(outputs):
        yield f"layer {number}" if number else "embeddings", output.float().cpu()


def probe(
    features: Sequence[Float[Tensor, "_ C"]], labels: Sequence[Int[Tensor, "_"]], classes: int
) -> tuple[float, float]:
    """Accuracy on validation and test images, in percent, of the best of several linear classifiers on validation
    images. `features` and `labels` are those of the images to learn from, to validate on and to test on."""
    mean, deviation = features[0].mean(0), features[0].std(0).clamp_min(1e-6)
    train, *others = ((part - mean) / deviation for part in features)
    accuracies = []
    for decay in DECAYS:
        classifier = fit(train, labels[0], classes, decay)
        with torch.inference_mode():
            right = [
                100 * float((classifier(part).argmax(-1) == of).float().mean())
                for part, of in zip(others, labels[1:], strict=True)
            ]
        accuracies.append((right[0], right[1]))
    return max(accuracies, key=lambda accuracy: accuracy[0])


def fit(features: Float[Tensor, "N C"], labels: Int[Tensor, "N"], classes: int, decay: float) -> nn.Linear:
    """Logistic regression with squared weights in the loss, by L-BFGS from weights of 0."""
    classifier = nn.Linear(features.shape[1], classes)
    nn.init.zeros_(classifier.weight)
    nn.init.zeros_(classifier.bias)
    optimizer = torch.optim.LBFGS(classifier.parameters(), max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(classifier(features), labels) + decay * classifier.weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return classifier


def _report(options: LinearProbe, probed: list[ProbeAccuracy], images: int) -> Comparison:
    pixels, *layers = probed
    best = max(layers, key=lambda probe: probe.validation)
    table = Table(["a linear classifier of", "validation, %", "test, %"])
    table.rows += [[probe.features, f"{probe.validation:.1f}", f"{probe.test:.1f}"] for probe in probed]
    return Comparison(
        "A linear probe of each layer",
        [table],
        {"": _plot(pixels, layers)},
        [asdict(probe) for probe in probed],
        [
            f"{options.run}, {images:,} labelled images of {options.source}; means over all places. Validation images "
            f"choose {best.features}: {best.test:.1f} % of the test images, the pixels {pixels.test:.1f} %."
        ],
    )


def _plot(pixels: ProbeAccuracy, layers: list[ProbeAccuracy]) -> PlainFigure:
    figure, ((axes,),) = panels(1, 1, 5.2, 3.4)
    line(axes, 0, range(len(layers)), [probe.test for probe in layers], "features of the layer")
    axes.axhline(pixels.test, color=GREY, linestyle="--", label="pixels")
    axes.set_xticks(range(len(layers)))
    axes.set_xlabel("layer (0: embeddings)")
    axes.set_ylabel("accuracy of a linear classifier, %")
    axes.legend(frameon=False)
    return figure


OPTIONS = LinearProbe
