"""Tasks: one page each, which brings data, model, training, decoding and sight together.

The rows say what there is; a page is imported when its task is asked for.
"""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foveate.errors import unknown
from foveate.lazy import import_late

if TYPE_CHECKING:
    from foveate.tasks.loading import load as load
    from foveate.tasks.loading import opener as opener
    from foveate.tasks.loading import predictors as predictors
    from foveate.tasks.loading import train as train

__getattr__ = import_late(__name__, dict.fromkeys(("load", "opener", "train", "predictors"), "foveate.tasks.loading"))


@dataclass(frozen=True)
class Row:
    """Where a task is, and what it trains."""

    module: str
    settings: str
    """The class of its settings: a `foveate.tasks.task.Task`."""
    families: tuple[str, ...]
    """The families of models that can be trained so."""
    head: str | None = None
    """What they predict, where a family's `head` chooses."""


TASKS: dict[str, Row] = {
    "translate": Row(
        "foveate.tasks.translate",
        "Translate",
        ("rnn-seq2seq", "convolutional-seq2seq", "transformer"),
    ),
    "classify": Row(
        "foveate.tasks.classify",
        "Classify",
        ("rnn-encoder", "transformer-encoder", "bert", "gpt"),
        "text",
    ),
    "tag": Row("foveate.tasks.tag", "Tag", ("rnn-encoder", "transformer-encoder", "bert"), "tokens"),
    "embed": Row("foveate.tasks.embed", "Embed", ("bert",), "vector"),
    "match": Row("foveate.tasks.match", "Match", ("siamese",)),
    "pair": Row("foveate.tasks.pair", "Pair", ("bert",), "pair"),
    "autoencode": Row(
        "foveate.tasks.autoencode",
        "Autoencode",
        ("rnn-autoencoder", "hierarchical-autoencoder"),
    ),
    "cloze": Row("foveate.tasks.cloze", "Cloze", ("bert", "xlnet", "elmo")),
    "language": Row("foveate.tasks.language", "Language", ("rnn-language", "gpt"), "words"),
    "ask": Row("foveate.tasks.ask", "Ask", ("attentive-reader",)),
    "answer": Row("foveate.tasks.answer", "AnswerTask", ("show-ask", "smem-vqa")),
    "caption": Row("foveate.tasks.caption", "CaptionTask", ("rnn-captioner", "transformer-captioner")),
    "draw": Row("foveate.tasks.draw", "Draw", ("text-to-image",)),
    "match-image": Row("foveate.tasks.match_image", "MatchImage", ("clip",)),
    "gan": Row("foveate.tasks.gan", "TrainGAN", ("sagan",)),
    "classify-image": Row(
        "foveate.tasks.classify_image",
        "ClassifyImage",
        (
            "resnet",
            "vit",
            "vgg",
            "googlenet",
            "alexnet",
            "zfnet",
            "efficientnet",
            "convnext",
            "cnn",
            "swin",
            "mvit",
            "imagegpt",
        ),
    ),
    "complete-image": Row("foveate.tasks.complete_image", "CompleteImage", ("imagegpt",)),
    "read": Row("foveate.tasks.read", "Read", ("sar",)),
    "walk": Row("foveate.tasks.walk", "Walk", ("walker",)),
    "control": Row("foveate.tasks.control", "Control", ("darqn", "mdarqn")),
    "classify-sound": Row("foveate.tasks.classify_sound", "ClassifySound", ("audio-transformer", "cnn", "resnet")),
    "transcribe": Row("foveate.tasks.transcribe", "Transcribe", ("las", "speech-transformer", "whisper")),
    "speak": Row("foveate.tasks.speak", "Speak", ("transformer",)),
    "reward": Row("foveate.tasks.reward", "TrainReward", ("rnn-encoder", "transformer-encoder"), "text"),
    "dpo": Row("foveate.tasks.dpo", "TrainDPO", ("gpt",)),
    "rlhf": Row("foveate.tasks.rlhf", "TrainRLHF", ("gpt",)),
    "detect": Row("foveate.tasks.detect", "Detect", ("detr",)),
}
"""The row of each task."""


def task_class(task: str) -> Any:
    """The class of a task's settings, by the task's name."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return getattr(importlib.import_module(TASKS[task].module), TASKS[task].settings)
