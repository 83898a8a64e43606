"""One forward pass of a model of transformers that is looked at, and what a classifier predicts in it."""

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from foveate.errors import UserError, one_line
from foveate.interop.huggingface import short_errors
from foveate.interop.layout import label_scores
from foveate.sight import Sight
from foveate.sight.measured_look import OF_AN_ANSWER, Target, measured_look

DECODER_INPUT = "decoder_input_ids"
"""Name of the decoder's input in transformers."""

CLASSIFIERS = (
    *("ForSequenceClassification", "ForImageClassification"),
    *("ForAudioClassification", "ForVideoClassification"),
)
"""The ends of the names of models that give an input one label."""

MOST = 3
"""Labels in the note."""


def run_and_look(
    model: Any,
    part: Any,
    inputs: dict[str, Any],
    sites: Sequence[str] | None,
    measure: str = "weights",
    target: Target | None = None,
) -> tuple[Sight, Any]:
    """The sight and the output of one forward pass of a part of the model, without a cache, with maps of a measure.

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
    with short_errors(what):
        sight, output = measured_look(model, lambda: part(**inputs, **cache), measure, sites, target)
    return sight.sum_points(), output


def look_and_predict(
    model: Any, inputs: dict[str, Any], sites: Sequence[str] | None, measure: str = "weights"
) -> tuple[Sight, list[str]]:
    """The sight of one forward pass, and for a classifier a note with its likeliest labels.

    Other models run without their head, where no measure needs it: attention is the same, and the logits of a long text
    would take gigabytes. Gradients and relevance are those of the likeliest label, or of the likeliest next token.
    """
    if type(model).__name__.endswith(CLASSIFIERS):
        sight, output = run_and_look(model, model, inputs, sites, measure, _best_label)
        return sight, [_note(model.config, output.logits[0].detach().float())]
    if measure in OF_AN_ANSWER and getattr(model, "can_generate", lambda: False)():
        return run_and_look(model, model, inputs, sites, measure, _best_token)[0], []
    return run_and_look(model, _without_head(model, inputs), inputs, sites, measure)[0], []


def _best_label(output: Any) -> Tensor:
    """The log-probability of the likeliest label."""
    return output.logits.float().log_softmax(-1).amax(-1).sum()


def _best_token(output: Any) -> Tensor:
    """The log-probability of the likeliest token after a text."""
    return output.logits[:, -1].float().log_softmax(-1).amax(-1).sum()


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
