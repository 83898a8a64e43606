"""From the vector of an object to its class and its box."""

import math

from torch import nn


def class_logits(width: int, classes: int, no_object: bool) -> nn.Linear:
    """From a vector to the logits of its class.

    With `no_object` the last class means that there is none (softmax). Otherwise classes are decided one by one.
    """
    layer = nn.Linear(width, classes + no_object)
    if not no_object:
        nn.init.constant_(layer.bias, -math.log(99))  # almost no query has an object: Lin et al. 2017
    return layer


def box_layers(width: int, corrects: bool) -> nn.Sequential:
    """From a vector to a box before the sigmoid, or to the correction of one, 0 at first."""
    inner = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
    layers = nn.Sequential(*inner, nn.Linear(width, 4))
    if corrects:
        for parameter in layers[-1].parameters():
            nn.init.zeros_(parameter)
    return layers
