"""Tiny random text-to-image models of diffusers, each with its inputs: the text is `encoder_hidden_states`."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import torch
import transformers
from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    import diffusers
    from diffusers.models import attention_processor as processors

__all__ = ["CASES", "SIDE", "TOKENS", "WORDS", "case", "processors", "save_pipelines"]

WORDS, WIDTH, SIDE = 7, 12, 4
"""Tokens of the text, their width, and patches of a side of the image."""

Case = tuple[nn.Module, dict[str, Any]]


def unet() -> Case:
    model = diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=4,
        sample_size=SIDE,
        layers_per_block=1,
    )
    return model, {"sample": _latents(SIDE), "timestep": torch.tensor(3)}


def unet_added_keys() -> Case:
    """Kandinsky's and DeepFloyd's: the image attends to text and image at once."""
    model = diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("SimpleCrossAttnDownBlock2D", "ResnetDownsampleBlock2D"),
        up_block_types=("ResnetUpsampleBlock2D", "SimpleCrossAttnUpBlock2D"),
        mid_block_type="UNetMidBlock2DSimpleCrossAttn",
        cross_attention_dim=WIDTH,
        attention_head_dim=4,
        sample_size=SIDE,
        layers_per_block=1,
    )
    return model, {"sample": _latents(SIDE), "timestep": torch.tensor(3)}


def pixart() -> Case:
    model = diffusers.PixArtTransformer2DModel(
        **_sizes(6), num_layers=2, sample_size=2 * SIDE, cross_attention_dim=12, caption_channels=WIDTH
    )
    added = {"resolution": None, "aspect_ratio": None}
    return model, {"hidden_states": _latents(), "timestep": torch.tensor([3]), "added_cond_kwargs": added}


def sana() -> Case:
    """Linear attention between places, which has no weights; cross-attention to the text."""
    model = diffusers.SanaTransformer2DModel(
        in_channels=4,
        out_channels=4,
        num_layers=2,
        num_attention_heads=2,
        attention_head_dim=6,
        num_cross_attention_heads=2,
        cross_attention_head_dim=6,
        cross_attention_dim=12,
        caption_channels=WIDTH,
        sample_size=SIDE,
    )
    return model, {"hidden_states": _latents(SIDE), "timestep": torch.tensor([0.5])}


def sd3(width: int = WIDTH) -> Case:
    model = diffusers.SD3Transformer2DModel(
        **_sizes(8),
        num_layers=2,
        sample_size=2 * SIDE,
        joint_attention_dim=width,
        caption_projection_dim=16,
        pooled_projection_dim=10,
        out_channels=4,
        pos_embed_max_size=8,
        dual_attention_layers=(0,),
        qk_norm="rms_norm",
    )
    pooled = torch.randn(1, 10)
    return model, {"hidden_states": _latents(), "pooled_projections": pooled, "timestep": torch.tensor([3])}


def flux() -> Case:
    model = diffusers.FluxTransformer2DModel(
        **_sizes(16, 1),
        num_layers=1,
        num_single_layers=1,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=10,
        axes_dims_rope=(4, 4, 8),
    )
    return model, {**_packed(), "pooled_projections": torch.randn(1, 10), "timestep": torch.tensor([0.5])}


def chroma() -> Case:
    model = diffusers.ChromaTransformer2DModel(
        **_sizes(16, 1),
        num_layers=1,
        num_single_layers=1,
        joint_attention_dim=WIDTH,
        axes_dims_rope=(4, 4, 8),
        approximator_num_channels=8,
        approximator_hidden_dim=16,
        approximator_layers=1,
    )
    return model, {**_packed(), "timestep": torch.tensor([0.5])}


def auraflow() -> Case:
    """Eight registers before the text."""
    model = diffusers.AuraFlowTransformer2DModel(
        **_sizes(8),
        sample_size=2 * SIDE,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        joint_attention_dim=WIDTH,
        caption_projection_dim=16,
        out_channels=4,
        pos_embed_max_size=64,
    )
    return model, {"hidden_states": _latents(), "timestep": torch.tensor([0.5])}


def qwen() -> Case:
    model = diffusers.QwenImageTransformer2DModel(
        **_sizes(16, 2, 16), num_layers=2, out_channels=4, joint_attention_dim=WIDTH, axes_dims_rope=(4, 4, 8)
    )
    return model, {
        "hidden_states": torch.randn(1, SIDE * SIDE, 16),
        "encoder_hidden_states_mask": torch.ones(1, WORDS).bool(),
        "timestep": torch.tensor([0.5]),
        "img_shapes": [[(1, SIDE, SIDE)]],
    }


def cogview4() -> Case:
    model = diffusers.CogView4Transformer2DModel(
        **_sizes(8), num_layers=1, out_channels=4, text_embed_dim=WIDTH, time_embed_dim=8, condition_dim=4
    )
    size = torch.tensor([[8.0, 8.0]])
    more = {"original_size": size, "target_size": size, "crop_coords": 0 * size}
    return model, {"hidden_states": _latents(), "timestep": torch.tensor([0.5]), **more}


def lumina2() -> Case:
    """Fewer key heads than query heads, and layers for text and image alone before the joint ones."""
    model = diffusers.Lumina2Transformer2DModel(
        sample_size=2 * SIDE,
        patch_size=2,
        in_channels=4,
        hidden_size=24,
        num_layers=1,
        num_refiner_layers=1,
        num_attention_heads=3,
        num_kv_heads=1,
        multiple_of=2,
        norm_eps=1e-5,
        scaling_factor=1.0,
        axes_dim_rope=[4, 2, 2],
        axes_lens=[128, 128, 128],
        cap_feat_dim=WIDTH,
    )
    mask = torch.ones(1, WORDS).bool()
    return model, {"hidden_states": _latents(), "timestep": torch.tensor([0.5]), "encoder_attention_mask": mask}


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (unet, unet_added_keys, pixart, sana, sd3, flux, chroma, auraflow, qwen, cogview4, lumina2)
}


def case(name: str) -> tuple[nn.Module, dict[str, Any], Tensor]:
    """A model in evaluation mode, its inputs without the text, and the text."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the library about its own parts
        model, inputs = CASES[name]()
    return model.eval(), inputs, torch.randn(1, WORDS, WIDTH)


