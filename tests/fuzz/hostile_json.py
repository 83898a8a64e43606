"""Values that would do harm in the JSON of tokenizers and of public folders, each under the name that reads it."""

import json
import random
from pathlib import Path
from typing import Any

REPLACE = [
    {"type": "Replace", "pattern": pattern, "content": content}
    for pattern in ({"String": " "}, {"String": "e"}, {"String": ""}, {"Regex": "e"}, {"Regex": "x*"}, {"Regex": "("})
    for content in ("", "e", "ee" * 50, " e" * 50_000)
]
"""Normalizers and decoders that make a text longer."""

NORMALIZERS: list[Any] = [
    *REPLACE,
    *({"type": "Prepend", "prepend": prefix} for prefix in ("", "▁", "p" * 10**5)),
    *({"type": kind} for kind in ("NFKD", "Lowercase", "Nmt", "StripAccents", "ByteLevel", "Grow")),
    {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    {"type": "Precompiled", "precompiled_charsmap": "AAAAAGFhYWFh"},
]

PARTS: dict[str, list[Any]] = {
    "normalizer": [*NORMALIZERS, *({"type": "Sequence", "normalizers": [one] * 9} for one in NORMALIZERS)],
    "pre_tokenizer": [
        {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
        {"type": "Split", "pattern": {"Regex": ""}, "behavior": "MergedWithNext", "invert": True},
        {"type": "Metaspace", "replacement": "▁" * 900, "prepend_scheme": "always", "split": True},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
        {"type": "FixedLength", "length": 0},
    ],
    "decoder": [
        *REPLACE,
        {"type": "Strip", "content": "e", "start": 10**9, "stop": 10**9},
        {"type": "WordPiece", "prefix": "p" * 10**5, "cleanup": True},
        {"type": "CTC", "pad_token": "", "word_delimiter_token": "w" * 10**5, "cleanup": True},
        {"type": "ByteFallback"},
    ],
    "post_processor": [
        {"type": "BertProcessing", "sep": ["[SEP]", 10**9], "cls": ["[CLS]", 2**32 - 1]},
        {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 500, "pair": []},
        {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
    ],
    "padding": [
        {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
        | {"pad_to_multiple_of": 10**9}
    ],
    "truncation": [{"direction": "Left", "max_length": 1, "strategy": "LongestFirst", "stride": 5}],
    "added_tokens": [
        [{"id": number, "content": content, "single_word": False, "lstrip": True, "rstrip": True, "normalized": True}]
        for number in (0, 10**6, 2**32 - 1)
        for content in ("", " ", "the", "\0", "e" * 10**5)
    ],
}
"""What a part of a tokenizer may be."""

NUMBERS = [
    True,
    -1,
    0,
    10**6,
    10**9,
    10**30,
    1e300,
    -0.5,
    "224",
    None,
    [10**6, 10**6],
    {"height": 10**6, "width": 10**6},
]

FIELDS: dict[str, list[str]] = {
    "preprocessor_config.json": [
        *("size", "crop_size", "height", "n_fft", "hop_length", "feature_size", "sampling_rate", "chunk_length"),
        *(
            "n_samples",
            "nb_max_frames",
            "image_mean",
            "image_std",
            "rescale_factor",
            "resample",
            "patch_size",
            "crop_pct",
        ),
        *("do_resize", "padding_value", "feature_extractor_type", "image_processor_type"),
    ],
    "generation_config.json": [
        "max_length",
        "eos_token_id",
        "bos_token_id",
        "num_beams",
        "suppress_tokens",
        "lang_to_id",
    ],
    "tokenizer_config.json": [
        "model_max_length",
        "bos_token",
        "eos_token",
        "pad_token",
        "tokenizer_class",
        "chat_template",
    ],
    "config.json": [
        *("hidden_size", "n_layer", "n_embd", "num_attention_heads", "vocab_size", "image_size", "patch_size"),
        *("num_channels", "max_position_embeddings", "num_mel_bins", "id2label", "architectures", "layer_norm_eps"),
    ],
    "model.safetensors.index.json": ["weight_map", "metadata"],
    "adapter_config.json": ["r", "base_model_name_or_path", "target_modules"],
}
"""Fields of files that other libraries write."""


def spoil_tokenizer(path: Path, draw: random.Random) -> None:
    """Exchange one to three parts of a tokenizer."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    for name in draw.sample([*PARTS], draw.randint(1, 3)):
        whole[name] = draw.choice(PARTS[name])
    path.write_text(json.dumps(whole))


def spoil_folder(folder: Path, draw: random.Random) -> None:
    """Exchange fields of a file of a public folder, which may not have it."""
    name = draw.choice([*FIELDS])
    path = folder / name
    whole = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for field in draw.sample(FIELDS[name], draw.randint(1, 2)):
        whole[field] = draw.choice(NUMBERS)
    path.write_text(json.dumps(whole))
    if name == "model.safetensors.index.json":
        (folder / "model.safetensors").unlink()
