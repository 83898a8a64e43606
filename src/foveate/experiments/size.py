"""What a model costs, counted on its shapes: parameters, operations and memory of training, memory of writing.

Models on the device "meta" have shapes and no memory, so that the largest can be counted here.
"""

import inspect
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from foveate import models
from foveate.errors import UserError
from foveate.experiments.flops import flops
from foveate.models.multimodal.text_to_image import TextToImage
from foveate.models.vision.image_encoder import encoder_of
from foveate.nn import StackConfig, WordEmbedding, without_memory
from foveate.training.parallel.plan import sliced_layers

OPTIMIZER = 8
"""Bytes of AdamW's two moments for each parameter."""


PARTS = 16
"""Sentences of a paragraph, and characters of a word."""

IMAGE_SIZE = 224
"""Pixels of a side, for models that read images of any size."""


@dataclass(frozen=True)
class Size:
    """The counts of a model for one batch; the target tokens of a translator are its tokens."""

    parameters: int
    tokens: int
    """Tokens, or patches and pixels' examples, of the batch."""
    forward_flops: int
    """Floating-point operations of the forward pass, matrix products and attention."""
    activations: int
    """Bytes that the forward pass keeps for the backward pass, in the precision of the weights."""
    cache: int
    """Bytes of keys and values of the batch in a decoder; 0 for a model that does not write."""

    @property
    def training_flops(self) -> int:
        """Of forward and backward pass, which takes twice as many."""
        return 3 * self.forward_flops

    def training_bytes(self, width: int, shards: int = 1) -> float:
        """Memory of one device in training: weights, gradients, optimizer and activations.

        Numbers of the forward pass have `width` bytes; below 4 a copy of the weights in single precision is kept too.
        `shards` devices share the weights, gradients and optimizer (FSDP).
        """
        copy = 4 if width < 4 else 0
        static = self.parameters * (2 * width + copy + OPTIMIZER) / shards
        return static + self.activations * width / 4


