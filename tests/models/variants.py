"""All models in small: every preset, and every value of each field of its family that offers a choice.

A new preset, family or choice is tested by being there.
"""

import importlib
import inspect
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from foveate import models
from foveate.attention import Monotonic
from foveate.contracts import Generator
from foveate.errors import UserError
from foveate.models.idle_settings import STATES, idle_settings
from foveate.models.speech.las import PYRAMID
from foveate.models.speech.whisper_encoder import WhisperEncoderConfig
from foveate.models.text.causal_language_model import CausalLanguageModelConfig
from foveate.models.vision.detr import DETR
from foveate.models.vision.vit import ViTConfig
from foveate.nn import DeformableAttention, DeformableDecoder, FeatureMapAttention, PlaceProposals, Proposals
from foveate.nn.heads import HeadFields, HeadMixing, HeadScore
from foveate.nn.named_weighings import WEIGHINGS

SMALL = {
    "src_vocab": 17,
    "tgt_vocab": 13,
    "vocabulary": 17,
    "classes": 5,
    "spellings": 23,
    "width": 12,
    "heads": 3,
    "feedforward": 11,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_length": 19,
    "rotary_width": 2,
    "embedding": 10,
    "window_radius": 2,
    "encoder_width": 12,
    "layers": 2,
    "dropout": 0.0,
    "channels": 2,
    "hidden": 19,
    "side": 3,
    "divisor": 5,
    "stem_width": 7,
    "feature_width": 29,
    "layer_scale": 0.5,
    "auxiliary_dropout": 0.0,
    "patch": 3,
    "image_size": 12,
    "depth_dropout": 0.0,
    "head_width": 4,
    "colours": 9,
    "bands": 6,
    "frames": 13,
    "stride": 2,
    "pyramids": 2,
    "convolution": 8,
    "image_encoder": "resnet-light",
    "image_positions": "sinusoidal",
    "coverage": True,
    "backbone": "resnet20",
    "queries": 7,
    "points": 5,
    "detail": 2,
    "denoising": None,
    "classifier": 31,
    "position_kernel": 4,
    "position_groups": 2,
    "label_width": 9,
    "mask_share": 0.5,
    "mask_length": 3,
    "vision": ViTConfig(
        classes=1, head="none", channels=2, image_size=12, patch=3, width=15, heads=3, feedforward=11, layers=2
    ),
    "backbone_stages": 2,
    "levels": 3,
    "encoder_points": 2,
    "decoder_points": 3,
    "encoder_feedforward": 13,
    "fusion_width": 8,
    "top_keys": 2,
    "temperature_span": 3,
}
"""Sizes for tests, by the name of the field."""

LISTENER = WhisperEncoderConfig(width=18, heads=3, feedforward=11, encoder_layers=2, max_source=31)
"""The encoder of a Whisper, for presets that listen with one."""

STAGES = {
    "blocks": (1, 2, 1, 1, 1, 1, 1),
    "widths": (10, 14, 22, 26, 34, 38, 46),
    "convolution_widths": (7, 9, 5, 6, 8, 11, 10),
    "kernels": (5, 3, 2, 1, 1, 2, 1),
    "strides": (2, 1, 2, 1, 1, 1, 1),
}
"""Sizes for tests of fields that have one for each stage: as many of them as a preset has stages."""

UNSCORED = {"score_scale": None, "score_cap": None}

NEEDED = {
    ("tie", "output"): {"embedding": 12},
    ("tie", "all"): {"tgt_vocab": 17, "embedding": 12},
    ("encoder", "embeddings"): {"embedding": 12},
    ("one_encoder", True): {"tgt_vocab": 17},
    ("tie", True): {"embedding": 12},
    ("cell", "none"): {"pooling": "mean"},
    ("pooling", "last"): {"cell": "lstm"},
    **{("norm", place): {"parallel": False, "one_norm": False} for place in ("post", "output", "sandwich")},
    ("parallel", True): {"norm": "pre"},
    ("mixing", "latent"): {"positions": "learned"},
    ("mixing", "differential"): {"key_value_heads": None, "heads": 4},
    **{("mixing", name): {"positions": "learned", "window": None} for name in STATES},
    ("positions", "relative-projected"): {"key_value_heads": None, "query_key_norm": None, **UNSCORED},
}
"""What else a choice needs: one vocabulary, one width of words and states, an order for a last state, norms before
parallel layers, heads with keys of their own, positions that a layer with a state can have."""

