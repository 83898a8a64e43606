"""Hugging Face folders as models of ours: read without transformers, and written so that transformers reads them."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.files import read_json, written
from foveate.interop.key_map import KeyMap
from foveate.interop.layout import Layout, UnlikeOurs, label_names, require_public
from foveate.interop.timm_config import as_transformers, is_timm
from foveate.interop.weight_files import WHOLE, refuse_adapters, weight_files
from foveate.models.text.causal_language_model import CausalLanguageModelConfig
from foveate.nn import skip_init, without_memory
from foveate.tensor_files import read_names, read_tensors

MODEL_TYPES = {
    "bert": "foveate.interop.keys.bert",
    "roberta": "foveate.interop.keys.bert",
    "xlm-roberta": "foveate.interop.keys.bert",
    "camembert": "foveate.interop.keys.bert",
    "distilbert": "foveate.interop.keys.bert",
    "electra": "foveate.interop.keys.bert",
    "mpnet": "foveate.interop.keys.bert",
    "modernbert": "foveate.interop.keys.modernbert",
    "deberta": "foveate.interop.keys.deberta",
    "deberta-v2": "foveate.interop.keys.deberta",
    "gpt2": "foveate.interop.keys.gpt",
    "openai-gpt": "foveate.interop.keys.gpt",
    "gpt_neox": "foveate.interop.keys.gpt_neox",
    "llama": "foveate.interop.keys.llama",
    "mistral": "foveate.interop.keys.mistral",
    "qwen2": "foveate.interop.keys.qwen2",
    "qwen3": "foveate.interop.keys.qwen3",
    "smollm3": "foveate.interop.keys.smollm3",
    "gemma2": "foveate.interop.keys.gemma2",
    "olmo2": "foveate.interop.keys.olmo2",
    "phi3": "foveate.interop.keys.phi3",
    "gptj": "foveate.interop.keys.gpt_j",
    "opt": "foveate.interop.keys.opt",
    "whisper": "foveate.interop.keys.whisper",
    "wav2vec2": "foveate.interop.keys.wav2vec2",
    "hubert": "foveate.interop.keys.wav2vec2:HUBERT",
    "audio-spectrogram-transformer": "foveate.interop.keys.audio_transformer",
    "xlnet": "foveate.interop.keys.xlnet",
    "marian": "foveate.interop.keys.bart",
    "bart": "foveate.interop.keys.bart",
    "mbart": "foveate.interop.keys.bart",
    "pegasus": "foveate.interop.keys.bart",
    "m2m_100": "foveate.interop.keys.bart",
    "t5": "foveate.interop.keys.t5",
    "mt5": "foveate.interop.keys.t5",
    "vit": "foveate.interop.keys.vit",
    "deit": "foveate.interop.keys.deit",
    "beit": "foveate.interop.keys.beit",
    "dinov2": "foveate.interop.keys.dinov2",
    "dinov2_with_registers": "foveate.interop.keys.dinov2",
    "dinov3_vit": "foveate.interop.keys.dinov3",
    "swin": "foveate.interop.keys.swin",
    "swinv2": "foveate.interop.keys.swin",
    "convnextv2": "foveate.interop.keys.convnext",
    "convnext": "foveate.interop.keys.convnext",
    "resnet": "foveate.interop.keys.resnet",
    "clip": "foveate.interop.keys.clip",
    "siglip": "foveate.interop.keys.clip",
    "vision-encoder-decoder": "foveate.interop.keys.vision_encoder_decoder",
    "blip": "foveate.interop.keys.blip",
    "detr": "foveate.interop.keys.detr",
    "conditional_detr": "foveate.interop.keys.conditional_detr",
    "deformable_detr": "foveate.interop.keys.deformable_detr",
    "rt_detr": "foveate.interop.keys.rt_detr",
    "efficientnet": "foveate.interop.keys.efficientnet",
    "timm_vit": "foveate.interop.keys.vit:TIMM",
    "timm_swin": "foveate.interop.keys.swin:TIMM",
    "timm_convnext": "foveate.interop.keys.convnext:TIMM",
    "timm_resnet": "foveate.interop.keys.resnet:TIMM",
    "timm_mvit": "foveate.interop.keys.mvit:TIMM",
    "timm_efficientnet": "foveate.interop.keys.efficientnet:TIMM",
}
"""The module with the LAYOUT of each "model_type" that our models are equal to; in one with several, its name."""


def layout_at(place: str) -> Layout:
    """The layout that a row of MODEL_TYPES names."""
    module, _, name = place.partition(":")
    found: Layout = getattr(importlib.import_module(module), name or "LAYOUT")
    return found


COUNTER = ".num_batches_tracked"
"""What the names of tensors end with that batch norms count steps in; files of fixed norms lack them."""


@dataclass(frozen=True)
class PublicHeader:
    """The fields that the `config.json` of every model of transformers may have."""

    model_type: str | None = None
    architectures: tuple[str, ...] | None = None
    """Names of classes, of which the first is the model's."""
    bos_token_id: int | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    """The tokens that end a text."""


