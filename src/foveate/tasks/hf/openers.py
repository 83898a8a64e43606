"""What loads a Hugging Face folder of text models: the task is that of the model's head."""

from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.interop.public_folder import head_of, layout_of, translates
from foveate.tasks.hf.pooling import embeds_sentences
from foveate.tasks.hf.texts import TextFolders

LABELS = ("text", "tokens", "pair")
"""The heads that give labels."""


def opener(folder: Path) -> Any:
    """What loads a folder, by what its model predicts: words to fill in or to go on with, or labels; without a head,
    texts get vectors."""
    from foveate.tasks.completion.completer import Completer
    from foveate.tasks.hf.fillers import WordFiller, XLNetFiller
    from foveate.tasks.hf.translators import TranslatorFolder

    if not (folder / run_dir.CONFIG).is_file():
        return Completer
    if translates(folder):
        return TranslatorFolder(folder)
    head, family = head_of(folder), layout_of(folder).family
    if embeds_sentences(folder) or head == "none":
        return TextFolders("vector" if family == "bert" else "none")
    if head in LABELS:
        return TextFolders(head)
    return {"bert": WordFiller, "xlnet": XLNetFiller}.get(family, Completer)
