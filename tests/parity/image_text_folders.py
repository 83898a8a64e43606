"""Tiny folders of models that write about an image and a text, with random weights and odd sizes, and their processors.

A new kind is one more row of KINDS; `test_image_text_models.py` then runs it, measures it and looks at it.
"""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from folders import scramble
from public_models import word_tokenizer
from tokenizers import AddedToken

VISION = {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 28}

TEXT = {
    "vocab_size": 61,
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "intermediate_size": 28,
    "max_position_embeddings": 128,
    "bos_token_id": 51,
    "eos_token_id": 52,
    "pad_token_id": 50,
}

BART_SIZES = {"layers": 2, "attention_heads": 5, "ffn_dim": 28}

TEMPLATE = (
    "{{% for one in messages %}}{{% for part in one['content'] %}}{{% if part['type'] == 'image' %}}{image}"
    "{{% else %}}{{{{ part['text'] }}}}{{% endif %}}{{% endfor %}}{{% endfor %}}"
)


def tokenizer(*signs: str, **more: Any) -> Any:
    words = word_tokenizer()
    words.add_special_tokens([AddedToken(sign, special=True, normalized=False) for sign in signs])
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z", "pad_token": ":"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special, **more)


def llava(place: Path) -> Any:
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, image_size=12, patch_size=3),
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=53,
        image_seq_length=16,
        vision_feature_layer=-1,
    )
    images = transformers.CLIPImageProcessor(size={"height": 12, "width": 12}, do_center_crop=False)
    processor = transformers.LlavaProcessor(
        images, tokenizer("<image>"), patch_size=3, vision_feature_select_strategy="default", image_token="<image>",
        num_additional_image_tokens=1,
    )  # fmt: skip
    processor.save_pretrained(place)
    return transformers.LlavaForConditionalGeneration(config)


def git(place: Path) -> Any:
    sizes = {name: value for name, value in TEXT.items() if name != "num_key_value_heads"}
    config = transformers.GitConfig(**sizes, vision_config={**VISION, "image_size": 12, "patch_size": 3})
    images = transformers.CLIPImageProcessor(size={"height": 12, "width": 12}, do_center_crop=False)
    transformers.GitProcessor(images, tokenizer(cls_token="<s>", sep_token="</s>")).save_pretrained(place)
    return transformers.GitForCausalLM(config)


def write_qwen_processor(place: Path) -> None:
    """The files that say how images and texts are read."""
    images = transformers.Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 64, "longest_edge": 2048})
    images.save_pretrained(place)
    tokenizer("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>").save_pretrained(place)
    template = TEMPLATE.format(image="<|vision_start|><|image_pad|><|vision_end|>")
    (place / "chat_template.jinja").write_text(template)


def qwen2_vl(place: Path) -> Any:
    config = transformers.Qwen2VLConfig(
        vision_config={"depth": 2, "embed_dim": 20, "hidden_size": 20, "num_heads": 5, "patch_size": 4, "mlp_ratio": 2},
        text_config={
            **TEXT,
            "rope_parameters": {"type": "default", "mrope_section": [1, 1, 0], "rope_theta": 10_000.0},
        },
        vision_start_token_id=53,
        vision_end_token_id=54,
        image_token_id=55,
        video_token_id=56,
    )
    write_qwen_processor(place)
    return transformers.Qwen2VLForConditionalGeneration(config)


def llava_next(place: Path) -> Any:
    """The whole image, then its tiles in its own shape, with a token at the end of each line."""
    pinpoints = [[12, 24], [24, 12], [24, 24], [24, 36]]
    config = transformers.LlavaNextConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, image_size=12, patch_size=3),
        text_config=transformers.LlamaConfig(**{**TEXT, "max_position_embeddings": 256}),
        image_token_id=53,
        image_grid_pinpoints=pinpoints,
        vision_feature_layer=-1,
    )
    images = transformers.LlavaNextImageProcessorPil(
        size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12}, image_grid_pinpoints=pinpoints
    )
    processor = transformers.LlavaNextProcessor(
        images, tokenizer("<image>"), patch_size=3, vision_feature_select_strategy="default", image_token="<image>",
        num_additional_image_tokens=1,
    )  # fmt: skip
    processor.save_pretrained(place)
    return transformers.LlavaNextForConditionalGeneration(config)


def paligemma(place: Path) -> Any:
    """The image and the question see each other; the answer is causal."""
    config = transformers.PaliGemmaConfig(
        vision_config=transformers.SiglipVisionConfig(**VISION, image_size=12, patch_size=3, vision_use_head=False),
        text_config=transformers.GemmaConfig(**TEXT, head_dim=4),
        image_token_id=53,
        projection_dim=20,
    )
    images = transformers.SiglipImageProcessor(size={"height": 12, "width": 12})
    images.image_seq_length = 16
    transformers.PaliGemmaProcessor(images, tokenizer("<image>")).save_pretrained(place)
    return transformers.PaliGemmaForConditionalGeneration(config)


