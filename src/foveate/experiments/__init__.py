"""Experiments of `foveate bench`: comparisons that textbooks draw. Each measures something and makes a table and a
figure.

A comparison is a module with OPTIONS, a subclass of `Options`, and `run(options, console)`, which returns a
`Comparison`. It is registered by one line in the table below.
"""

import importlib
from dataclasses import replace
from typing import Any

import torch
from rich.console import Console

from foveate.errors import at_least, unknown
from foveate.experiments.comparison import Comparison, DeviceOptions, Options, Table, conditions, save
from foveate.experiments.seeds import mean_of_seeds
from foveate.files import check_writable
from foveate.training.hardware import choose_device
from foveate.training.settings import check_seed, check_threads

COMPARISONS = {
    "layers": (
        "foveate.experiments.layers",
        "recurrent, convolution, self-attention, restricted self-attention: cost against length and width",
    ),
    "dot-scaling": ("foveate.experiments.dot_scaling", "dot against scaled dot, by the width of the keys"),
    "vanishing": (
        "foveate.experiments.vanishing",
        "how far back gradients reach: recurrent networks, gates, attention; by distance and length",
    ),
    "mechanisms": (
        "foveate.experiments.mechanisms",
        "softmax, sigmoid, sparse weights, linear attention, retention, delta rule, Mamba-2: what each learns",
    ),
    "scores": ("foveate.experiments.scores", "scores of attention: time, memory, what a layer learns with each"),
    "positions": (
        "foveate.experiments.positions",
        "kinds of positions: trained on short sequences, tested on long ones",
    ),
    "norms": ("foveate.experiments.norms", "post-norm against pre-norm, by depth and learning rate"),
    "heads": ("foveate.experiments.heads", "many heads, one, split ones, unequal ones: quality, time, parameters"),
    "windows": ("foveate.experiments.windows", "self-attention within a radius: a translator and a tagger"),
    "teacher-forcing": (
        "foveate.experiments.teacher_forcing",
        "a known target at once (teacher forcing) against decoding step by step",
    ),
    "traces": ("foveate.experiments.traces", "what runs in parallel: products that wait for each other, counted"),
    "parallel": (
        "foveate.experiments.parallel",
        "one process against several: data parallel, sharded, model parallel",
    ),
    "degradation": ("foveate.experiments.degradation", "plain against residual nets, by depth: training error too"),
    "identity": ("foveate.experiments.identity", "what is left of a shallower net in plain and residual nets"),
    "imagenet": ("foveate.experiments.imagenet", "winners of ILSVRC and later models: published errors, our sizes"),
    "vit-choices": (
        "foveate.experiments.vit_choices",
        "a vision Transformer's patches, width, depth, heads, positions and pooling, one changed at a time",
    ),
    "distant-marks": (
        "foveate.experiments.distant_marks",
        "a CNN with and without self-attention: have two marks the same colour, by the distance between them",
    ),
    "vision-compute": (
        "foveate.experiments.vision_compute",
        "vision Transformers, hybrids and residual networks at equal training FLOPs",
    ),
    "linear-probe": (
        "foveate.experiments.linear_probe",
        "a linear classifier of each layer of an Image GPT or a vision Transformer, beside one of the pixels",
    ),
    "products": ("foveate.experiments.products", "matrix products against convolutions of equally many FLOPs"),
    "scaling-law": (
        "foveate.experiments.scaling_law",
        "small GPTs: loss by parameters and tokens, and the law L(N, D) that fits it",
    ),
    "translation": (
        "foveate.experiments.attention_on_translation",
        "all scores and selections of attention on translation: quality, speed, alignment",
    ),
    "bottleneck": (
        "foveate.experiments.bottleneck",
        "RNN without attention, with it, Transformer: BLEU and time by the length of the source",
    ),
    "copying": (
        "foveate.experiments.copying",
        "copies of up to 1,000 random tokens, through one vector and by attention",
    ),
    "prompting": (
        "foveate.experiments.prompting",
        "a trained language model with a prompt of 0, 1, 2, 4, 8 examples: accuracy of its choices",
    ),
    "ngrams": (
        "foveate.experiments.ngrams",
        "n-grams of bytes and of subwords, gzip and bz2: bits per byte of prose, the baselines of language models",
    ),
    "elmo-features": (
        "foveate.experiments.elmo_features",
        "a classifier of texts with word vectors of its own, with those of a trained ELMo, with both",
    ),
}
"""The module of each comparison, and what it compares."""

ONE_SEED = "One seed: how much of a difference is chance, --seeds 3 would tell."

__all__ = ["COMPARISONS", "Comparison", "Options", "Table", "compare", "compare_seeds", "comparison_module", "save"]


def comparison_module(name: str) -> Any:
    """The module of a comparison; UserError with the nearest names if there is none."""
    if name not in COMPARISONS:
        raise unknown("comparison", name, COMPARISONS)
    return importlib.import_module(COMPARISONS[name][0])


def compare_seeds(name: str, options: Options, console: Console) -> Comparison:
    """Run a comparison once for each of its seeds, as `compare` does, and return the means.

    Raises UserError for invalid options and for an output folder that cannot be written to.
    """
    at_least(1, "seeds", options.seeds)
    if options.seeds == 1:
        found = compare(name, options, console)
        return found if type(options)().seeds == 1 else replace(found, notes=[*found.notes, ONE_SEED])
    seeds = range(options.seed, options.seed + options.seeds)
    found_by_seed: list[Comparison] = []
    for seed in seeds:
        console.rule(f"seed {seed}, {len(found_by_seed) + 1} of {options.seeds}")
        alone = replace(options, seed=seed, seeds=1, out=options.out / f"seed-{seed}")
        found_by_seed.append(compare(name, alone, console))
    return mean_of_seeds(found_by_seed, seeds)


def compare(name: str, options: Options, console: Console) -> Comparison:
    """Run a comparison once, with the threads and the first seed of its options.

    Raises UserError for invalid options and for an output folder that cannot be written to.
    """
    module = comparison_module(name)
    check_writable(options.out)
    check_threads(options.threads)
    check_seed(options.seed)
    device = options.device if isinstance(options, DeviceOptions) else "cpu"
    choose_device(device)
    before = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    try:
        found: Comparison = module.run(options, console)
        return replace(found, conditions=found.conditions or f"Measured with {conditions(device)}.")
    finally:
        torch.set_num_threads(before)
