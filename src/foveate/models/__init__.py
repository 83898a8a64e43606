"""The models, by family and preset: one file per family, one line per family here.

`create` builds any preset; `build` makes a model from a family's name and config, as a saved folder has them.
"""

import importlib
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

import torch
from torch import nn

from foveate.config import FromData, from_dict
from foveate.errors import UserError, at_least, check_literals, out_of_memory, unknown

FAMILIES = {
    "alexnet": "foveate.models.vision.alexnet",
    "audio-transformer": "foveate.models.speech.audio_transformer",
    "bert": "foveate.models.text.bert",
    "cnn": "foveate.models.vision.cnn",
    "convnext": "foveate.models.vision.convnext",
    "convolutional-seq2seq": "foveate.models.text.convolutional_seq2seq",
    "darqn": "foveate.models.multimodal.darqn",
    "detr": "foveate.models.vision.detr",
    "efficientnet": "foveate.models.vision.efficientnet",
    "googlenet": "foveate.models.vision.googlenet",
    "elmo": "foveate.models.text.elmo",
    "gpt": "foveate.models.text.gpt",
    "gpt-neox": "foveate.models.text.gpt_neox",
    "hierarchical-autoencoder": "foveate.models.text.hierarchical_autoencoder",
    "imagegpt": "foveate.models.vision.imagegpt",
    "las": "foveate.models.speech.las",
    "llama": "foveate.models.text.llama",
    "mvit": "foveate.models.vision.mvit",
    "resnet": "foveate.models.vision.resnet",
    "rnn-autoencoder": "foveate.models.text.rnn_autoencoder",
    "rnn-captioner": "foveate.models.multimodal.rnn_captioner",
    "rnn-classifier": "foveate.models.text.rnn_classifier",
    "rnn-language": "foveate.models.text.rnn_language",
    "rnn-seq2seq": "foveate.models.text.rnn_seq2seq",
    "rnn-tagger": "foveate.models.text.rnn_tagger",
    "sar": "foveate.models.multimodal.sar",
    "show-ask": "foveate.models.multimodal.show_ask",
    "siamese": "foveate.models.text.siamese",
    "speech-transformer": "foveate.models.speech.speech_transformer",
    "swin": "foveate.models.vision.swin",
    "transformer": "foveate.models.text.transformer",
    "transformer-captioner": "foveate.models.multimodal.transformer_captioner",
    "transformer-classifier": "foveate.models.text.transformer_classifier",
    "transformer-tagger": "foveate.models.text.transformer_tagger",
    "vgg": "foveate.models.vision.vgg",
    "vit": "foveate.models.vision.vit",
    "walker": "foveate.models.multimodal.walker",
    "xlnet": "foveate.models.text.xlnet",
    "zfnet": "foveate.models.vision.zfnet",
}
"""Each family's module. It has a MODEL, its CONFIG, and PRESETS, by name: a summary, the fields that it sets and,
where they are others than the task's, the settings of training that suit it."""


@dataclass(frozen=True)
class Preset:
    """A named configuration of a family; sizes that depend on data, such as a vocabulary's, are left open."""

    name: str
    family: str
    values: dict[str, Any]
    summary: str
    training: dict[str, Any]
    """Settings that it is best trained with, where they are others than its task's."""


def presets() -> dict[str, Preset]:
    """All presets by name."""
    return {
        name: Preset(name, family, dict(values), summary, dict(*training))
        for family, module in FAMILIES.items()
        for name, (summary, values, *training) in importlib.import_module(module).PRESETS.items()
    }


def preset(name: str) -> Preset:
    """A preset by its name; UserError with the nearest names if there is none."""
    known = presets()
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def config_class(family: str) -> type[Any]:
    """The dataclass that configures a family."""
    return _module(family).CONFIG


def sizes_of_data(family: str, required: bool = False) -> list[str]:
    """The names of a family's fields that the data decides, such as a vocabulary's size; only those without a default
    if they must be `required`."""
    config = config_class(family)
    kinds = get_type_hints(config, include_extras=True)
    defaults = {part.name for part in fields(config) if part.default is not MISSING}
    return [name for name, kind in kinds.items() if kind == FromData and not (required and name in defaults)]


def build(family: str, config: Any) -> nn.Module:
    """A model of a family, with random weights.

    UserError for sizes that cannot be, do not fit together, or take more memory than there is.
    """
    module = _module(family)
    _check(config)
    try:
        return module.MODEL(config)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        raise UserError(f"a {family} of these sizes takes more memory than this machine has") from None


_MOST, _MOST_LAYERS = 2**31, 10_000
"""No size of a model is larger, and none has more layers: each takes memory before it has any weight."""


def create(name: str, device: torch.device | str | None = None, **values: Any) -> nn.Module:
    """A preset's model with random weights; `values` fill or replace fields of its config.

    On `device="meta"` it has shapes and no memory. UserError for an unknown preset or field, and as `build`.
    """
    chosen = preset(name)
    kind = config_class(chosen.family)
    config = from_dict(kind, {**chosen.values, **values}, name)
    with torch.device(device or torch.get_default_device()):
        return build(chosen.family, config)


def _check(config: Any) -> None:
    """What holds for the fields of all families: a size is at least 1, what is dropped is a share."""
    check_literals(config)
    for part in fields(config):
        value = getattr(config, part.name)
        most = _MOST_LAYERS if part.name.endswith(("layers", "blocks")) else _MOST
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is int:
                at_least(1, part.name, number)
                if number > most:
                    raise UserError(f"{part.name} is {number:,}, but no model has more than {most:,}")
        if part.name.endswith("dropout") and value is not None and not 0 <= value < 1:
            raise UserError(f"{part.name} is {value}, but must be at least 0 and below 1")


def _module(family: str) -> Any:
    if family not in FAMILIES:
        raise unknown("family of models", family, FAMILIES)
    return importlib.import_module(FAMILIES[family])
