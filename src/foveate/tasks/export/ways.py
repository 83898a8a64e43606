"""The ways in which a model is written for other libraries, each by its name."""

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from foveate.errors import UserError, one_of
from foveate.files import workshop
from foveate.interop.transformers_models import ThroughTransformers
from foveate.nn import merge_low_rank
from foveate.tasks.completion.exporting import export_gguf, export_language_model, writes_words
from foveate.tasks.export.alone import export_alone, is_alone
from foveate.tasks.export.cloze import export_cloze, fills_in_words
from foveate.tasks.export.ctranslate2 import export_to_ctranslate2
from foveate.tasks.export.image_writers import export_image_writer, writes_about_images
from foveate.tasks.export.images import export_images, exports_images
from foveate.tasks.export.labels import export_labels, gives_labels
from foveate.tasks.export.matchers import compares_images, export_matcher
from foveate.tasks.export.onnx import MODEL, export_to_onnx
from foveate.tasks.export.sounds import export_sounds, exports_sounds
from foveate.tasks.export.translators import export_translator, is_translator
from foveate.tasks.recipe import ExportFormat

EXPORTS = "export"
"""The folder of a run with what was written of it for other libraries, each in a folder of the way's name."""

NEED_TOKENIZER: tuple[ExportFormat, ...] = ("gguf", "ctranslate2")
"""The ways that write the pieces of a tokenizer too."""

FOLDERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Path], str]], ...] = (
    (is_alone, export_alone),
    (gives_labels, export_labels),
    (fills_in_words, export_cloze),
    (exports_images, export_images),
    (compares_images, export_matcher),
    (is_translator, export_translator),
    (exports_sounds, export_sounds),
    (writes_about_images, export_image_writer),
    (writes_words, export_language_model),
)
"""Which models each function writes as a Hugging Face folder; it returns the class that opens it."""


def export(skill: Any, out: Path, way: ExportFormat) -> str:
    """Write a model in use; a line that says what was written.

    Raises UserError, before anything is left in `out`, for a model that cannot be written so.
    """
    one_of("export", way, WAYS)
    if isinstance(skill.model, ThroughTransformers):
        raise UserError("transformers runs this model, of which foveate has none to write: copy its folder")
    if is_alone(skill) and way in NEED_TOKENIZER:
        raise UserError(f"{skill.lacks}, which is a part of what --to {way} writes")
    return WAYS[way](skill, out)


def try_export(skill: Any, way: ExportFormat) -> None:
    """Write a model as it is before its training, and remove that.

    Raises UserError where the trained model could not be written so.
    """
    tried = copy.copy(skill)
    tried.model = copy.deepcopy(skill.model)
    merge_low_rank(tried.model)
    tried.model.eval()
    with workshop(Path(tempfile.gettempdir())) as folder:
        export(tried, folder / way, way)


def export_run(skill: Any, run: Path, way: ExportFormat) -> str:
    """Write a trained model into its run folder, in the place of what was written so before."""
    place = run / EXPORTS / way
    place.parent.mkdir(exist_ok=True)
    with workshop(place.parent) as temporary:
        line = export(skill, temporary / way, way)
        shutil.rmtree(place, ignore_errors=True)
        (temporary / way).rename(place)
    return line.replace(str(temporary / way), str(place))


def _folder(skill: Any, out: Path) -> str:
    for belongs, write in FOLDERS:
        if belongs(skill):
            return f"wrote {out}; try: {write(skill, out)}.from_pretrained('{out}')"
    raise UserError(f"transformers has no class for the models of `{skill.task.name}`: they are not exported")


def _onnx(skill: Any, out: Path) -> str:
    worst = export_to_onnx(skill, out)
    return f"wrote {out / MODEL}; onnxruntime's logits differ from PyTorch's by at most {worst:.1e}"


def _ctranslate2(skill: Any, out: Path) -> str:
    worst = export_to_ctranslate2(skill, out)
    return f"wrote {out}; CTranslate2's logits differ from PyTorch's by at most {worst:.1e}"


def _gguf(skill: Any, out: Path) -> str:
    return f"wrote {export_gguf(skill, out)}"


WAYS: Mapping[str, Callable[[Any, Path], str]] = {
    "hf": _folder,
    "onnx": _onnx,
    "gguf": _gguf,
    "ctranslate2": _ctranslate2,
}
assert {*WAYS} == {*get_args(ExportFormat)}
