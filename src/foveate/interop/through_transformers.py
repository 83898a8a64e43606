"""Models that foveate has none of, or not with all of their parts: the installed transformers runs them here.

They answer, are measured and looked at; they are not trained here, nor written.
"""

import importlib
import inspect
from pathlib import Path
from typing import Any

import torch

from foveate import run_dir
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.huggingface import has_transformers, import_transformers, load
from foveate.interop.layout import UnlikeOurs, label_names
from foveate.interop.public_folder import (
    MODEL_TYPES,
    PublicModel,
    has_known_head,
    head_of,
    header_of,
    read_folder,
    reads_images,
    unlike_ours,
)
from foveate.interop.transformers_models import (
    TYPES,
    ImageObjects,
    Images,
    ImageTexts,
    ImageVectors,
    QuestionSpans,
    Sequences,
    Sounds,
    Texts,
    ThroughTransformersConfig,
    Vectors,
    Words,
)

WRITES = "writing"
"""The head of a model that writes about an image and a text."""

WRITES_ANOTHER = "another text"
"""That of one that reads a text and writes another."""

HEADS = {
    "ForCausalLM": "words",
    "LMHeadModel": "words",
    "ForMaskedLM": "words",
    "ForSequenceClassification": "text",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "span",
    "ForConditionalGeneration": WRITES_ANOTHER,
    "ForImageClassification": "label",
    "ForObjectDetection": "boxes",
    "ForCTC": "speech",
    "ForAudioClassification": "sound",
    "Model": "none",
}
"""What a class predicts, by the end of its name."""

OF_IMAGES = {"label": "label", "boxes": "boxes", "none": "image"}
OF_SOUNDS = {"speech": "speech", "sound": "sound", "text": "sound"}
"""The same of classes that read images, and that read the samples of sounds."""

READ = {"input_ids": {}, "pixel_values": OF_IMAGES, "input_values": OF_SOUNDS}
"""What the models that run through transformers read, by its name there, and what their heads predict."""

LENGTHS = ("max_encoder_position_embeddings", "max_position_embeddings")
"""What configs call the number of positions."""

MODELS = {
    "words": Words,
    "text": Texts,
    "tokens": Words,
    "span": QuestionSpans,
    "none": Vectors,
    "label": Images,
    "boxes": ImageObjects,
    "image": ImageVectors,
    "speech": Sounds,
    "sound": Sounds,
    WRITES_ANOTHER: Sequences,
    WRITES: ImageTexts,
}
"""What runs the models of each head."""

WITHOUT_LABELS = (WRITES, WRITES_ANOTHER, "words", "none", "span", "image", "speech")
"""Heads that need no names."""

OTHER_WRITERS = ("VisionEncoderDecoderModel",)
"""Classes of such models beside those that `AutoModelForImageTextToText` opens."""

IN_AN_ORDER = ("XLNetLMHeadModel",)
"""Classes that predict a word in its own place, which they are told not to see: no task of ours tells them."""

OF_STREAMS = ("ProphetNetForConditionalGeneration",)
"""Classes whose decoder has a stream for each of several next tokens, with positions of its own."""

CAUSAL = ("ForCausalLM", "LMHeadModel")
"""The ends of the names of classes that predict the next word."""


def named_class(folder: Path) -> str:
    """The class of transformers that a folder names; empty where it names none."""
    named = header_of(folder).architectures
    return named[0] if named else ""


def head_through_transformers(folder: Path) -> str:
    """What the model of a folder predicts, by the name of its class. UserError for a class that no task of ours has."""
    name = named_class(folder)
    if name in OTHER_WRITERS or name in image_writers():
        return WRITES
    found = next((head for end, head in HEADS.items() if name.endswith(end)), None)
    if found is None:
        ends = ", ".join(f"...{end}" for end in HEADS)
        raise UserError(f"{folder} is a {name or 'model without a class'}; foveate runs {ends} through transformers")
    return _head_for(folder, name, found)


def _head_for(folder: Path, name: str, head: str) -> str:
    """What a class predicts from the input that it has. Raises UserError where no task of ours reads that."""
    kind = getattr(import_transformers(), name, None)
    if kind is None:  # which is said where it is opened
        return head
    given, taken = getattr(kind, "main_input_name", "input_ids"), inspect.signature(kind.forward).parameters
    reads = READ.get(given)
    known = reads is not None and (head in reads if reads else head not in ("label", "boxes", "speech", "sound"))
    if not known or (given == "pixel_values" and "input_ids" in taken):
        also = " and a text" if "input_ids" in taken and given != "input_ids" else ""
        raise UserError(f"{folder} is a {name}, which reads '{given}'{also}; foveate has no task for such a model")
    if head == WRITES_ANOTHER and name not in text_writers():
        raise UserError(f"{folder} is a {name}, which writes no text; foveate has no task for such a model")
    if name in OF_STREAMS:
        raise UserError(f"{folder} is a {name}, whose decoder predicts several tokens at once; foveate runs none")
    return reads.get(head, head) if reads is not None else head