@dataclass
class PublicModel:
    """The model of a folder, in evaluation mode on the CPU."""

    family: str
    model: nn.Module
    values: dict[str, Any]
    """What `config.json` holds."""


def is_public(folder: Path) -> bool:
    """Returns whether a folder has a `config.json` of transformers or of timm, not of foveate."""
    if not (folder / run_dir.CONFIG).is_file():
        return (folder / "adapter_config.json").is_file()
    values = read_json(folder / run_dir.CONFIG)
    return "format" not in values and ("model_type" in values or is_timm(values))


def read_values(folder: Path) -> dict[str, Any]:
    """What the `config.json` of a public folder holds; that of timm has the fields of transformers besides."""
    where = folder / run_dir.CONFIG
    values = read_json(where)
    return as_transformers(values, str(where)) if is_timm(values) else values


def header_of(folder: Path) -> PublicHeader:
    """Reads what a public folder says of itself; nothing without a `config.json`, as for an adapter alone.

    Raises UserError where a value has another type.
    """
    where = folder / run_dir.CONFIG
    return from_dict(PublicHeader, read_values(folder) if where.is_file() else {}, str(where), others=True)


def layout_of(folder: Path, any_head: bool = False) -> Layout:
    """The layout of a folder's model. UserError where we have no equal model, or not with its head."""
    if not (folder / run_dir.CONFIG).is_file():
        refuse_adapters(folder)
    header = header_of(folder)
    kind = header.model_type
    if kind not in MODEL_TYPES:
        raise UserError(
            f"{folder} holds a model of the type '{kind}'; foveate runs {', '.join(MODEL_TYPES)} "
            "(`foveate look` opens others with transformers)"
        )
    layout = layout_at(MODEL_TYPES[kind])
    wrong = [name for name in header.architectures or () if name not in layout.architectures]
    if wrong and not (any_head and layout.heads):
        begin = wrong[0].partition("For")[0].removesuffix("Model")
        known = [name for name in layout.architectures if name.startswith(begin)] or layout.architectures
        raise UserError(f"{folder} is a {wrong[0]}; foveate runs {', '.join(known)}")
    return layout


def reads_images(kind: Any) -> bool:
    """Returns whether a "model_type" is one of models of images."""
    return kind in MODEL_TYPES and bool(layout_at(MODEL_TYPES[kind]).image_processor)


def reads_sounds(kind: Any) -> bool:
    """Returns whether a "model_type" is one of models of sounds."""
    return kind in MODEL_TYPES and bool(layout_at(MODEL_TYPES[kind]).feature_extractor)


def translates(folder: Path) -> bool:
    """Returns whether a folder has an encoder-decoder of ours: it reads a text and writes another."""
    kind, named = header_of(folder).model_type, header_of(folder).architectures or ()
    if kind not in MODEL_TYPES:
        return False
    layout = layout_at(MODEL_TYPES[kind])
    return "tgt_vocab" in models.sizes_of_data(layout.family) and {*named} <= layout.architectures.keys()


def head_of(folder: Path) -> str:
    """Returns what the model in a folder predicts: "words", a label of the "text", of a "pair" of texts or of each of
    its "tokens", a "label" of an image, "boxes" in it, how well a text does "match" it, or "none"."""
    layout, named = layout_of(folder), header_of(folder).architectures
    head = layout.architectures[named[0] if named else next(iter(layout.architectures))]
    return "none" if head == "words" and named and _is_bare(folder, layout, named[0]) else head


