"""`foveate export MODEL --out FOLDER`: write a language model for other libraries."""

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
from foveate.tasks.completion.completer import Completer
from foveate.tasks.completion.exporting import as_completer, export_gguf
from foveate.tasks.export.adapter import export_adapter
from foveate.tasks.export.cloze import export_cloze, fills_in_words
from foveate.tasks.export.image_writers import export_image_writer, writes_about_images
from foveate.tasks.export.images import export_images, exports_images
from foveate.tasks.export.labels import export_labels, gives_labels
from foveate.tasks.export.matchers import compares_images, export_matcher
from foveate.tasks.export.sounds import export_sounds, exports_sounds
from foveate.tasks.export.translators import export_translator, is_translator


@dataclass
class Export:
    """Write a trained model for other libraries.

    As a Hugging Face folder, which transformers loads with the same logits: a GPT, GPT-NeoX, Llama or a relative of
    these, a BERT that labels texts, pairs or words, a GPT that labels texts, a BERT or XLNet that fills in words, a
    Transformer or T5 that translates, a TrOCR, Donut, ViT-GPT2 or BLIP that writes about images, a CLIP or SigLIP, a
    vision Transformer, Swin, ConvNeXt, ResNet or DETR, or a Whisper, wav2vec 2.0 or audio spectrogram Transformer that
    began from such a folder. As an ONNX file: a language model, a BERT or a classifier of images. As an adapter of
    peft: the low-rank updates of a classifier that was trained with --lora. As a GGUF file, which llama.cpp reads: a
    Llama."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a trained model, of foveate's or of Hugging Face's; or a name of trained weights."""
    out: Path
    """Folder to write config.json, model.safetensors and the tokenizer to; model.onnx; model.gguf; or the files of an
    adapter."""
    to: Literal["hf", "onnx", "peft", "gguf", "ctranslate2"] = "hf"
    """The layout: a model of Hugging Face's; an ONNX file, which is tried in onnxruntime; an adapter of the peft
    library; a GGUF file, of a Llama; or a folder of CTranslate2, of a GPT or Llama, whose logits are compared."""


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
    if options.to == "onnx":
        from foveate.tasks.export.onnx import MODEL, export_to_onnx

        worst = export_to_onnx(task, options.out)
        print(f"wrote {options.out / MODEL}; onnxruntime's logits differ from PyTorch's by at most {worst:.1e}")
        return
    if options.to == "ctranslate2":
        from foveate.tasks.export.ctranslate2 import export_to_ctranslate2

        worst = export_to_ctranslate2(task, options.out)
        print(f"wrote {options.out}; CTranslate2's logits differ from PyTorch's by at most {worst:.1e}")
        return
    if options.to == "gguf":
        print(f"wrote {export_gguf(task, options.out)}")
        return
    ways = (
        (gives_labels, export_labels),
        (fills_in_words, export_cloze),
        (exports_images, export_images),
        (compares_images, export_matcher),
        (is_translator, export_translator),
        (exports_sounds, export_sounds),
        (writes_about_images, export_image_writer),
    )
    for belongs, export in ways:
        if belongs(task):
            print(f"wrote {options.out}; try: {export(task, options.out)}.from_pretrained('{options.out}')")
            return
    completer = task if isinstance(task, Completer) else as_completer(task)
    completer.save(options.out)
    print(f"wrote {options.out}; try: AutoModelForCausalLM.from_pretrained('{options.out}')")
