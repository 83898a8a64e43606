"""`foveate export MODEL --out FOLDER`: write a trained model for other libraries."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from foveate import tasks
from foveate.cli.parse import parse
from foveate.errors import UserError
from foveate.files import check_writable
from foveate.interop.pretrained import locate
from foveate.tasks.export.adapter import export_adapter
from foveate.tasks.export.ways import export
from foveate.tasks.recipe import ExportFormat


@dataclass
class Export:
    """Write a trained model for other libraries.

    As a Hugging Face folder, which transformers loads with the same logits: a GPT, GPT-NeoX, Llama or a relative of
    these that writes, or labels or judges texts or words, a BERT, DeBERTa or XLNet that fills in words, gives
    labels or answers questions, a Transformer or T5 that translates, a TrOCR, Donut, ViT-GPT2 or BLIP that writes
    about images, a CLIP or SigLIP, a vision Transformer, Swin, ConvNeXt, ResNet or DETR, or a Whisper, wav2vec 2.0
    or audio spectrogram Transformer that began from such a folder. As an ONNX file: a language model, a BERT or a
    classifier of images; a translator as two. As an adapter of peft: the low-rank updates of a classifier that was
    trained with --lora. As a GGUF file, which llama.cpp reads: a Llama."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a trained model, of foveate's or of Hugging Face's; or a name of trained weights."""
    out: Path
    """Folder to write config.json, model.safetensors and the tokenizer to; model.onnx; model.gguf; or the files of an
    adapter."""
    to: ExportFormat | Literal["peft"] = "hf"
    """The layout: a model of Hugging Face's; an ONNX file, which is tried in onnxruntime; an adapter of the peft
    library; a GGUF file, of a Llama; or a folder of CTranslate2, of a GPT, Llama or translator, whose logits are
    compared."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Export, arguments, "export")
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise UserError(f"{options.out} is there already: name another --out")
    check_writable(options.out)
    if options.to == "peft":
        base = export_adapter(options.folder, options.out)
        print(f"wrote {options.out}; its base is AutoModelForSequenceClassification.from_pretrained('{base}')")
        return
    task: Any = tasks.load(locate(options.folder, lambda line: print(line, file=sys.stderr)))
    print(export(task, options.out, options.to))
