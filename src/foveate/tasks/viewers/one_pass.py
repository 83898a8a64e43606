"""One forward pass of a model of transformers that is looked at, and what a classifier predicts in it."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError, one_line
from foveate.interop.huggingface import short_errors
from foveate.interop.layout import label_scores
from foveate.sight import Sight, look

DECODER_INPUT = "decoder_input_ids"
"""Name of the decoder's input in transformers."""

CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification", "ForAudioClassification")
"""The ends of the names of models that give an input one label."""

MOST = 3
"""Labels in the note."""


def run_and_look(model: Any, part: Any, inputs: dict[str, Any], sites: Sequence[str] | None) -> tuple[Sight, Any]:
    """The sight and the output of one forward pass of a part of the model, without a cache.

    Raises UserError if it fails.
    """
    taken = inspect.signature(part.forward).parameters
    if DECODER_INPUT in taken and DECODER_INPUT not in inputs:
        raise UserError(
            f"{type(model).__name__} has a decoder, but no head that generates its input: "
            "save the model with its head to look at it"
        )
    cache = {"use_cache": False} if "use_cache" in taken else {}
    what = f"{type(model).__name__} could not be run on this input"
    with short_errors(what), torch.inference_mode(), look(model, sites=sites) as sight:
        output = part(**inputs, **cache)
    return sight, output


def look_and_predict(model: Any, inputs: dict[str, Any], sites: Sequence[str] | None) -> tuple[Sight, list[str]]:
    """The sight of one forward pass, and for a classifier a note with its likeliest labels.

    Other models run without their head: attention is the same, and the logits of a long text would take gigabytes.
    """
    if not type(model).__name__.endswith(CLASSIFIERS):
        return run_and_look(model, _without_head(model, inputs), inputs, sites)[0], []
    sight, output = run_and_look(model, model, inputs, sites)
    return sight, [_note(model.config, output.logits[0].float())]


def _without_head(model: Any, inputs: dict[str, Any]) -> Any:
    """The model without its head; the model itself if what it calls its base reads something else (DINOv3)."""
    base = model.base_model
    return base if {*inputs} <= {*inspect.signature(base.forward).parameters} else model


def _note(config: Any, logits: Tensor) -> str:
    """The likeliest labels; the numbers themselves of a model that gives numbers."""
    names = getattr(config, "id2label", None) or {}
    scores = label_scores(vars(config), len(logits), "config.json")
    if scores == "number":
        return f"Prediction: {', '.join(f'{number:.3f}' for number in logits.tolist())}"
    shares = logits.sigmoid() if scores == "sigmoid" else logits.softmax(-1)
    best = shares.topk(min(MOST, len(shares)))
    labels = (
        f"{one_line(str(names.get(place, place)))} ({share:.2f})"
        for share, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    )
    return f"Prediction: {', '.join(labels)}"