def measure_size(model: nn.Module, batch: int, length: int, slices: int = 1) -> Size:
    """The counts of a model on the device "meta". Raises UserError for inputs that are not known.

    What norms and dropout between split layers keep is counted for one of `slices` parts of the sequence.
    """
    inputs, tokens = example_inputs(model, batch, length)
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept: dict[int, tuple[torch.UntypedStorage, int]] = {}
    with _on_slices(model) as on_slice:

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                size = storage.nbytes() // (slices if on_slice else 1)
                before = kept.get(storage._cdata, (storage, 0))[1]
                kept[storage._cdata] = storage, max(size, before)  # with the storage, so that its address stays its own
            return tensor

        with _FusedAttention(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            counted = flops(lambda: model.train()(**inputs))
    return Size(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens=tokens,
        forward_flops=counted,
        activations=sum(size for _, size in kept.values()),
        cache=_cache(model, batch, length),
    )


@contextmanager
def _on_slices(model: nn.Module) -> Iterator[list[nn.Module]]:
    """A list that holds the layer that computes, while it is one that acts on slices of the sequence."""
    computing: list[nn.Module] = []
    layers = [model.get_submodule(name) for name in sliced_layers(model)]
    hooks = [layer.register_forward_pre_hook(lambda layer, _: computing.append(layer)) for layer in layers]
    hooks += [layer.register_forward_hook(lambda *_: computing.clear()) for layer in layers]
    yield computing
    for hook in hooks:
        hook.remove()


class _FusedAttention(TorchFunctionMode):
    """Torch's attention by the operation of its fused kernel, which keeps no weights.

    On the device "meta" torch would take its plain kernel, and count the weights.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    @staticmethod
    def _attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        shape = query.shape
        key, value = (part.expand(*shape[:-2], *part.shape[-2:]) for part in (key, value))
        query, key, value = (part.reshape(-1, *part.shape[-3:]) for part in (query, key, value))
        fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return fused(query, key, value, dropout_p, is_causal, scale=scale)[0].reshape(shape)


def measure_preset(
    name: str, sizes: Mapping[str, Any], batch: int, length: int, model: nn.Module | None = None, slices: int = 1
) -> Size:
    """The counts of a preset with the sizes that data decides; its `model` on the device "meta", where it is there.
    See `measure_config`. Raises UserError as `models.create` does too."""
    model = model or models.create(name, device="meta", **sizes)
    return measure_config(models.preset(name).family, model.config, batch, length, model, slices)


def measure_config(
    family: str, config: Any, batch: int, length: int, model: nn.Module | None = None, slices: int = 1
) -> Size:
    """The counts of the model of a config; the `model` on the device "meta", where it is there. `slices` as in
    `measure_size`.

    A stack of many equal layers is counted with 2 and with 4 of them; each further one adds the same. Raises UserError
    as `measure_size` does.
    """
    model = model or _on_meta(family, config)
    layers = getattr(config, "layers", None)
    if not isinstance(layers, int) or layers <= 4 or layers % 2:
        return measure_size(model, batch, length, slices)
    two, four = (measure_size(_on_meta(family, replace(config, layers=few)), batch, length, slices) for few in (2, 4))

    def at_all_layers(part: str) -> int:
        first, second = getattr(two, part), getattr(four, part)
        return first + (second - first) * (layers - 2) // 2

    return Size(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens=two.tokens,
        **{part: at_all_layers(part) for part in ("forward_flops", "activations", "cache")},
    )


def measure_part(family: str, config: Any, batch: int, length: int, parts: int) -> Size:
    """The counts of what one of `parts` devices has of a model whose layers they split (tensor parallelism).

    That is a model with a part of the heads, of the hidden units and of the vocabulary, at the full width. Norms and
    the sums between layers act on a slice of the sequence. Raises UserError for a model that they cannot split.
    """
    if parts == 1:
        return measure_config(family, config, batch, length)
    if not isinstance(config, StackConfig):
        raise UserError(f"no parts are counted for {family}: only for a stack of blocks alone")
    if config.query_key_norm is not None:
        raise UserError(f"devices cannot split {family}: it normalizes queries and keys")
    heads = config.key_value_heads or config.heads
    for part, value in (
        ("heads", config.heads),
        ("heads of keys and values", heads),
        ("hidden units", config.feedforward),
    ):
        if value % parts:
            raise UserError(f"{parts} devices cannot split {value:,} {part}")
    changed: dict[str, Any] = {
        "heads": config.heads // parts,
        "head_width": config.head_width or config.width // config.heads,
        "feedforward": config.feedforward // parts,
    }
    if config.key_value_heads:
        changed["key_value_heads"] = heads // parts
    if (vocabulary := getattr(config, "vocabulary", None)) is not None:
        changed["vocabulary"] = -(-vocabulary // parts)
    return measure_config(family, replace(config, **changed), batch, length, slices=parts)


def _on_meta(family: str, config: Any) -> nn.Module:
    with without_memory():
        return models.build(family, config)


def example_inputs(model: nn.Module, batch: int, length: int) -> tuple[dict[str, Tensor], int]:
    """Inputs of these sizes on the model's device, by the shapes in the annotations of its forward, and how many tokens
    or examples they are."""
    sizes, device = _dimensions(model, batch, length), next(model.parameters()).device
    inputs: dict[str, Tensor] = {}
    for name, parameter in inspect.signature(model.forward).parameters.items():
        shape = getattr(parameter.annotation, "dim_str", None)
        if name == "spellings" and isinstance(getattr(model, "embedding", None), WordEmbedding):
            inputs[name] = torch.zeros(batch, length, 1, dtype=torch.long, device=device)
        if parameter.default is not inspect.Parameter.empty or shape is None:
            continue
        dims = [int(size) if size.isdecimal() else sizes[size] for size in shape.split()]
        kind = torch.float32 if "Float" in str(parameter.annotation) else torch.long
        fill = sizes["K" if name == "paragraph_lengths" else "T"] if name.endswith("lengths") else 0
        inputs[name] = torch.full(dims, fill, dtype=kind, device=device)
    reads_tokens = any(not value.is_floating_point() and value.ndim == 2 for value in inputs.values())
    return inputs, batch * length if reads_tokens and "pixels" not in inputs else batch


def _dimensions(model: nn.Module, batch: int, length: int) -> dict[str, int]:
    """The size of each dimension that an annotation names."""
    config: Any = model.config
    part: Any = encoder_of(model)
    image = getattr(config, "image_size", None) or getattr(getattr(part, "config", None), "image_size", None)
    side: Any = getattr(config, "side", None)  # of an image that is read as tokens
    images = {"h": image or IMAGE_SIZE, "w": image or IMAGE_SIZE, "c": getattr(config, "channels", 3)}
    if isinstance(model, TextToImage):
        return {"B": batch, "T": side * side, "S": length}
    bands = getattr(config, "bands", 80)
    frames = getattr(config, "frames", length * math.prod(getattr(config, "strides", ())))  # or samples of each place
    others = {"N": batch, "K": PARTS, "F": getattr(config, "features", bands), "S": frames, "P": batch * PARTS}
    return {"B": batch, "A": batch, "I": batch, "T": length, **images, **others}


def _cache(model: nn.Module, batch: int, length: int) -> int:
    """Keys and values of all blocks in single precision."""
    config: Any = model.config
    layers: Any = getattr(config, "layers", None) or getattr(config, "decoder_layers", None)
    if not hasattr(model, "prefill") or not hasattr(config, "heads") or not isinstance(layers, int):
        return 0
    heads: Any = getattr(config, "key_value_heads", None) or config.heads
    head_width: Any = getattr(config, "head_width", None) or config.width // config.heads
    both = 2 if hasattr(config, "decoder_layers") else 1  # attention to the source keeps as much again
    return both * 2 * 4 * batch * length * layers * heads * head_width
