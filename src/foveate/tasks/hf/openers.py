"""What loads a Hugging Face folder of text models: the task is that of the model's head."""

from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.interop.public_folder import layout_of, translates
from foveate.interop.through_transformers import WRITES, WRITES_ANOTHER, head_of_any, is_ours, predicts_next
from foveate.tasks.hf.pooling import embeds_sentences
from foveate.tasks.hf.reader import MASKED
from foveate.tasks.hf.texts import TextFolders

ANSWERS = ("text", "tokens", "pair", "span")
"""The heads that give labels, or a part of the text."""


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
    head, ours = head_of_any(folder), is_ours(folder)
    if head == WRITES_ANOTHER:
        return TranslatorFolder(folder)
    if head == WRITES:
        from foveate.tasks.hf.through_images import ImageTextFolder

        return ImageTextFolder()
    family = layout_of(folder).family if ours else ""
    if embeds_sentences(folder) or head == "none":
        return TextFolders("vector" if family in MASKED else "none")
    if head in ANSWERS:
        return TextFolders(head)
    if not ours:
        return Completer if predicts_next(folder) else WordFiller
    return {**dict.fromkeys(MASKED, WordFiller), "xlnet": XLNetFiller}.get(family, Completer)
