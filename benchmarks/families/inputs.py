"""One rule that makes inputs for any model of transformers, from the names in its signature."""

import inspect
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor, nn

from families.special import EXAMPLES, INPUTS, LENGTH

TARGET, PATCHES = 7, ((1, 8, 4), (1, 4, 4))

MOST = 40
"""Combinations of inputs that are tried."""

TOKENS = range(10, 50)
"""Ids that mean nothing special, in a small config."""

MORE = ("pixel_values", "input_ids", "bbox", "attention_mask", "input_features", "input_values")
"""What a model may want besides its main input."""


def attempts(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Sets of inputs, the plainest first."""
    signature, config = inspect.signature(model.forward).parameters, model.config
    if config.model_type in INPUTS:
        yield INPUTS[config.model_type](config)
    named = {name: part for name, part in signature.items() if part.kind not in (part.VAR_KEYWORD, part.VAR_POSITIONAL)}
    if not named:
        return
    main = model.main_input_name if isinstance(model.main_input_name, str) else model.main_input_name[0]
    main = main if main in named else next(iter(named))
    names = list(dict.fromkeys([main, *(name for name, part in named.items() if part.default is part.empty)]))
    if "input_ids" in names and "attention_mask" in named:
        names.append("attention_mask")
    if "decoder_input_ids" in named:
        names.append("decoder_input_ids")
    names += [name for known, more in TOGETHER.items() if known in names for name in more if name in named]
    names = list(dict.fromkeys(names))
    if grid := next(
        (name for name in ("grid_thw", "image_grid_thw") if name in named and "input_ids" not in named), ""
    ):
        sizes = {"merge_sizes": torch.ones(len(PATCHES), dtype=torch.long)} if "merge_sizes" in named else {}
        yield from ({names[0]: patches, grid: torch.tensor(PATCHES), **sizes} for patches in _patches(config))
        return
    more = [name for name in MORE if name in named and name not in names]
    for chosen in (names, [*names, *more[:1]], [*names, *more[:2]], [*names, *more]):
        choices = {name: KNOWN[name](config) if name in KNOWN else [] for name in dict.fromkeys(chosen)}
        turns = max(map(len, choices.values())) if all(choices.values()) else 0
        for turn in range(turns):
            yield {name: each[min(turn, len(each) - 1)] for name, each in choices.items()}
        for each in islice(product(*choices.values()), MOST) if turns and len(choices) > 1 else ():
            yield dict(zip(choices, each, strict=True))


def size(config: Any, *names: str, otherwise: int) -> Any:
    """The first of these fields that the config or a config within it has."""
    configs = [config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))]
    found = (getattr(each, name, None) for name in names for each in configs)
    return next((value for value in found if value is not None), otherwise)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)[-2:]


def _channels(config: Any) -> int:
    return size(config, "num_channels", "in_channels", "in_chans", otherwise=3)


def _tokens(config: Any, length: int = LENGTH) -> list[Tensor]:
    """Of one text, of several codebooks behind each place, and of several codebooks as more examples."""
    tokens = torch.randint(TOKENS.start, TOKENS.stop, (EXAMPLES, length))
    books = size(config, "num_codebooks", "n_codebooks", "num_channels", otherwise=1)
    return [tokens, tokens[..., None].repeat(1, 1, books), tokens.repeat_interleave(books, 0)]


def _mask(_: Any, length: int = LENGTH) -> list[Tensor]:
    """The second text is shorter."""
    mask = torch.ones(EXAMPLES, length, dtype=torch.long)
    mask[1, -3:] = 0
    return [mask]


def _pictures(config: Any) -> list[Tensor]:
    """A picture, or a film in one of two orders."""
    height, width = _pair(size(config, "image_size", "img_size", "input_size", otherwise=64))
    film = torch.randn(EXAMPLES, size(config, "num_frames", otherwise=4), _channels(config), height, width)
    return [film[:, 0], film, film.transpose(1, 2), film[:, :2], film.flatten(0, 1)]


def _patches(config: Any) -> list[Tensor]:
    """Patches of two pictures one behind the other: rows of numbers, or small pictures."""
    count, edge = sum(time * height * width for time, height, width in PATCHES), 14
    edge = _pair(size(config, "patch_size", otherwise=edge))[0]
    numbers, times = _channels(config) * edge**2, size(config, "temporal_patch_size", otherwise=1)
    small = torch.randn(count, _channels(config), edge, edge)
    return [*(torch.randn(count, numbers * each) for each in (times, 1, 2)), small, small[None]]


def _flat_patches(config: Any) -> list[Tensor]:
    """Patches with their row and column in front."""
    places = torch.arange(1.0, LENGTH + 1).repeat(EXAMPLES, 1)
    numbers = 3 * _pair(size(config, "patch_size", otherwise=16))[0] ** 2
    return [torch.cat([torch.stack([places, places], -1), torch.randn(EXAMPLES, LENGTH, numbers)], -1)]


BINS = ("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim", "mel_bins")
BINS += ("input_dim", "num_mels", "input_size")
"""What configs call the numbers of one frame of sound."""


def _frames(config: Any) -> list[Tensor]:
    """Frames of sound, in several orders and lengths."""
    bins, length = size(config, *BINS, otherwise=80), size(config, "max_length", otherwise=64)
    frames = 2 * size(config, "max_source_positions", "max_position_embeddings", otherwise=64)
    shapes = (bins, min(frames, 3000)), (64, bins), (length, bins), (1, 64, bins)
    return [torch.randn(EXAMPLES, *shape) for shape in shapes]


def _waves(_: Any) -> list[Tensor]:
    return [torch.randn(EXAMPLES, 4000), torch.randn(EXAMPLES, 1, 4800)]


def _vectors(config: Any) -> list[Tensor]:
    return [torch.randn(EXAMPLES, LENGTH, size(config, "hidden_size", "d_model", "n_embd", "dim", otherwise=64))]


def _hidden(config: Any) -> list[Tensor]:
    """Vectors of a text, of sound, or what else an inner part of a model reads."""
    return [*_vectors(config), *_frames(config), *_pictures(config)]


def _channels_first(config: Any) -> list[Tensor]:
    return [vectors.mT for vectors in _vectors(config)]


def _numbers(config: Any) -> list[Tensor]:
    """Numbers that a policy has seen and done."""
    return [torch.randn(EXAMPLES, LENGTH, 1)]


def _patch_rows(config: Any) -> list[Tensor]:
    """Patches as rows of numbers, with a place each."""
    numbers = _channels(config) * _pair(size(config, "patch_size", otherwise=16))[0] ** 2
    return [torch.randn(EXAMPLES, 16, numbers)]


def _boxes(_: Any) -> list[Tensor]:
    corners = torch.randint(0, 400, (EXAMPLES, LENGTH, 2))
    return [torch.cat([corners, corners + 50], -1)]


def _series(config: Any) -> list[Tensor]:
    length, channels = (size(config, name, otherwise=32) for name in ("context_length", "num_input_channels"))
    lags = max(getattr(config, "lags_sequence", None) or [0])
    return [torch.randn(EXAMPLES, length, channels), torch.randn(EXAMPLES, length + lags)]


def _series_features(config: Any, length: str = "context_length") -> list[Tensor]:
    lags = max(getattr(config, "lags_sequence", None) or [0]) if length == "context_length" else 0
    return [torch.randn(EXAMPLES, size(config, length, otherwise=32) + lags, config.num_time_features)]


TOGETHER = {
    "states": ("actions", "rewards", "returns_to_go", "timesteps"),
    "past_time_features": ("future_values", "future_time_features"),
    "qformer_input_ids": ("input_ids", "qformer_attention_mask", "attention_mask"),
    "inputs": ("decoder_input_ids",),
}
"""What has to be given beside an input although it need not be."""


KNOWN: dict[str, Callable[[Any], list[Tensor]]] = {
    "input_ids": _tokens,
    "decoder_input_ids": lambda config: _tokens(config, TARGET),
    "attention_mask": _mask,
    "decoder_attention_mask": lambda config: _mask(config, TARGET),
    **dict.fromkeys(("pixel_values", "pixel_values_videos", "video", "images"), _pictures),
    "flattened_patches": _flat_patches,
    "input_features": lambda config: [*_frames(config), *_waves(config)],
    **dict.fromkeys(("input_values", "audio_values"), lambda config: [*_waves(config), *_frames(config)]),
    **dict.fromkeys(("inputs_embeds", "encoder_hidden_states", "query_embeds"), _vectors),
    "bbox": _boxes,
    **dict.fromkeys(("qformer_input_ids", "audio_input_ids", "code"), _tokens),
    **dict.fromkeys(("qformer_attention_mask", "mask"), _mask),
    **dict.fromkeys(("image", "prompt_pixel_values", "prompt_masks"), _pictures),
    **dict.fromkeys(("hidden_states", "patch_embeds", "context", "noise_embeds", "context_hidden_states"), _hidden),
    **dict.fromkeys(
        ("spectrogram", "mel_spectrogram", "audio_mel"), lambda config: [one.mT for one in _frames(config)]
    ),
    **dict.fromkeys(("input_features_mask", "audio_mel_mask"), lambda config: [torch.ones(EXAMPLES, 64).bool()]),
    "latents": lambda config: [*_channels_first(config), *_vectors(config)],
    "states": lambda config: [torch.randn(EXAMPLES, LENGTH, config.state_dim)],
    "actions": lambda config: [torch.randn(EXAMPLES, LENGTH, config.act_dim)],
    **dict.fromkeys(("rewards", "returns_to_go"), _numbers),
    "timesteps": lambda config: [torch.arange(LENGTH).repeat(EXAMPLES, 1)],
    "past_time_features": _series_features,
    "future_time_features": lambda config: _series_features(config, "prediction_length"),
    "future_values": lambda config: [torch.randn(EXAMPLES, config.prediction_length)],
    "past_observed_mask": lambda config: [torch.ones_like(_series(config)[1])],
    "past_values_padding": lambda config: [torch.zeros_like(_series(config)[1], dtype=torch.long)],
    "freq": lambda config: [torch.zeros(EXAMPLES, 1, dtype=torch.long)],
    "inputs": lambda config: [*_vectors(config), *_waves(config)],
    "num_patches": lambda config: [16],
    "pixel_attention_mask": lambda config: [torch.ones(EXAMPLES, 16, dtype=torch.long)],
    "spatial_shapes": lambda config: [torch.tensor([[4, 4]] * EXAMPLES)],
    "pixel_position_ids": lambda config: [
        torch.cartesian_prod(torch.arange(4), torch.arange(4)).repeat(EXAMPLES, 1, 1)
    ],
    **dict.fromkeys(("past_values", "context_values"), _series),
}
"""For each name of an input, what it may be; the first that runs is taken."""