def text_writers() -> set[str]:
    """The classes that the installed transformers opens as `AutoModelForSeq2SeqLM`."""
    names = importlib.import_module("transformers.models.auto.modeling_auto")
    return {*names.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values()}


def writes_about_images(folder: Path) -> bool:
    """Whether transformers has a model that writes about an image and a text."""
    return named_class(folder) in image_writers()


def image_writers() -> set[str]:
    """The classes that the installed transformers opens as `AutoModelForImageTextToText`."""
    import_transformers()
    names = importlib.import_module("transformers.models.auto.modeling_auto")
    return {*names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()}


def predicts_next(folder: Path) -> bool:
    """Whether the model of a folder predicts the next word, not one in a blank."""
    return named_class(folder).endswith(CAUSAL)


def read_through_transformers(folder: Path) -> PublicModel:
    """The model of a folder. Raises UserError where transformers is not installed, or cannot open it."""
    head, values = head_through_transformers(folder), read_json(folder / run_dir.CONFIG)
    theirs: Any = load(folder, torch.device("cpu"), whole=header_of(folder).model_type in MODEL_TYPES)
    own = theirs.config.get_text_config() if hasattr(theirs.config, "get_text_config") else theirs.config
    size = int(getattr(own, "vocab_size", 0) or 0)
    config = ThroughTransformersConfig(
        model_type=str(theirs.config.model_type),
        head=head,
        vocabulary=size,
        classes=0 if head in WITHOUT_LABELS else len(label_names(values, str(folder / run_dir.CONFIG))),
        max_length=_positions(theirs, own),
        image_size=_side(getattr(own, "image_size", 224)),
        image_sides=_sides(getattr(own, "image_size", None)),
        channels=int(getattr(own, "num_channels", 3) or 3),
        token_types=_token_types(theirs, own),
        src_vocab=size,
        tgt_vocab=size,
    )
    return PublicModel(config.model_type, MODELS[head](theirs, config).eval(), values)


def _positions(theirs: Any, config: Any) -> int:
    """How many tokens a model reads: its positions without those up to the padding's, from which RoBERTa and its kin
    count on."""
    positions = next((found for name in LENGTHS if (found := getattr(config, name, 0))), 1_000_000)
    tables = [part for name, part in theirs.named_modules() if "position" in name.rpartition(".")[2]]
    paddings = [part.padding_idx for part in tables if isinstance(part, torch.nn.Embedding)]
    return int(positions - max((padding + 1 for padding in paddings if padding is not None), default=0))


def _token_types(theirs: Any, config: Any) -> int:
    """How many types of tokens a model is told; 0 for one that is told none."""
    told = TYPES in inspect.signature(theirs.forward).parameters
    return int(getattr(config, "type_vocab_size", 0) or 0) if told else 0


def _sides(size: Any) -> tuple[int, int] | None:
    several = isinstance(size, list | tuple) and len(size) == 2 and size[0] != size[1]
    return (int(size[0]), int(size[1])) if several else None


def _side(size: Any) -> int:
    return int(max(size) if isinstance(size, list | tuple) else size or 224)


def is_ours(folder: Path) -> bool:
    """Whether foveate has a model equal to a folder's, with its head and all parts that its config says; or has to
    refuse it, as one without a config, or with parts that nobody here runs."""
    if not (folder / run_dir.CONFIG).is_file():
        return True
    kind = header_of(folder).model_type
    if kind not in MODEL_TYPES or not has_known_head(folder):
        return False
    return unlike_ours(folder) is None or not _runs_instead(folder)


def _runs_instead(folder: Path) -> bool:
    """Whether a folder of a type that we have, but unlike ours, runs through transformers: if it reads texts, labels
    images or finds objects in them, or writes about them."""
    if reads_images(header_of(folder).model_type):
        labels = named_class(folder).endswith(("ForImageClassification", "ForObjectDetection"))
        return labels or writes_about_images(folder)
    name = named_class(folder)
    return name not in IN_AN_ORDER and any(name.endswith(end) for end in HEADS)


def read_any(folder: Path) -> PublicModel:
    """The model of a folder: ours where we have one, otherwise through transformers. Raises UserError, one line: of a
    model that is almost ours, what is unlike it."""
    if is_ours(folder) or not has_transformers():
        try:
            return read_folder(folder)
        except UnlikeOurs:  # by the tensors of its file, which the config does not tell
            if not (has_transformers() and _runs_instead(folder)):
                raise
    try:
        return read_through_transformers(folder)
    except UserError:
        if header_of(folder).model_type in MODEL_TYPES and (reason := unlike_ours(folder)) is not None:
            raise reason from None
        raise


def head_of_any(folder: Path) -> str:
    """What the model of a folder predicts. Raises UserError, one line, for one that no task of ours has."""
    return head_of(folder) if is_ours(folder) or not has_transformers() else head_through_transformers(folder)