OF_HEADS: list[tuple[str, Any]] = [
    *(("weights", name) for name in WEIGHINGS if name != "softmax"),
    *(("mixing", name) for name in get_args(HeadMixing) if name != "attention"),
    *(("head_score", name) for name in get_args(HeadScore) if name != "scaled-dot"),
    *(("query_key_norm", "head"), ("head_gate", True), ("value_width", 7), ("split", True)),
]
"""Choices that the configs of all Transformers have."""

CHOICES = {name for name, _ in NEEDED}

LENGTHS = torch.tensor([7, 4, 1])

READ = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0]])

EXAMPLES = {
    "source": READ,
    "source_lengths": LENGTHS,
    "target": torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0], [1, 9, 9, 4, 0]]),
    "target_lengths": torch.tensor([5, 3, 4]),
    "tokens": READ,
    "spellings": torch.arange(3 * 7 * 2).view(3, 7, 2) % 23,
    "lengths": LENGTHS,
    "pixels": torch.randn(3, 2, 37, 41, generator=torch.Generator().manual_seed(3)),
}
"""Three examples, by the name of what a model is given: they read 7, 4 and 1 tokens and write 5, 3 and 4."""

IMAGES = {
    **dict.fromkeys(["alexnet", "zfnet"], torch.randn(3, 2, 67, 71, generator=torch.Generator().manual_seed(4))),
    "imagegpt": torch.randn(3, 2, 12, 12, generator=torch.Generator().manual_seed(7)),
    "vision-encoder-decoder": torch.randn(3, 2, 24, 36, generator=torch.Generator().manual_seed(9)),
    "vit": torch.randn(3, 2, 24, 36, generator=torch.Generator().manual_seed(5)),
    "audio-transformer": torch.randn(3, 1, 6, 17, generator=torch.Generator().manual_seed(6)),
}
"""Images for families that need larger ones, those that divide into patches, or spectrograms."""

SOUNDS = {
    "source": torch.randn(3, 23, 6, generator=torch.Generator().manual_seed(8)),
    "source_lengths": torch.tensor([23, 14, 9]),
}
"""What models that write the words of a sound are given."""

WAVES = {
    "source": torch.randn(3, 39, generator=torch.Generator().manual_seed(9)),
    "source_lengths": torch.tensor([39, 27, 15]),
}
"""What models that read the samples of a sound are given: they keep 7, 4 and 1 places."""

ENDS = {"source": "source_lengths", "tokens": "lengths", "spellings": "lengths"}
"""Which input tells where another ends: behind that is padding, which nothing may depend on."""

ELSEWHERE = {
    *(
        "clip",
        "darqn",
        "dual-encoder",
        "elmo",
        "hierarchical-autoencoder",
        "mdarqn",
        "sagan",
        "sar",
        "text-to-image",
        "walker",
    ),
}
"""Families that are given more than examples row by row; their own tests hold all of this."""

AS_THEY_ARE = {"roberta-base", "roberta-large"}
"""Presets with the choices of another one, which are tested there."""


PRESETS = models.presets()

field_types = cache(get_type_hints)


