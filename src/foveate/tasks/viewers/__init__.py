"""Looks at a model from a folder, foveate's own or Hugging Face's, while it reads one input.

`open_model` returns a viewer for the model in a folder; its `look` runs the model on a text, an image or a sound.
"""

from pathlib import Path

from foveate import run_dir
from foveate.data.tokens.public_tokenizer import TOKENIZER
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.inputs import add_question, read_input
from foveate.interop.diffusion_pipelines import INDEX as PIPELINE
from foveate.interop.huggingface import has_transformers
from foveate.interop.pretrained import PRETRAINED, locate
from foveate.interop.public_folder import MODEL_TYPES, header_of, translates
from foveate.interop.through_transformers import is_ours, writes_about_images
from foveate.tasks import load
from foveate.tasks.loading import hears
from foveate.tasks.viewers.skills import viewer_of
from foveate.viewer.protocol import File, Input, ModelViewer

__all__ = ["File", "Input", "ModelViewer", "add_question", "open_beside", "open_model", "read_input"]

SEEN_AS_OURS = (
    *("xlnet", "deberta-v2"),
    *("wav2vec2", "hubert", "audio-spectrogram-transformer", "deformable_detr", "rt_detr"),
)
"""Types of models of which transformers reads only tokenizers of one kind, of those whose sounds are prepared here, and
of those whose outputs are boxes."""

WITH_PARTS = ("vision-encoder-decoder", "blip")
"""Types of models with parts or heads of which some do, and of which we have some."""

COMPARES = ("clip", "siglip")
"""Types of models that compare images and texts, which are ours where the folder says how texts are read."""

READS_SOUNDS = ("whisper",)
"""Types of models whose input is a sound, which are looked at in transformers where it is installed."""


def open_model(folder: Path | str, device: str = "cpu") -> ModelViewer:
    """The viewer of the model in a folder.

    Raises UserError, one line, if the folder is missing or damaged, and for a model of foveate's that does not attend.
    """
    named = str(folder) in PRETRAINED and not Path(folder).exists()
    folder = locate(folder)
    if (folder / PIPELINE).is_file():
        from foveate.tasks.viewers.diffusion import PipelineViewer

        return PipelineViewer.open(folder, device)
    places = (folder / run_dir.CONFIG, folder / run_dir.UNFINISHED / run_dir.CONFIG)
    description = next((read_json(place) for place in places if place.is_file()), {})
    if "format" not in description and "model_type" in description:
        kind_of = header_of(folder).model_type
        named = named and kind_of not in READS_SOUNDS
        ours = kind_of in SEEN_AS_OURS or translates(folder) or (kind_of in WITH_PARTS and _has_all_parts(folder))
        ours = ours or (kind_of in COMPARES and (folder / TOKENIZER).is_file() and _has_all_parts(folder))
        ours = ours or (has_transformers() and hears(folder) and kind_of not in READS_SOUNDS)
        lacking = kind_of not in MODEL_TYPES or kind_of in WITH_PARTS
        ours = ours or (lacking and has_transformers() and writes_about_images(folder))
        if not (named or ours or (kind_of in MODEL_TYPES and not has_transformers())):
            from foveate.tasks.viewers.huggingface import open_folder

            return open_folder(folder, device)
    return viewer_of(load(folder, device))


def _has_all_parts(folder: Path) -> bool:
    """Whether foveate has a model equal to a folder's."""
    try:
        return is_ours(folder)
    except UserError:
        return False


def open_beside(folder: Path | str, first: ModelViewer, device: str = "cpu") -> ModelViewer:
    """A model to stand beside the first. Raises UserError as `open_model` does, and for another kind of input."""
    other = open_model(folder, device)
    if other.takes != first.takes:
        raise UserError(f"{folder} reads another kind of input ({other.takes}) than the first ({first.takes})")
    return other
