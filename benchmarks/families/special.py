"""What single families need beside the rules for all: fields of a config that make no model as they are, and inputs
that the names in a signature do not tell."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

VOCABULARY = 128
EXAMPLES, LENGTH = 2, 13

TIMES = {"prediction_length": 7, "context_length": 32}
RESNET = {
    "model_type": "resnet",
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "embedding_size": 8,
    "out_features": ["stage4"],
}
BACKBONE = {"backbone": None, "backbone_config": RESNET, "use_timm_backbone": False}
DINO = {
    "model_type": "dinov2",
    "image_size": 96,
    "patch_size": 16,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
SWIN = {
    "model_type": "swin",
    "embed_dim": 24,
    "depths": [1, 1, 1, 1],
    "num_heads": [2, 2, 2, 2],
    "window_size": 4,
    "image_size": 64,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
HEAD = {"head_dim": 16}
GROUPS = {"upsample_groups": 64}
FILTERS = {"num_filters": 4}
MAPS = {"backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]]}
DROPOUT = {"dropout_rate": 0.0}
START = {"vision_start_token_id": 7}
ATTENDS = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "n_shared_experts": 1}
SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}

CONFIGS: dict[str, dict[str, Any]] = {
    "esm": {"vocab_size": VOCABULARY, "pad_token_id": 1, "mask_token_id": 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2},
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), TIMES),
    **dict.fromkeys(("detr", "conditional_detr", "dab-detr", "deformable_detr", "table-transformer"), BACKBONE),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text", "ministral"), HEAD),
    "granitemoehybrid": ATTENDS,
    "qwen4_exp_text": {
        **ATTENDS,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "head_dim": 16,
        "rotary_dim": 16,
    },
    "edgetam_vision_model": {
        "backbone_channel_list": [1024, 512, 256, 64],
        "backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]],
    },
    "bamba": {"num_hidden_layers": 2, "attn_layer_indices": [1]},
    "nemotron": {"num_key_value_heads": 4},
    "deepseek_v2": {**EXPERTS, "head_dim": 16},
    "deepseek_ocr2_text": {
        **EXPERTS,
        "num_hidden_layers": 2,
        "mlp_layer_types": ["dense", "sparse"],
    },
    "dots1": EXPERTS,
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 24},
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [3, 3, 2]}
    },
    "cohere_compass_text": {"rope_parameters": dict.fromkeys(("full_attention", "sliding_attention"), SECTIONS)},
    "lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
    "zamba2": {"num_hidden_layers": 2, "layers_block_type": ["mamba", "hybrid"]},
    "mamba2": {"hidden_size": 64, "num_heads": 8, "head_dim": 16},
    **dict.fromkeys(
        ("mimi", "mimi_decoder", "pocket_tts_audio_tokenizer", "pocket_tts_audio_tokenizer_decoder"),
        GROUPS,
    ),
    "chameleon": {"vocabulary_map": {"<image>": 4}},
    "emu3": {"vocabulary_map": {"<|extra_200|>": 4, "<image>": 5}},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "vits": {"vocab_size": VOCABULARY},
    "step3p5": {"sliding_window": 6},
    "step3p7_text": {"sliding_window": 6},
    "blip-2": {"image_token_id": 5},
    "instructblip": {"image_token_id": 5},
    "instructblipvideo": {"video_token_id": 5},
    "llama4_vision_model": {
        "intermediate_size": 256,
        "projector_input_dim": 64,
        "projector_output_dim": 64,
        "vision_output_dim": 64,
    },
    "sam2_hiera_det_model": {"hidden_size": 96},
    "sam3_tracker": {"image_size": 84},
    "shieldgemma2": {"yes_token_index": 8, "no_token_index": 9},
    "timm_backbone": {"backbone": "vit_tiny_patch16_224", "use_pretrained_backbone": False},
    "efficientloftr": {"hidden_size": 256},
    "dots3_note_audio_encoder": {"hidden_size": 64, "num_attention_heads": 4, "adapter_input_size": 64},
    "deepseek_ocr2_sam_vision_model": {"downsample_channels": [32, 64]},
    **dict.fromkeys(
        (
            "vibevoice_acoustic_tokenizer",
            "vibevoice_acoustic_tokenizer_encoder",
            "vibevoice_acoustic_tokenizer_decoder",
        ),
        FILTERS,
    ),
    "granite4_vision": {"deepstack_layer_map": []},
    "granite_docling_vision": {"image_size": 128},
    "lw_detr": {"projector_scale_factors": [1.0]},
    "mllama_vision_model": {"intermediate_layers_indices": [0, 1]},
    "vitmatte": {"fusion_hidden_sizes": [256, 128, 64, 32]},
    "zoedepth": {"bottleneck_features": 64},
    "oneformer": {"backbone_config": SWIN},
    **dict.fromkeys(("sam2_vision_model", "sam3_vision_model"), MAPS),
    "pix2struct_text_model": {"initializer_range": 0.02},
    **dict.fromkeys(("t5gemma2_text", "t5gemma2_decoder"), DROPOUT),
    "moonshine_streaming": {"num_key_value_heads": 4},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 24},
    **dict.fromkeys(("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"), START),
    "lw_detr_vit": {"image_size": 64, "num_windows": 4},
    "muse_spark_audio": {"num_hidden_layers": 4},
    "dory": {"num_hidden_layers": 4, "n_input_layers": 1, "n_output_layers": 1},
    "sam2_video": {
        "image_size": 96,
        "memory_attention_rope_feat_sizes": [6, 6],
        "prompt_encoder_config": {"image_size": 96},
    },
    "depth_pro": {
        "patch_size": 96,
        "intermediate_hook_ids": [1, 0],
        "intermediate_feature_dims": [32, 32],
        "scaled_images_feature_dims": [64, 64, 32],
        "fusion_hidden_size": 32,
        **dict.fromkeys(("image_model_config", "patch_model_config", "fov_model_config"), DINO),
    },
    "janus_vqgan": {"num_patches": 4, "base_channels": 32},
    "molmo2": {"adapter_config": {"vision_feature_layer": [1, 0]}},
}
"""By model type."""


def _ids(length: int = LENGTH) -> Tensor:
    return torch.randint(10, 50, (EXAMPLES, length))


def _mask(length: int = LENGTH) -> Tensor:
    return torch.ones(EXAMPLES, length, dtype=torch.long)


def _text(length: int = LENGTH, **more: Tensor) -> dict[str, Tensor]:
    return {"input_ids": _ids(length), "attention_mask": _mask(length), **more}


def _with_images(count: int, token: int = 5, **more: Tensor) -> dict[str, Tensor]:
    """A text that begins with the places of an image."""
    ids = torch.cat([torch.full((EXAMPLES, count), token), _ids(6)], 1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **more}


def _picture(size: int, *before: int, channels: int = 3) -> Tensor:
    return torch.randn(EXAMPLES, *before, channels, size, size)


def _rows(config: Any, count: int = 16) -> Tensor:
    """Patches as rows of numbers."""
    return torch.randn(EXAMPLES, count, 3 * config.patch_size**2)


def _places(count: int = 4) -> Tensor:
    return torch.cartesian_prod(torch.arange(count), torch.arange(count)).repeat(EXAMPLES, 1, 1)


def _joined_sound(config: Any) -> dict[str, Tensor]:
    return {"input_features": torch.randn(config.num_mel_bins, 200), "feature_lens": torch.tensor([120, 80])}


def _naflex(config: Any) -> dict[str, Tensor]:
    config = getattr(config, "vision_config", config)
    shapes = torch.tensor([[4, 4]] * EXAMPLES)
    return {"pixel_values": _rows(config), "pixel_attention_mask": _mask(16), "spatial_shapes": shapes}


def _lxmert(config: Any) -> dict[str, Tensor]:
    return _text(
        visual_feats=torch.randn(EXAMPLES, 6, config.visual_feat_dim),
        visual_pos=torch.rand(EXAMPLES, 6, config.visual_pos_dim),
    )


def _sam3_encoder(config: Any) -> dict[str, Any]:
    vision = torch.randn(EXAMPLES, config.hidden_size, 4, 4)
    return {
        "vision_features": [vision],
        "vision_pos_embeds": [torch.randn_like(vision)],
        "text_features": torch.randn(EXAMPLES, 5, config.hidden_size),
        "spatial_sizes": [(4, 4)],
    }


def _sam3_decoder(config: Any) -> dict[str, Any]:
    vision = torch.randn(EXAMPLES, 16, config.hidden_size)
    return {
        "vision_features": vision,
        "vision_pos_encoding": torch.randn_like(vision),
        "text_features": torch.randn(EXAMPLES, 5, config.hidden_size),
        "spatial_shapes": torch.tensor([[4, 4]]),
    }


def _sam3_masks(config: Any) -> dict[str, Any]:
    width = config.hidden_size
    return {
        "decoder_queries": torch.randn(EXAMPLES, 7, width),
        "backbone_features": [torch.randn(EXAMPLES, width, size, size) for size in (16, 8, 4)],
        "encoder_hidden_states": torch.randn(EXAMPLES, 16, width),
        "prompt_features": torch.randn(EXAMPLES, 5, width),
    }


def _idefics(config: Any) -> dict[str, Tensor]:
    images = _picture(config.vision_config.image_size, 1)
    return _text(pixel_values=images, image_attention_mask=torch.ones(EXAMPLES, LENGTH, 1, dtype=torch.long))


def _kosmos(config: Any) -> dict[str, Tensor]:
    places = torch.zeros(EXAMPLES, LENGTH + config.latent_query_num, dtype=torch.long)
    places[:, : config.latent_query_num] = 1
    return _text(
        LENGTH + config.latent_query_num,
        pixel_values=_picture(config.vision_config.image_size),
        image_embeds_position_mask=places,
    )


def _mllama(config: Any) -> dict[str, Tensor]:
    return {
        "pixel_values": _picture(config.image_size, 1, config.max_num_tiles),
        "aspect_ratio_ids": torch.ones(EXAMPLES, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(EXAMPLES, 1, config.max_num_tiles, dtype=torch.long),
    }


def _pi0(config: Any) -> dict[str, Tensor]:
    return {"action_embeds": torch.randn(EXAMPLES, 5, 64), **_text()}


def _dit(config: Any) -> dict[str, Tensor]:
    return {
        "hidden_states": torch.randn(EXAMPLES, 20, config.mel_dim),
        "condition_vector": torch.randn(EXAMPLES, 30, config.mel_dim),
        "speaker_embedding": torch.randn(EXAMPLES, 20, config.enc_emb_dim),
        "quantized_code": torch.randint(0, 8, (EXAMPLES, 10)),
        "time_step": torch.tensor(0.5),
    }


def _seggpt(config: Any) -> dict[str, Tensor]:
    height, width = config.image_size if isinstance(config.image_size, (list, tuple)) else (config.image_size,) * 2
    half = torch.randn(EXAMPLES, 3, height // 2, width)
    return {"pixel_values": half, "prompt_pixel_values": half.clone(), "prompt_masks": half.clone()}


def _pix2struct(config: Any) -> dict[str, Tensor]:
    places = torch.arange(1.0, LENGTH + 1).repeat(EXAMPLES, 1)
    width = config.vision_config.patch_embed_hidden_size
    patches = torch.cat([torch.stack([places, places], -1), torch.randn(EXAMPLES, LENGTH, width)], -1)
    return {"flattened_patches": patches, "decoder_input_ids": _ids(7)}


def _session(config: Any) -> dict[str, Any]:
    """The first frame of a film, in which a point is on the object that is followed."""
    family = config.model_type
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    kind = next(part for name, part in vars(module).items() if name.endswith("VideoInferenceSession"))
    size = 4 * config.vision_config.backbone_feature_sizes[0][0] if "sam3" not in family else config.image_size
    session = kind(torch.randn(2, 3, size, size), size, size, dtype=torch.float32)
    point = {"point_coords": torch.full((1, 1, 1, 2), size / 3), "point_labels": torch.ones(1, 1, 1, dtype=torch.int)}
    session.add_point_inputs(session.obj_id_to_idx(1), 0, point)
    session.obj_with_new_inputs = [1]
    return {"inference_session": session, "frame_idx": 0}


INPUTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "audioflamingo3_encoder": lambda config: {
        "input_features": torch.randn(EXAMPLES, config.num_mel_bins, 2 * config.max_source_positions),
        "input_features_mask": _mask(2 * config.max_source_positions),
    },
    "blip-2": lambda config: _with_images(
        config.num_query_tokens, pixel_values=_picture(config.vision_config.image_size), decoder_input_ids=_ids(7)
    ),
    "instructblip": lambda config: _with_images(
        config.num_query_tokens,
        pixel_values=_picture(config.vision_config.image_size),
        qformer_input_ids=_ids(5),
        decoder_input_ids=_ids(7),
    ),
    "instructblipvideo": lambda config: _with_images(
        4 * config.num_query_tokens,
        pixel_values=_picture(config.vision_config.image_size, 4),
        qformer_input_ids=_ids(5),
        decoder_input_ids=_ids(7),
    ),
    "blip_2_qformer": lambda config: {
        "query_embeds": torch.randn(EXAMPLES, 7, config.hidden_size),
        "encoder_hidden_states": torch.randn(EXAMPLES, 9, config.encoder_hidden_size),
    },
    "dia": lambda config: _text(
        decoder_input_ids=torch.randint(10, 50, (EXAMPLES, 7, config.decoder_config.num_channels))
    ),
    "dia_decoder": lambda config: {
        "input_ids": torch.randint(10, 50, (EXAMPLES, 7, config.num_channels)),
        "encoder_hidden_states": torch.randn(EXAMPLES, 9, config.cross_hidden_size),
    },
    "fun_asr_nano_encoder": lambda config: {
        "input_features": torch.randn(EXAMPLES, 20, config.input_size),
        "input_features_mask": _mask(20),
    },
    "gemma3n_audio": lambda config: {
        "audio_mel": torch.randn(EXAMPLES, 64, config.input_feat_size),
        "audio_mel_mask": torch.zeros(EXAMPLES, 64, dtype=torch.bool),
    },
    "gemma4_vision": lambda config: {"pixel_values": _rows(config), "pixel_position_ids": _places()},
    **dict.fromkeys(
        ("granite_speech5_ctc", "granite_speech5_encoder"),
        lambda config: {"input_features": torch.randn(EXAMPLES, 24, 320)},
    ),
    **dict.fromkeys(("idefics",), _idefics),
    "kosmos-2": _kosmos,
    "lxmert": _lxmert,
    **dict.fromkeys(
        ("minicpm_ocr_vision", "minicpmv4_6_vision", "minicpmv4_7_vision"),
        lambda config: {
            "pixel_values": torch.randn(1, 3, config.patch_size, 32 * config.patch_size),
            "target_sizes": torch.tensor([[4, 4], [4, 4]]),
        },
    ),
    "mllama_vision_model": _mllama,
    "molmo2_vision": lambda config: {
        "pixel_values": torch.randn(EXAMPLES, config.image_size[0] // 14 * (config.image_size[1] // 14), 588)
    },
    "muse_glimmer_assistant": lambda config: {
        "noise_embeds": torch.randn(EXAMPLES, LENGTH, config.hidden_size),
        "context_hidden_states": torch.randn(EXAMPLES, LENGTH, 5 * config.hidden_size),
    },
    **dict.fromkeys(
        ("musicgen", "musicgen_melody"),
        lambda config: _text(decoder_input_ids=torch.randint(10, 50, (EXAMPLES * config.decoder.num_codebooks, 7))),
    ),
    "oneformer": lambda config: {
        "pixel_values": _picture(64),
        "task_inputs": torch.randint(10, 50, (EXAMPLES, config.task_seq_len)),
    },
    "pe_audio": lambda config: _text(input_values=torch.randn(EXAMPLES, 1, 9600)),
    "phi4_multimodal_audio": lambda config: {
        "hidden_states": torch.randn(EXAMPLES, 64, config.input_size),
        "mask": torch.ones(EXAMPLES, 64, dtype=torch.bool),
    },
    "pi0": _pi0,
    "pix2struct": _pix2struct,
    "pp_ocrv5_mobile_rec": lambda config: {"pixel_values": torch.randn(EXAMPLES, 3, 48, 320)},
    **dict.fromkeys(("qwen2_5_omni_audio_encoder", "qwen3_omni_moe_audio_encoder"), _joined_sound),
    "qwen2_5_omni_dit": _dit,
    "qwen3_asr_encoder": lambda config: {
        "input_features": torch.randn(EXAMPLES, config.num_mel_bins, 2 * config.n_window),
        "input_features_mask": _mask(2 * config.n_window),
    },
    "qwen3_omni_moe_talker_code_predictor": lambda config: {
        "inputs_embeds": torch.randn(EXAMPLES, 5, config.hidden_size)
    },
    **dict.fromkeys(("sam3_detr_encoder", "sam3_lite_text_detr_encoder"), _sam3_encoder),
    **dict.fromkeys(("sam3_detr_decoder", "sam3_lite_text_detr_decoder"), _sam3_decoder),
    **dict.fromkeys(("sam3_mask_decoder", "sam3_lite_text_mask_decoder"), _sam3_masks),
    "seggpt": _seggpt,
    "siglip2": lambda config: _text(**_naflex(config)),
    "siglip2_vision_model": _naflex,
    "speech-encoder-decoder": lambda config: {"inputs": torch.randn(EXAMPLES, 4000), "decoder_input_ids": _ids(7)},
    "speecht5": lambda config: {
        "input_values": torch.randn(EXAMPLES, LENGTH, config.hidden_size),
        "decoder_input_values": torch.randn(EXAMPLES, 7, config.hidden_size),
    },
    **dict.fromkeys(("sam2_hiera_det_model", "sam2_vision_model"), lambda config: {"pixel_values": _picture(96)}),
    **dict.fromkeys(("sam2_video", "sam3_tracker_video", "edgetam_video"), _session),
    "tvp": lambda config: _text(pixel_values=_picture(448, config.num_frames)),
    "unlimited_ocr_vision_encoder": lambda config: {"patch_embeds": torch.randn(EXAMPLES, config.hidden_size, 4, 4)},
    "vibevoice_acoustic_tokenizer_encoder": lambda config: {"hidden_states": torch.randn(EXAMPLES, 1, 6400)},
    "videoprism": lambda config: _text(pixel_values_videos=_picture(_size(config), config.vision_config.num_frames)),
    "voxtral_realtime": lambda config: {
        "input_ids": _ids(4),
        "input_features": torch.randn(EXAMPLES, config.audio_config.num_mel_bins, 32),
    },
    "voxtral_realtime_text": lambda config: _text(t_cond=torch.randn(1, 1, config.hidden_size)),
    "xclip": lambda config: _text(pixel_values=_picture(_size(config), config.vision_config.num_frames)),
    "muse_spark_audio": lambda config: {"input_values": torch.randn(EXAMPLES, 3840)},
    "clvp": lambda config: _text(input_features=torch.randn(EXAMPLES, 80, 30)),
    "blt_local_encoder": lambda config: {
        "input_ids": _ids(),
        "patch_embeds": torch.randn(EXAMPLES, 4, config.hidden_size),
        "num_patches": 4,
        "patch_ids": torch.arange(LENGTH).div(4, rounding_mode="floor").repeat(EXAMPLES, 1),
    },
    "blt_local_decoder": lambda config: {
        "inputs_embeds": torch.randn(EXAMPLES, LENGTH, config.hidden_size),
        "patch_embeds": torch.randn(EXAMPLES, LENGTH, config.hidden_size_global),
    },
    "dots3_note_audio_encoder": lambda config: {
        "input_features": torch.randn(EXAMPLES, config.feature_size, 80),
        "chunk_sample_lengths": torch.tensor([80, 56]) * config.hop_length,
    },
    "molmo2_adapter": lambda config: {
        "image_features": torch.randn(EXAMPLES, 16, config.hidden_size * len(config.vision_feature_layer)),
        "pooled_patches_idx": torch.arange(16 * EXAMPLES).view(-1, 4),
    },
    "depth_pro": lambda config: {"pixel_values": _picture(4 * config.patch_size)},
    "efficientloftr": lambda config: {"pixel_values": _picture(128, 2)},
    "kyutai_speech_to_text": lambda config: {
        "input_ids": torch.randint(10, 50, (EXAMPLES, 13, config.num_codebooks + 1))
    },
    **dict.fromkeys(
        ("neucodec", "xcodec2"),
        lambda config: {
            "input_values": torch.randn(EXAMPLES, 1, 4800),
            "input_features": torch.randn(EXAMPLES, 15, 160),
        },
    ),
    **dict.fromkeys(
        ("pe_video_encoder",), lambda config: {"pixel_values_videos": torch.randn(EXAMPLES, 2, 3, 336, 336)}
    ),
    "pe_video": lambda config: _text(pixel_values_videos=torch.randn(EXAMPLES, 2, 3, 336, 336)),
    "qwen3_omni_moe_talker_text": lambda config: {"inputs_embeds": torch.randn(EXAMPLES, 13, config.hidden_size)},
    "rf_detr": lambda config: {"pixel_values": _picture(112)},
    "t5gemma2_decoder": lambda config: _text(encoder_hidden_states=torch.randn(EXAMPLES, 9, config.hidden_size)),
    "timm_backbone": lambda config: {"pixel_values": _picture(224)},
    "deepseek_ocr2_vision": lambda config: {"pixel_values": _picture(1024)},
    "rf_detr_dinov2": lambda config: {"pixel_values": _picture(4 * 14 * 2)},
}
"""By model type."""


def _size(config: Any) -> int:
    size = config.vision_config.image_size
    return size if isinstance(size, int) else size[0]