def idefics3(place: Path, kind: str = "Idefics3") -> Any:
    """Tiles that tokens name, then the whole image."""
    tiles = [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2, 3)]
    signs = ("<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>", *tiles)
    config = getattr(transformers, f"{kind}Config")(
        vision_config=getattr(transformers, f"{kind}VisionConfig")(**VISION, image_size=12, patch_size=3),
        text_config=transformers.LlamaConfig(**{**TEXT, "vocab_size": 71}),
        image_token_id=54,
        scale_factor=2,
    )
    images = getattr(transformers, f"{kind}ImageProcessorPil")(
        size={"longest_edge": 36}, max_image_size={"longest_edge": 12}
    )
    transformers.Idefics3Processor(images, tokenizer(*signs), image_seq_len=4).save_pretrained(place)
    return getattr(transformers, f"{kind}ForConditionalGeneration")(config)


def smolvlm(place: Path) -> Any:
    """The same, with a processor that needs libraries for videos."""
    model = idefics3(place, "SmolVLM")
    for file in place.glob("*processor_config.json"):
        file.write_text(file.read_text().replace("Idefics3Processor", "SmolVLMProcessor"))
    return model


def vit_msn(place: Path) -> Any:
    """Two parts, of which foveate has no equal of the first."""
    encoder = transformers.ViTMSNConfig(**VISION, image_size=12, patch_size=3)
    decoder = transformers.GPT2Config(
        vocab_size=61, n_embd=20, n_layer=2, n_head=5, n_positions=41, add_cross_attention=True
    )
    transformers.ViTImageProcessor(size={"height": 12, "width": 12}).save_pretrained(place)
    tokenizer().save_pretrained(place)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.decoder_start_token_id = 51
    return model


def qwen2_5_vl(place: Path) -> Any:
    """The same, with patches that its encoder sorts by windows."""
    text = {**TEXT, "rope_parameters": {"type": "default", "mrope_section": [1, 1, 0], "rope_theta": 10_000.0}}
    vision = {"depth": 2, "hidden_size": 20, "out_hidden_size": 20, "num_heads": 5, "patch_size": 4}
    config = transformers.Qwen2_5_VLConfig(
        vision_config={**vision, "intermediate_size": 28, "window_size": 16, "fullatt_block_indexes": [1]},
        text_config=text,
        vision_start_token_id=53,
        vision_end_token_id=54,
        image_token_id=55,
        video_token_id=56,
    )
    write_qwen_processor(place)
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


def blip_2(place: Path, kind: str = "Blip2") -> Any:
    """Learned queries read the image; the words read the queries."""
    reader = {**VISION, "vocab_size": 61, "encoder_hidden_size": 20, "max_position_embeddings": 64}
    text = {"vocab_size": 54, "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "ffn_dim": 28}
    ends = {"bos_token_id": 51, "eos_token_id": 52, "pad_token_id": 50}
    config = getattr(transformers, f"{kind}Config")(
        vision_config={**VISION, "image_size": 12, "patch_size": 3},
        qformer_config=reader,
        text_config=transformers.OPTConfig(**text, **ends, max_position_embeddings=64, word_embed_proj_dim=20),
        num_query_tokens=9,
        image_token_index=53,
    )
    images = transformers.BlipImageProcessorPil(size={"height": 12, "width": 12})
    tokenizers = [tokenizer("<image>")] + [tokenizer()] * (kind == "InstructBlip")
    getattr(transformers, f"{kind}Processor")(images, *tokenizers, num_query_tokens=9).save_pretrained(place)
    return getattr(transformers, f"{kind}ForConditionalGeneration")(config)


def instructblip(place: Path) -> Any:
    """The same, with queries that read the question as well."""
    return blip_2(place, "InstructBlip")


def florence2(place: Path) -> Any:
    """An encoder that reads image and question, behind one token for the whole image; a decoder apart."""
    vision = {"depths": (1, 1), "patch_size": (2, 2), "patch_stride": (2, 2), "patch_padding": (0, 0)}
    heads = {"num_heads": (2, 5), "num_groups": (2, 5), "embed_dim": (10, 20), "patch_prenorm": (False, True)}
    more = {"window_size": 3, "projection_dim": 20, "drop_path_rate": 0.0, "max_position_embeddings": 10}
    parts = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in BART_SIZES.items()}
    text = {"vocab_size": 61, "d_model": 20, "max_position_embeddings": 128, **parts}
    ends = {"bos_token_id": 51, "eos_token_id": 52, "pad_token_id": 50, "decoder_start_token_id": 52}
    config = transformers.Florence2Config(
        vision_config={**vision, **heads, **more},
        text_config=transformers.BartConfig(**text, **ends, forced_eos_token_id=None),
        image_token_id=53,
    )
    images = transformers.CLIPImageProcessorPil(size={"height": 16, "width": 16}, do_center_crop=False)
    images.image_seq_length = 17
    words = tokenizer("<image>", extra_special_tokens={"image_token": "<image>"})
    transformers.Florence2Processor(images, words).save_pretrained(place)
    return transformers.Florence2ForConditionalGeneration(config)