def save_pipelines(folder: Path) -> dict[str, Path]:
    """Folders of two pipelines: one with a UNet, one whose Transformer reads text and image as one sequence."""
    tokenizer = _clip_tokenizer(folder)
    text = transformers.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=TOKENS,
        projection_dim=5,
        bos_token_id=len(tokenizer) - 2,
        eos_token_id=len(tokenizer) - 1,
    )
    torch.manual_seed(0)
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        sample_size=4 * SIDE,
        shift_factor=0.0,
    )
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = diffusers.DDIMScheduler(clip_sample=False, steps_offset=1)
        made["unet"] = diffusers.StableDiffusionPipeline(
            vae,
            transformers.CLIPTextModel(text),
            tokenizer,
            unet()[0],
            scheduler,
            None,
            None,
            requires_safety_checker=False,
        )
        model, _ = sd3(2 * WIDTH)
        encoders = [transformers.CLIPTextModelWithProjection(text) for _ in range(2)]
        one, other = encoders
        scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
        made["joint"] = diffusers.StableDiffusion3Pipeline(
            model, scheduler, vae, one, tokenizer, other, tokenizer, None, None
        )
        for name, pipeline in made.items():
            pipeline.save_pretrained(folder / name)
    return {name: folder / name for name in made}


TOKENS = 11
"""Tokens of a caption in the pipelines, with padding."""


def _clip_tokenizer(folder: Path) -> Any:
    """Knows a few words whole, and all letters."""
    vocabulary = [*ascii_lowercase, *(f"{letter}</w>" for letter in ascii_lowercase)]
    merges = []
    for word in ("red", "apple", "dog", "left", "of"):
        parts = [*word[:-1], f"{word[-1]}</w>"]
        while len(parts) > 1:
            merges.append(f"{parts[0]} {parts[1]}")
            parts = [parts[0] + parts[1], *parts[2:]]
            vocabulary.append(parts[0])
    vocabulary = [*dict.fromkeys(vocabulary), "<|startoftext|>", "<|endoftext|>"]
    files = folder / "vocab.json", folder / "merges.txt"
    files[0].write_text(json.dumps({piece: number for number, piece in enumerate(vocabulary)}))
    files[1].write_text("\n".join(["#version: 0.2", *merges]))
    return transformers.CLIPTokenizer(*map(str, files), model_max_length=TOKENS)


def _sizes(head: int, patch: int = 2, channels: int = 4) -> dict[str, int]:
    return {"num_attention_heads": 2, "attention_head_dim": head, "patch_size": patch, "in_channels": channels}


def _latents(side: int = 2 * SIDE) -> Tensor:
    return torch.randn(1, 4, side, side)


def _packed() -> dict[str, Tensor]:
    """An image as a sequence of places, with their coordinates and those of the text."""
    places = torch.zeros(SIDE, SIDE, 3)
    places[..., 1], places[..., 2] = torch.arange(SIDE)[:, None], torch.arange(SIDE)
    ids = {"img_ids": places.flatten(0, 1), "txt_ids": torch.zeros(WORDS, 3)}
    return {"hidden_states": torch.randn(1, SIDE * SIDE, 4), **ids}