def _is_bare(folder: Path, layout: Layout, kind: str) -> bool:
    """Whether a folder holds a causal model without the layer that makes words: its class has none, and the config does
    not tie one to the embeddings."""
    if not kind.endswith("Model") or kind.endswith("LMHeadModel"):
        return False
    config = layout.read_config(read_values(folder), str(folder / run_dir.CONFIG))
    if not isinstance(config, CausalLanguageModelConfig):
        return False
    key_map = layout.key_map(config)
    output = f"{key_map.names['output']}."
    tensors = (name for file in weight_files(folder) for name in read_names(file))
    return not any(name.startswith(output) for name in (*key_map.tied, *tensors))


def layout_for(family: str, config: Any = None) -> Layout:
    """The public layout of a family of ours; of several the first that can hold a `config`. UserError where there is
    none."""
    layouts = [layout_at(place) for place in dict.fromkeys(MODEL_TYPES.values())]
    own = [layout for layout in layouts if layout.family == family]
    if not own:
        raise UserError(f"transformers has no model like a {family}: it has no public layout to write")
    if config is None:
        return own[0]
    require_public(config, f"the {family} of transformers")
    own = [layout for layout in own if layout.holds(config)] or own
    return next((layout for layout in own if _holds(layout, config)), own[0])


def _holds(layout: Layout, config: Any) -> bool:
    try:
        layout.write_config(config)
    except UserError:
        return False
    return True


def check_tokenizer(largest: int, model: Any) -> None:
    """Raise UserError for a tokenizer with a token, by its largest id, that a model has no embedding for."""
    if largest >= (entries := model.config.vocabulary):
        raise UserError(
            f"the tokenizer has a token {largest:,}, but the model embeddings for {entries:,} only: "
            "probably they are of two different models"
        )


def has_known_head(folder: Path) -> bool:
    """Returns whether our model of a folder's family has its head and all of its parts."""
    layout = layout_of(folder, any_head=True)
    named = header_of(folder).architectures or ()
    return all(name in layout.architectures for name in named) and layout.reads(read_values(folder))


def unlike_ours(folder: Path) -> UnlikeOurs | None:
    """What the config of a folder has and our model of its type has not; None where all is known, or cannot be."""
    values = read_values(folder)
    if values["model_type"].startswith("timm_"):
        return None
    try:
        layout_at(MODEL_TYPES[values["model_type"]]).read_config(values, str(folder / run_dir.CONFIG))
    except UnlikeOurs as reason:
        return reason
    except UserError:
        return None
    return None


def read_config(folder: Path, body: bool = False) -> tuple[Layout, Any]:
    """The layout of a folder's model, and our config of it, with its head or of its `body` alone; no weights are read.

    Raises UserError, one line, for what is missing, damaged or unknown.
    """
    layout = layout_of(folder, any_head=body)
    where = folder / run_dir.CONFIG
    values = read_values(folder)
    if values["model_type"].startswith("timm_"):  # whose config.json leaves sizes to the tensors
        tensors = (read_tensors(file).tensors for file in weight_files(folder))
        values["tensors"] = {name: tuple(value.shape) for part in tensors for name, value in part.items()}
    config = layout.read_config(values, str(where))
    if (head := "none" if body and layout.heads else head_of(folder)) != "words":
        config.classes = len(label_names(values, str(where)))
        if hasattr(config, "head"):
            config.head = head
        if hasattr(config, "label_bias"):
            config.label_bias = head == "tokens"
    return layout, config


