"""What loads a Hugging Face folder of text models: the task is that of the model's head."""

from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.errors import UserError
from foveate.interop.public_folder import head_of, header_of, layout_of
from foveate.tasks.hf.pooling import embeds_sentences
from foveate.tasks.hf.texts import TextFolders

LABELS = ("text", "tokens", "pair")
"""The heads that give labels."""


def bert_opener(folder: Path) -> Any:
    """What loads the model of a folder: words are filled in, texts, words or pairs get labels or, without a head, texts
    vectors.

    Raises UserError for another head.
    """
    from foveate.tasks.hf.fillers import WordFiller

    if embeds_sentences(folder):
        return TextFolders("vector")
    (name, *_) = header_of(folder).architectures or ("BertModel",)
    kinds = {
        "Model": TextFolders("vector"),
        "ForMaskedLM": WordFiller,
        "ForPreTraining": WordFiller,
        "ForSequenceClassification": TextFolders("text"),
        "ForTokenClassification": TextFolders("tokens"),
        "ForNextSentencePrediction": TextFolders("pair"),
    }
    kind = name.removeprefix("Roberta").removeprefix("Bert")
    if kind not in kinds:
        raise UserError(f"{folder} is a {name}; foveate runs a BERT or RoBERTa {', '.join(kinds)}")
    return kinds[kind]


def opener(folder: Path) -> Any:
    """What loads a folder of a GPT, GPT-NeoX, Llama or XLNet: words are predicted, or labels given."""
    from foveate.tasks.completion.completer import Completer

    if not (folder / run_dir.CONFIG).is_file():
        return Completer
    if (head := head_of(folder)) in LABELS:
        return TextFolders(head)
    if layout_of(folder).family == "xlnet":
        from foveate.tasks.hf.fillers import XLNetFiller

        return TextFolders("none") if head == "none" else XLNetFiller
    return Completer