@dataclass(frozen=True)
class Variant:
    """A preset in small, perhaps with one field changed."""

    preset: str
    changed: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.preset, *(f"{name}={value}" for name, value in self.changed)])

    @cached_property
    def config(self) -> Any:
        preset = PRESETS[self.preset]
        kind = models.config_class(preset.family)
        defaults = {part.name: part.default for part in fields(kind) if part.default is not MISSING}
        values = {
            **defaults,
            **preset.values,
            **{part.name: SMALL[part.name] for part in fields(kind) if part.name in SMALL},
        }
        if values.get("cnn"):
            values["cnn"] = "cnn-tiny"
        if values.get("listener", PYRAMID) != PYRAMID:
            values["listener"] = LISTENER
        if values.get("key_value_heads"):
            values["key_value_heads"] = 1
        values.update({name: sizes[: len(values[name])] for name, sizes in STAGES.items() if name in values})
        for choice in ((name, value) for name, value in {**values, **dict(self.changed)}.items()):
            needed = NEEDED.get(choice, {}) if choice[0] in CHOICES else {}
            values.update({name: needed[name] for name in needed.keys() & values.keys()})
        return kind(**{**values, **dict(self.changed)})

    def build(self) -> nn.Module:
        """The model with the same random weights each time, in evaluation mode."""
        torch.manual_seed(7)
        model = models.build(PRESETS[self.preset].family, self.config).eval()
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                nn.init.uniform_(layer.bias, 0.5, 1)  # else the few channels of a layer may all be silent
            if isinstance(layer, FeatureMapAttention):
                nn.init.constant_(layer.scale, 0.5)  # else it gives nothing
            if isinstance(layer, Monotonic):
                nn.init.constant_(layer.offset, 0.0)  # else it may pass every place
            if isinstance(layer, DETR | Proposals | PlaceProposals):
                nn.init.normal_(layer.box[-1].weight)  # else boxes are not corrected
            if isinstance(layer, DeformableDecoder):
                for box in layer.box:
                    nn.init.normal_(box[-1].weight)
            if isinstance(layer, DeformableAttention):
                for part in (layer.offsets, layer.logits):
                    nn.init.normal_(part.weight, std=0.1)  # else no query matters
        return model

    @property
    def model(self) -> type[nn.Module]:
        return importlib.import_module(models.FAMILIES[PRESETS[self.preset].family].module).MODEL

    @property
    def inputs(self) -> dict[str, Tensor]:
        """What the model is given, to change."""
        names = inspect.signature(self.model.forward).parameters
        examples = {**EXAMPLES, "pixels": IMAGES.get(PRESETS[self.preset].family, EXAMPLES["pixels"])}
        if "bands" in field_types(type(self.config)):
            examples.update(SOUNDS)
        if "convolution_widths" in field_types(type(self.config)):
            examples.update(WAVES)
        if getattr(self.config, "head", None) != "tokens":
            del examples["spellings"]
        return {name: examples[name].clone() for name in names if name in examples}

    @property
    def writes(self) -> bool:
        """Whether the model reads a source or an image and writes, one token after the other."""
        return issubclass(self.model, Generator) and "target" in self.inputs

    @property
    def reads(self) -> bool:
        """Whether the model reads sequences that may be padded."""
        return not ENDS.keys().isdisjoint(self.inputs)

    @property
    def predicts_each_token(self) -> bool:
        """Whether the model gives logits for each token that it reads, as taggers and language models do."""
        head = getattr(self.config, "head", None)
        if head is not None:
            return head in ("words", "tokens", "none")
        return "tokens" in self.inputs and not hasattr(self.config, "classes")

    @property
    def logits(self) -> tuple[int, ...]:
        """The shape of the logits for these inputs: for the whole, for each token read, or for each written."""
        config = self.config
        if getattr(config, "predict", "label") == "pixels":
            return 3, 12 * 12, config.colours
        if hasattr(config, "points"):
            return 3, config.points
        if hasattr(config, "detail"):
            return 3, 37 * 41, config.classes
        if hasattr(config, "queries"):
            return 3, config.queries, config.classes + config.no_object
        if getattr(config, "head", None) == "none" and hasattr(config, "patch"):
            return 3, config.width  # what a classifier of images would read
        if "pixels" in self.inputs and "tokens" not in self.inputs and hasattr(config, "classes"):
            return 3, config.classes
        if getattr(config, "head", None) == "span":
            return 3, 2, 7
        if self.predicts_each_token and hasattr(config, "head"):
            return 3, 7, {"words": config.vocabulary, "tokens": config.classes, "none": config.width}[config.head]
        if getattr(config, "head", None) == "vector":
            return 3, 1, config.width
        if hasattr(config, "classes"):
            return 3, 1, config.classes
        if hasattr(config, "compare"):
            return 3, 1, 2
        if self.predicts_each_token:
            return 3, 7, config.vocabulary
        if hasattr(config, "listener") and not self.writes:
            return 3, 12, config.vocabulary  # half of the frames
        return 3, 5, config.tgt_vocab if hasattr(config, "tgt_vocab") else config.vocabulary

    @property
    def attends(self) -> bool:
        config = self.config
        if hasattr(config, "heads") or hasattr(config, "head_width") or (self.writes and hasattr(config, "kernel")):
            return True
        if hasattr(config, "glimpses"):
            return config.glimpses is not None
        if hasattr(config, "listener"):
            return True
        if hasattr(config, "hops"):
            return True
        if "pixels" in self.inputs and not self.writes:
            return bool(getattr(config, "attend_after", ()))
        if hasattr(config, "pooling"):
            return config.pooling == "attention" and getattr(config, "head", "text") == "text"
        return getattr(config, "score", "none") != "none"


