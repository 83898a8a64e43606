"""Looking at a model from disk while it reads one input: a folder of foveate's own, or one of Hugging Face's.

`open_model` finds out what a folder holds; `look` of what it gives runs the model on a text, an image or a sound.
"""

from pathlib import Path

import torch

from foveate import bundle, recipes
from foveate.errors import UserError
from foveate.files import read_json
from foveate.recipes.looking.inputs import read_input
from foveate.recipes.looking.matchers import MatcherViewer
from foveate.recipes.looking.readers import ReaderViewer
from foveate.recipes.looking.translators import TranslatorViewer
from foveate.recipes.matcher import Matcher
from foveate.recipes.translator import Translator
from foveate.sight import look
from foveate.viewer.protocol import File, Input, ModelViewer

Own = TranslatorViewer | MatcherViewer | ReaderViewer

__all__ = ["File", "Input", "ModelViewer", "open_model", "read_input"]


def open_model(folder: Path | str, device: str = "cpu") -> ModelViewer:
    """The model of a folder, ready to be looked at.

    Raises UserError, one line, for what is missing or damaged, and for a model of foveate's own that does not attend.
    """
    folder = Path(folder)
    if not folder.exists():
        raise UserError(
            f"{folder} is no folder; a model is looked at from disk, one from Hugging Face once it is there "
            f"(hf download NAME --local-dir {folder.name})"
        )
    description = read_json(folder / bundle.CONFIG) if (folder / bundle.CONFIG).is_file() else {}
    if "format" not in description and "model_type" in description:
        from foveate.recipes.looking.huggingface import open_folder

        return open_folder(folder, device)
    kind = recipes.trained_class(bundle.load(folder))
    viewers: dict[type, type[Own]] = {Translator: TranslatorViewer, Matcher: MatcherViewer}
    viewer = viewers.get(kind, ReaderViewer)(folder, device)
    model, least = viewer.least()
    with torch.inference_mode(), look(model) as sight:
        model(**least)
    if not sight.sites:
        raise UserError(f"{viewer.name} does not attend: there is nothing to see")
    return viewer
