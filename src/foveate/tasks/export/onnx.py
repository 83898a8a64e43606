"""Trained models as ONNX files: which inputs they are given, and what lies beside the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveate.errors import UserError
from foveate.files import written
from foveate.interop.onnx import Sample, export_onnx
from foveate.nn import longest_sequence
from foveate.tasks.completion.completer import Completer
from foveate.tasks.completion.exporting import as_completer
from foveate.tasks.export.alone import is_alone
from foveate.tasks.export.onnx_translators import ABOUT, translator_to_onnx
from foveate.tasks.hf.fillers import WordFiller
from foveate.tasks.language_model import LanguageModel
from foveate.tasks.skill import Skill
from foveate.tasks.translator import Translator

MODEL = "model.onnx"

ONE_TEXT = ("classify", "embed")
"""Tasks whose models read one text as a whole."""

LONGEST = 48
"""Tokens of the longest text that an exported file is tried with, where the model has as many positions."""


def export_to_onnx(task: Any, out: Path) -> float:
    """Write model.onnx, the tokenizer and onnx.json, which names inputs, output and labels.

    Returns the greatest difference of onnxruntime's logits from PyTorch's. Raises UserError for a model that cannot be
    written so.
    """
    if isinstance(task, Translator):
        return translator_to_onnx(task, out)
    if isinstance(task, LanguageModel):
        task = as_completer(task)
    model = task.model.to("cpu")
    make = _inputs(task)
    sizes = [(3, 31), (1, 1), (2, LONGEST)]
    if (most := longest_sequence(model)) < LONGEST:
        sizes = [(3, max(2, int(most) - 2)), (1, 1), (2, int(most))]
    first, *others = (make(*size) for size in sizes)
    free = {name: {0: "batch"} | ({1: "length"} if name == "tokens" else {}) for name in first}
    out.mkdir(parents=True, exist_ok=True)
    worst = export_onnx(model, Sample(first, free), others, out / MODEL)
    processor = getattr(task, "processor", None)
    places = (task, processor, getattr(processor, "reads", None))
    tokenizer = next((found for place in places if (found := getattr(place, "tokenizer", None))), None)
    if tokenizer is not None:
        with written(out / "tokenizer.json") as path:
            tokenizer.save(path)
    about = {
        "inputs": {
            name: [free[name].get(place, size) for place, size in enumerate(one.shape)] for name, one in first.items()
        },
        "output": "logits",
        "labels": [*(getattr(getattr(processor, "writes", None), "labels", None) or ())],
    }
    with written(out / ABOUT) as path:
        path.write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
    return worst


def _inputs(task: Any) -> Callable[[int, int], dict[str, Tensor]]:
    """What makes random inputs of a model: this many rows of this many tokens, or this many images."""
    random = torch.Generator().manual_seed(1)
    if isinstance(task, Completer) or (is_alone(task) and task.task.name == "language"):
        return lambda rows, length: {"tokens": _tokens(task.model, rows, length, random)}
    if getattr(task, "description", {}).get("family") == "xlnet":
        raise UserError("an XLNet is not written as ONNX: language models, BERTs and classifiers of images are")
    reads_one_text = isinstance(task, Skill) and task.task.name in ONE_TEXT
    fills = isinstance(task, WordFiller) or (is_alone(task) and task.task.name == "cloze")
    if fills or (reads_one_text and task.description["family"] != "rnn-encoder"):
        return lambda rows, length: {
            "tokens": _tokens(task.model, rows, length, random),
            "lengths": torch.randint(1, length + 1, (rows,), generator=random),
        }
    if isinstance(task, Skill) and task.task.name == "classify-image":
        sizes = task.processor.sizes()
        shape = sizes["channels"], sizes["image_size"], sizes["image_size"]
        return lambda rows, length: {"pixels": torch.randn(rows, *shape, generator=random)}
    raise UserError(
        "only language models, translators, BERTs with one text, and classifiers of images are written as ONNX"
    )


def _tokens(model: Any, rows: int, length: int, random: torch.Generator) -> Tensor:
    return torch.randint(4, model.config.vocabulary, (rows, length), generator=random)