@cache
def variants() -> tuple[Variant, ...]:
    """Every preset, and every value of every choice, in the presets that have it by turns; each configuration once.

    Language models whose pages are configs take turns together, other presets with those of their family.
    """
    found: dict[str, Variant] = {}
    groups: dict[Any, list[str]] = {}
    for preset in PRESETS.values():
        if preset.family not in ELSEWHERE:
            found.setdefault(repr(Variant(preset.name).config), Variant(preset.name))
            kind = models.config_class(preset.family)
            group = CausalLanguageModelConfig if issubclass(kind, CausalLanguageModelConfig) else kind
            groups.setdefault(group, []).append(preset.name)
    for kind, names in groups.items():
        free = [name for name in names if name not in AS_THEY_ARE]
        for number, change in enumerate(_changes(kind, len(found)) if free else ()):
            turns = [*free[number % len(free) :], *free[: number % len(free)]]
            variant = next(filter(_acts, (Variant(name, (change,)) for name in turns)), None)
            if variant is not None:
                found.setdefault(repr(variant.config), variant)
    return tuple(found.values())


def _changes(kind: Any, turn: int) -> list[tuple[str, Any]]:
    """All values of all fields of a config that offer a choice. Of those that all Transformers share, families take
    turns with two each: `test_heads_and_windows.py` tries the others."""
    kinds = field_types(kind)
    options = {
        part.name: get_args(kinds[part.name])
        if get_origin(kinds[part.name]) is Literal
        else (False, True) * (kinds[part.name] is bool)
        for part in fields(kind)
    }
    changes = [(name, option) for name, values in options.items() for option in values]
    if not issubclass(kind, HeadFields):
        return changes
    shared = [(name, option) for name, option in changes if (name, option) in OF_HEADS]
    turns = [OF_HEADS[(turn + start) % len(OF_HEADS)] for start in (0, len(OF_HEADS) // 2)]
    return [*(change for change in changes if change not in shared), *turns]


def _acts(variant: Variant) -> bool:
    """Whether the change is one of the preset, which allows it, and does something."""
    changed, config = dict(variant.changed), variant.config
    if getattr(config, "maxout", None) and changed.keys() & {"tie", "score_from"}:
        return False
    if any(change in OF_HEADS for change in changed.items()):
        try:
            variant.build()
        except UserError:  # of models whose scores are made in another way
            return False
    same = all(getattr(Variant(variant.preset).config, name) == value for name, value in changed.items())
    return not same and not changed.keys() & idle_settings(config).keys()