def mllama(place: Path) -> Any:
    """Some layers of what reads the words attend to the image, which is padded to whole tiles."""
    vision = {"hidden_size": 20, "num_hidden_layers": 2, "num_global_layers": 1, "attention_heads": 5}
    sizes = {"intermediate_size": 28, "vision_output_dim": 40, "image_size": 12, "patch_size": 3}
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    config = transformers.MllamaConfig(
        vision_config={**vision, **sizes, "intermediate_layers_indices": [0]},
        text_config={**TEXT, "num_hidden_layers": 3, "cross_attention_layers": [1], "rope_parameters": rope},
        image_token_index=53,
    )
    images = transformers.MllamaImageProcessorPil(size={"height": 12, "width": 12}, max_image_tiles=4)
    transformers.MllamaProcessor(images, tokenizer("<|image|>", "<|python_tag|>")).save_pretrained(place)
    return transformers.MllamaForConditionalGeneration(config)


def internvl(place: Path) -> Any:
    """Tiles without names, then the whole image."""
    config = transformers.InternVLConfig(
        vision_config={**VISION, "image_size": [12, 12], "patch_size": [3, 3]},
        text_config=transformers.Qwen2Config(**TEXT),
        image_token_id=55,
        image_seq_length=4,
        downsample_ratio=0.5,
    )
    size = {"height": 12, "width": 12}
    transformers.GotOcr2ImageProcessorPil(size=size, crop_to_patches=True, max_patches=6).save_pretrained(place)
    signs = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    signs["video_token"] = "<video>"
    tokenizer(*signs.values(), extra_special_tokens=signs).save_pretrained(place)
    kind = {"processor_class": "InternVLProcessor", "image_seq_length": 4}
    (place / "processor_config.json").write_text(json.dumps(kind))
    (place / "chat_template.jinja").write_text(TEMPLATE.format(image="<IMG_CONTEXT>"))
    return transformers.InternVLForConditionalGeneration(config)


def gemma3(place: Path) -> Any:
    """Each token is the mean of some patches, whose own tokens see each other; layers with a window and without."""
    config = transformers.Gemma3Config(
        vision_config=transformers.SiglipVisionConfig(**VISION, image_size=12, patch_size=3, vision_use_head=False),
        text_config=transformers.Gemma3TextConfig(
            **TEXT,
            head_dim=4,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"],
            query_pre_attn_scalar=4,
        ),
        mm_tokens_per_image=4,
        boi_token_index=53,
        eoi_token_index=54,
        image_token_index=55,
    )
    signs = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    images = transformers.Gemma3ImageProcessorPil(size={"height": 12, "width": 12})
    words = tokenizer(*signs.values(), extra_special_tokens=signs)
    transformers.Gemma3Processor(images, words, image_seq_length=4).save_pretrained(place)
    return transformers.Gemma3ForConditionalGeneration(config)


KINDS = {
    "llava": llava,
    "git": git,
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "llava_next": llava_next,
    "paligemma": paligemma,
    "idefics3": idefics3,
    "smolvlm": smolvlm,
    "internvl": internvl,
    "gemma3": gemma3,
    "florence2": florence2,
    "mllama": mllama,
    "blip_2": blip_2,
    "instructblip": instructblip,
    "vit_msn": vit_msn,
}

ALONE = ("git", "vit_msn")
"""Those that are given an image alone."""


def write_folder(kind: str, folder: Path) -> Any:
    """Write the folder of a kind; transformers' model, in evaluation mode."""
    torch.manual_seed(5)
    folder.mkdir()
    model = scramble(KINDS[kind](folder))
    settings = model.generation_config
    settings.bos_token_id, settings.eos_token_id, settings.pad_token_id = 51, 52, 50
    settings.max_length, settings.max_new_tokens = None, 7
    model.save_pretrained(folder)
    return model.eval()