def read_folder(folder: Path, body: bool = False) -> PublicModel:
    """The model in a folder, with its head; or its `body` alone, whichever head it has.

    Raises UserError, one line, for whatever is missing, damaged or unknown.
    """
    layout, config = read_config(folder, body)
    files = weight_files(folder)
    tensors = {name: value for file in files for name, value in read_tensors(file).tensors.items()}
    aliases = layout.aliases(config)
    given = {_rename(name, aliases): value for name, value in tensors.items()}
    if getattr(config, "head", None) == "none":
        given = {
            name: value for name, value in given.items() if not any(fnmatchcase(name, one) for one in layout.heads)
        }
    given = dict(layout.settle(config, given))
    key_map = _key_map(layout, config, given, folder)
    state = key_map.complete(given)
    with without_memory():
        empty = models.build(layout.family, config)
    wanted = key_map.to_public(empty.state_dict())
    counters = (name for name in wanted if name.endswith(COUNTER))
    state |= {name: torch.zeros((), dtype=torch.long) for name in counters if name not in state}
    _check(state, wanted, key_map, folder)
    with skip_init(), torch.device("cpu"):
        model = models.build(layout.family, config)
    model.load_state_dict(key_map.to_ours(state))
    return PublicModel(layout.family, model.eval(), read_values(folder))


def _key_map(layout: Layout, config: Any, given: Mapping[str, Tensor], folder: Path) -> KeyMap:
    """The table of tensors. A file whose output matrix is another than the embeddings unties them in the config, or is
    refused where our models cannot have both."""
    key_map = layout.key_map(config)
    if key_map.untied(key_map.complete(given)) and getattr(config, "tie", False):
        config.tie = False
        key_map = layout.key_map(config)
    if own := key_map.untied(key_map.complete(given)):
        other = key_map.tied[own[0]]
        raise UserError(f"{folder}: '{own[0]}' differs from '{other}', but a {layout.family} has one for both")
    return key_map


def _rename(name: str, aliases: Mapping[str, str]) -> str:
    """The name of a tensor, whose module or parameter may have another one in the table."""
    module, dot, leaf = name.rpartition(".")
    return f"{aliases.get(module, module)}{dot}{aliases.get(leaf, leaf)}"


def write_folder(folder: Path, family: str, model: nn.Module, more: Mapping[str, Any]) -> None:
    """Write a model of ours as transformers does; `more` are further fields of its `config.json`.

    Raises UserError for a model that the public layout cannot hold.
    """
    values, state = public_tensors(family, model)
    write_tensors(folder, state, {**values, **more, "torch_dtype": "float32"})


def public_tensors(family: str, model: nn.Module) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
    """The `config.json` and the tensors of a model of ours as transformers has them.

    Raises UserError for a model that the public layout cannot hold.
    """
    config = model.config
    layout = layout_for(family, config)
    values = layout.write_config(config)
    key_map = layout.key_map(config)
    public = key_map.to_public(model.state_dict())
    state = {name: value for name, value in public.items() if name not in key_map.tied}
    if not getattr(config, "tie", True):  # then transformers ties nothing, not even two names of one bias
        state |= {copy: public[name].clone() for copy, name in key_map.tied.items()}
    return values, state


def write_tensors(folder: Path, state: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors and the `config.json` of a public folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with written(folder / WHOLE) as path:
        save_file(_apart(state), path, {"format": "pt"})
    write_settings(folder / run_dir.CONFIG, values)


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file of settings of a public folder, such as `config.json`."""
    with written(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _apart(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of which no two share memory, for files of models that tie nothing in transformers."""
    found, seen = dict[str, Tensor](), set[int]()
    for name, value in state.items():
        value = value.contiguous()
        found[name] = value.clone() if value.numel() and value.data_ptr() in seen else value
        seen.add(value.data_ptr())
    return found


def _check(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], key_map: KeyMap, folder: Path) -> None:
    """UserError for tensors that are missing, unknown or of another shape."""
    unknown = state.keys() - wanted.keys() - key_map.tied.keys()
    for kind, names in (("lacks the", wanted.keys() - state.keys()), ("has the unknown", unknown)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(
                f"{folder} {kind} tensor '{min(names)}'{more}: its weights are not those of its config.json"
            )
    for name, tensor in wanted.items():
        if tensor.shape != state[name].shape:
            raise UserError(
                f"{folder}: '{name}' is {tuple(state[name].shape)}, but {tuple(tensor.shape)} by its config.json"
            )
        if tensor.is_floating_point() and not state[name].is_floating_point():
            raise UserError(
                f"{folder}: '{name}' is of the type {state[name].dtype}, which is not a floating-point number"
            )
