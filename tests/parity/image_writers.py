"""A tiny folder of each kind of model that writes about an image, with random weights and odd sizes.

A new kind is one more row of IMAGE_WRITERS; `test_every_image_writer.py` then compares it, decodes with it, runs it,
looks at it, trains from it and writes it back.
"""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from folders import scramble
from public_models import word_tokenizer
from tokenizers import processors

VIT = {
    "image_size": 12,
    "patch_size": 3,
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 28,
}

SWIN = {"image_size": 24, "patch_size": 2, "embed_dim": 12, "depths": [2, 1], "num_heads": [3, 6], "window_size": 3}

BART = {
    "vocab_size": 53,
    "d_model": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 3,
    "decoder_ffn_dim": 28,
    "max_position_embeddings": 41,
    "pad_token_id": 50,
    "bos_token_id": 51,
    "eos_token_id": 52,
}

GPT2 = {
    "vocab_size": 53,
    "n_embd": 20,
    "n_layer": 2,
    "n_head": 5,
    "n_inner": 28,
    "n_positions": 41,
    "bos_token_id": 51,
    "eos_token_id": 52,
}

BERT = {
    "vocab_size": 53,
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 28,
    "max_position_embeddings": 41,
}

IDS = {"pad_token_id": 50, "bos_token_id": 51, "eos_token_id": 52, "decoder_start_token_id": 51}


def joined(encoder: Any, decoder: Any) -> Any:
    """The config of a model of two parts."""
    found = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    for name, value in IDS.items():
        setattr(found, name, value)
    return found


def blip() -> Any:
    text = {**BERT, "bos_token_id": 51, "sep_token_id": 52, "pad_token_id": 50, "encoder_hidden_size": 15}
    images = {**VIT, "hidden_size": 15, "num_attention_heads": 3}
    return transformers.BlipConfig(text_config={**text, "eos_token_id": 2}, vision_config=images)


@dataclass(frozen=True)
class ImageWriter:
    """A kind of model: its config there, what scales its images, and what its folder says of writing."""

    config: Callable[[], Any]
    size: Mapping[str, Any]
    """`preprocessor_config.json` beside the numbers of pixels."""
    task: str
    """The task that its folder is opened for."""
    generation: Mapping[str, Any] = field(default_factory=dict)

    def write(self, place: Path) -> Any:
        """Write the folder of a model; the model, in evaluation mode."""
        torch.manual_seed(5)
        config = deepcopy(self.config())
        blips = config.model_type == "blip"
        kind = transformers.BlipForConditionalGeneration if blips else transformers.VisionEncoderDecoderModel
        model = scramble(kind(config))
        for name, value in {**({} if blips else IDS), "max_length": 15, **self.generation}.items():
            setattr(model.generation_config, name, value)
        model.save_pretrained(place)
        write_processor(place, self.size)
        return model.eval()


def write_processor(place: Path, size: Mapping[str, Any]) -> None:
    """The files that say how images and texts are read."""
    numbers = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.3, 0.4, 0.5]}
    (place / "preprocessor_config.json").write_text(json.dumps({**size, **numbers}))
    words = word_tokenizer()
    signs = [(token, words.token_to_id(token)) for token in ("<s>", "</s>")]
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=signs)
    words.save(str(place / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z", "pad_token": ":"}
    (place / "tokenizer_config.json").write_text(json.dumps(special))


SQUARE = {"image_processor_type": "ViTImageProcessor", "size": {"height": 12, "width": 12}}

PADDED = {
    "image_processor_type": "DonutImageProcessor",
    "size": {"height": 36, "width": 20},
    "do_align_long_axis": True,
    "do_thumbnail": True,
    "do_pad": True,
}

BEAMS = {"num_beams": 3, "early_stopping": True, "length_penalty": 1.5}

IMAGE_WRITERS: dict[str, ImageWriter] = {
    "trocr": ImageWriter(
        lambda: joined(
            transformers.ViTConfig(**VIT, qkv_bias=False),
            transformers.TrOCRConfig(**BART, cross_attention_hidden_size=20),
        ),
        SQUARE,
        "read",
        BEAMS,
    ),
    "trocr-waves": ImageWriter(
        lambda: joined(
            transformers.DeiTConfig(**VIT),
            transformers.TrOCRConfig(
                **{**BART, "d_model": 20, "decoder_attention_heads": 5, "pad_token_id": 1},
                use_learned_position_embeddings=False,
                layernorm_embedding=False,
                scale_embedding=True,
                activation_function="relu",
            ),
        ),
        {**SQUARE, "image_processor_type": "DeiTImageProcessor", "do_center_crop": False},
        "read",
    ),
    "donut": ImageWriter(
        lambda: joined(
            transformers.DonutSwinConfig(**SWIN),
            transformers.MBartConfig(**{**BART, "is_decoder": True, "add_cross_attention": True}, scale_embedding=True),
        ),
        PADDED,
        "read",
        {"forced_eos_token_id": 52},
    ),
    "bart": ImageWriter(
        lambda: joined(transformers.BeitConfig(**VIT), transformers.BartConfig(**BART)),
        SQUARE,
        "caption",
    ),
    "vit-gpt2": ImageWriter(
        lambda: joined(transformers.ViTConfig(**VIT), transformers.GPT2Config(**GPT2, add_cross_attention=True)),
        SQUARE,
        "caption",
        {"num_beams": 4, "no_repeat_ngram_size": 2},
    ),
    "swin-gpt2": ImageWriter(
        lambda: joined(transformers.SwinConfig(**SWIN), transformers.GPT2Config(**GPT2, add_cross_attention=True)),
        {**SQUARE, "size": {"height": 24, "width": 24}},
        "caption",
    ),
    "vit-bert": ImageWriter(
        lambda: joined(
            transformers.ViTConfig(**{**VIT, "hidden_size": 15, "num_attention_heads": 3}),
            transformers.BertConfig(**BERT, is_decoder=True, add_cross_attention=True),
        ),
        SQUARE,
        "caption",
    ),
    "vit-roberta": ImageWriter(
        lambda: joined(
            transformers.Dinov2Config(**{key: value for key, value in VIT.items() if key != "intermediate_size"}),
            transformers.RobertaConfig(
                **BERT, is_decoder=True, add_cross_attention=True, type_vocab_size=1, pad_token_id=1
            ),
        ),
        SQUARE,
        "caption",
    ),
    "blip": ImageWriter(blip, {**SQUARE, "image_processor_type": "BlipImageProcessor"}, "caption", BEAMS),
}
