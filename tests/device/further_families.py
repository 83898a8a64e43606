"""Models in small whose inputs are not the rows of `variants`: several parts, steps in a world, images and labels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from foveate import models
from foveate.data.text.prose_batches import paragraph_inputs
from foveate.special_tokens import LEARNED


def _seeded(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


TOKENS, LENGTHS = torch.tensor([[1, 4, 12, 2], [1, 8, 2, 0], [1, 9, 2, 0]]), torch.tensor([4, 3, 3])

INSTRUCTIONS = {"tokens": torch.tensor([[4, 5, 6], [9, 3, 0], [7, 0, 0]]), "lengths": torch.tensor([3, 2, 1])}

SEEN = {"darqn": ("pixels", (3, 13, 17)), "mdarqn": ("pixels", (2, 13, 17)), "walker": ("features", (11,))}
"""What agents see at each step, without the rows: the name and the shape."""

AGENT = {"vocabulary": 17, "actions": 5}

CONVOLUTIONS = {"kernels": (5, 3), "strides": (2, 1), "widths": (7, 19), "width": 23}

PICTURES = {"pixels": _seeded((3, 3, 24, 32)), "tokens": TOKENS, "lengths": LENGTHS}

SENTENCES = [[[4, 5, 6], [7], []], [[8, 9], []]]

FURTHER: dict[str, tuple[str, dict[str, Any], Callable[[], dict[str, Tensor]]]] = {
    "clip": (
        "clip-tiny",
        {"vocabulary": 17, "channels": 3, "embedding": 10, "width": 12, "heads": 3, "layers": 2},
        lambda: dict(PICTURES),
    ),
    "dual-encoder": ("clip-vit-tiny", {"vocabulary": 17}, lambda: {**PICTURES, "pixels": _seeded((3, 3, 32, 32))}),
    "darqn": ("darqn-tiny", {**AGENT, **CONVOLUTIONS, "channels": 3}, lambda: INSTRUCTIONS | observed("darqn", 4)),
    "mdarqn": ("mdarqn-tiny", {**AGENT, **CONVOLUTIONS}, lambda: INSTRUCTIONS | observed("mdarqn", 4)),
    "walker": ("walker-tiny", {**AGENT, "features": 11}, lambda: INSTRUCTIONS | observed("walker", 4)),
    "elmo": (
        "elmo",
        {"vocabulary": 17, "filters": (3, 2, 5), "cells": 7, "width": 4, "character_width": 3, "characters": 13},
        lambda: {"characters": torch.arange(60).view(2, 5, 6) % 13, "lengths": torch.tensor([5, 3])},
    ),
    "hierarchical-autoencoder": (
        "hierarchical-autoencoder-attentive",
        {"vocabulary": 17, "embedding": 10, "width": 12, "dropout": 0.0},
        lambda: {**paragraph_inputs(SENTENCES, LEARNED), "target": _written(SENTENCES)},
    ),
    "sagan": (
        "sagan-tiny",
        {"classes": 3, "channels": 2, "image_size": 12, "noise": 5, "generator": (8, 6, 4)}
        | {"discriminator": (4, 6, 8), "generator_attends_after": (1,), "discriminator_attends_after": (1,)},
        lambda: {"pixels": _seeded((4, 2, 12, 12)), "classes": torch.tensor([0, 2, 1, 2])},
    ),
    "sar": (
        "sar-tiny",
        {"vocabulary": 13},
        lambda: {
            "pixels": _seeded((3, 1, 24, 44)),
            "widths": torch.tensor([44, 27, 4]),
            "target": torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0], [1, 9, 9, 4, 0]]),
        },
    ),
    "text-to-image": (
        "text-to-image-tiny",
        {"vocabulary": 17, "codes": 11, "side": 4, "embedding": 5, "width": 12, "heads": 3, "feedforward": 7}
        | {"layers": 2},
        lambda: {"image": torch.arange(48).view(3, 16) % 12, "tokens": TOKENS, "lengths": LENGTHS},
    ),
}
"""The preset, its sizes, and the inputs, by family."""


def observed(family: str, steps: int) -> dict[str, Tensor]:
    """What an agent of three worlds sees at some steps."""
    name, shape = SEEN[family]
    return {name: _seeded((3, steps, *shape))}


def build(family: str) -> nn.Module:
    """The model of a family, with the same random weights each time and without dropout."""
    preset, sizes, _ = FURTHER[family]
    torch.manual_seed(7)
    model = models.create(preset, **sizes)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return model


def _written(paragraphs: list[list[list[int]]]) -> Tensor:
    rows = [[LEARNED.start, *sentence] for paragraph in paragraphs for sentence in paragraph]
    return torch.tensor([row + [0] * (4 - len(row)) for row in rows])
