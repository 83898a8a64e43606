"""Tiny folders of each kind of image model, of transformers and of timm, and what those make of an image."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import torch
import transformers
from references import timm
from tokenizers import processors

sys.path.append(str(Path(__file__).parent / "parity"))
from public_models import word_tokenizer

transformers.logging.disable_progress_bar()  # folders are written while tests read what commands print

LABELS = 5


def models() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """A tiny model of odd sizes of each kind, and what prepares its images."""
    t, some = transformers, {"num_labels": LABELS}
    stages = {"depths": [1, 2], "hidden_sizes": [24, 48], "embedding_size": 6}
    basic = {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}
    widths = {"encoder_ffn_dim": 30, "decoder_ffn_dim": 30, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "d_model": 20, "num_queries": 7}
    maps = {"d_model": 32, "num_feature_levels": 3, "encoder_n_points": 3, "decoder_n_points": 2}
    deformable = {**widths, **heads, **maps, "two_stage_num_proposals": 6, **some}
    vit = {"hidden_size": 21, "num_attention_heads": 3, "intermediate_size": 22, "num_hidden_layers": 3}
    cut = {"size": {"shortest_edge": 40}}
    middle = {"size": {"shortest_edge": 34}, "crop_size": {"height": 25, "width": 25}}
    small = {**vit, "patch_size": 5, "image_size": 25, "layer_norm_eps": 1e-3}
    windows = {"window_size": 3, "patch_size": 2, "pretrained_window_sizes": [5, 4]}
    dino = {**small, "mlp_ratio": 2, **some}
    return {
        "vit": lambda: (
            t.ViTForImageClassification(t.ViTConfig(**vit, patch_size=5, image_size=25, layer_norm_eps=1e-3, **some)),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "vit-body": lambda: (
            t.ViTModel(t.ViTConfig(**small)),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "deit": lambda: (
            t.DeiTForImageClassificationWithTeacher(t.DeiTConfig(**small, hidden_act="quick_gelu", **some)),
            t.DeiTImageProcessor(size={"height": 33, "width": 31}, crop_size={"height": 25, "width": 25}),
        ),
        "deit-plain": lambda: (
            t.DeiTForImageClassification(t.DeiTConfig(**small, **some)),
            t.DeiTImageProcessor(size={"height": 23, "width": 31}, crop_size={"height": 25, "width": 25}),
        ),
        "beit": lambda: (
            t.BeitForImageClassification(t.BeitConfig(**small, use_relative_position_bias=True, **some)),
            t.BeitImageProcessor(size={"height": 25, "width": 25}),
        ),
        "beit-token": lambda: (
            t.BeitForImageClassification(
                t.BeitConfig(**small, use_absolute_position_embeddings=True, use_mean_pooling=False, **some)
            ),
            t.BeitImageProcessor(size={"height": 25, "width": 25}),
        ),
        "dinov2": lambda: (
            t.Dinov2ForImageClassification(t.Dinov2Config(**{**dino, "image_size": 35})),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-gated": lambda: (
            t.Dinov2ForImageClassification(t.Dinov2Config(**dino, use_swiglu_ffn=True)),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-registers": lambda: (
            t.Dinov2WithRegistersForImageClassification(
                t.Dinov2WithRegistersConfig(**{**dino, "image_size": 35}, num_register_tokens=3)
            ),
            t.BitImageProcessor(**middle),
        ),
        "dinov2-body": lambda: (t.Dinov2Model(t.Dinov2Config(**dino)), t.BitImageProcessor(**middle)),
        "dinov3-body": lambda: (
            t.DINOv3ViTModel(
                t.DINOv3ViTConfig(**{**small, "hidden_size": 24}, num_register_tokens=2, use_gated_mlp=True)
            ),
            t.ViTImageProcessor(size={"height": 25, "width": 25}),
        ),
        "swin": lambda: (
            t.SwinForImageClassification(
                t.SwinConfig(embed_dim=14, depths=[2, 2], num_heads=[2, 4], window_size=3, patch_size=2, **some)
            ),
            t.ViTImageProcessor(size={"height": 24, "width": 24}, resample=3),
        ),
        "convnext": lambda: (
            t.ConvNextForImageClassification(
                t.ConvNextConfig(depths=[1, 2, 1], hidden_sizes=[8, 12, 20], num_stages=3, **some)
            ),
            t.ConvNextImageProcessor(**cut, crop_pct=0.8),
        ),
        "swinv2": lambda: (
            t.Swinv2ForImageClassification(
                t.Swinv2Config(embed_dim=14, depths=[2, 2], num_heads=[2, 4], image_size=24, **windows, **some)
            ),
            t.ViTImageProcessor(size={"height": 24, "width": 24}, resample=3),
        ),
        "convnextv2": lambda: (
            t.ConvNextV2ForImageClassification(
                t.ConvNextV2Config(depths=[1, 2, 1], hidden_sizes=[8, 12, 20], num_stages=3, **some)
            ),
            t.ConvNextImageProcessor(**cut, crop_pct=0.8),
        ),
        "resnet": lambda: (
            t.ResNetForImageClassification(t.ResNetConfig(**stages, **some)),
            t.ConvNextImageProcessor(**cut, crop_pct=0.875),
        ),
        "efficientnet": lambda: (
            t.EfficientNetForImageClassification(
                t.EfficientNetConfig(
                    image_size=44,
                    width_coefficient=0.5,
                    depth_coefficient=1.2,
                    depth_divisor=4,
                    num_block_repeats=[1] * 7,
                    depthwise_padding=[4, 10],
                    hidden_dim=640,
                    **some,
                )
            ),
            t.EfficientNetImageProcessor(size={"height": 44, "width": 44}, image_std=[0.47, 0.48, 0.49]),
        ),
        "detr-conditional": lambda: (
            t.ConditionalDetrForObjectDetection(
                t.ConditionalDetrConfig(
                    backbone_config=t.ResNetConfig(**basic, out_features=["stage4"]), **widths, **heads, **some
                )
            ),
            t.ConditionalDetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 100}),
        ),
        **{
            name: lambda kind=kind: (
                t.DeformableDetrForObjectDetection(
                    t.DeformableDetrConfig(
                        backbone_config=t.ResNetConfig(**basic, out_features=["stage3", "stage4"]),
                        **deformable,
                        **kind,
                    )
                ),
                t.DeformableDetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 100}),
            )
            for name, kind in {
                "detr-deformable": {},
                "detr-deformable-refined": {"with_box_refine": True},
                "detr-deformable-two-stages": {"with_box_refine": True, "two_stage": True},
            }.items()
        },
        "detr-real-time": lambda: (
            t.RTDetrForObjectDetection(
                t.RTDetrConfig(
                    backbone_config=t.RTDetrResNetConfig(**basic, out_features=["stage2", "stage3", "stage4"]),
                    encoder_in_channels=[128, 256, 512],
                    encoder_hidden_dim=20,
                    hidden_expansion=0.5,
                    decoder_in_channels=[20] * 3,
                    **{**widths, "encoder_layers": 1, "decoder_n_points": 3},
                    **{**heads, "d_model": 32, "num_queries": 9},
                    **some,
                )
            ),
            t.RTDetrImageProcessor(size={"height": 64, "width": 96}),
        ),
        "detr": lambda: (
            t.DetrForObjectDetection(
                t.DetrConfig(
                    backbone_config=t.ResNetConfig(**stages, out_features=["stage2"]), **widths, **heads, **some
                )
            ),
            t.DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 100}),
        ),
    }


def matchers() -> dict[str, tuple[Any, Any]]:
    """A tiny CLIP and a tiny SigLIP of odd sizes, and what prepares their images; they lack a tokenizer."""
    t, end = transformers, word_tokenizer().token_to_id("</s>")
    text = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 14}
    text |= {"vocab_size": 53, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": end}
    vision = {"hidden_size": 15, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 16}
    vision |= {"image_size": 20, "patch_size": 5}
    clip = t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=9)
    siglip = t.SiglipConfig(text_config={**text, "projection_size": 15}, vision_config=vision)
    middle = {"size": {"shortest_edge": 27}, "crop_size": {"height": 20, "width": 20}}
    return {
        "clip": (t.CLIPModel(clip), t.CLIPImageProcessor(**middle)),
        "siglip": (t.SiglipModel(siglip), t.SiglipImageProcessor(size={"height": 20, "width": 20})),
    }


def write_matcher(name: str, place: Path) -> None:
    """Write the folder of a model that compares images and texts, with its tokenizer."""
    model, processor = matchers()[name]
    scramble(model).save_pretrained(place)
    processor.save_pretrained(place)
    words = word_tokenizer()
    signs = [(token, words.token_to_id(token)) for token in ("<s>", "</s>")]
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=signs)
    words.save(str(place / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "z", "pad_token": "z"}
    only = {"model_input_names": ["input_ids"]} if name == "siglip" else {}  # as its own tokenizer has it
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64}
    (place / "tokenizer_config.json").write_text(json.dumps({**special, **kind, **only}))


def scramble(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights that make a difference everywhere."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point() and ("var" in name or ("norm" in name and name.endswith("weight"))):
                value.uniform_(0.5, 1.5, generator=generator)
            elif value.is_floating_point():
                value.normal_(0, 0.2, generator=generator)
    return model.eval()


def timm_models() -> dict[str, tuple[str, dict[str, Any]]]:
    """A tiny model of odd sizes of each of timm's families: the name of its architecture, and the changed sizes."""
    vit = {"patch_size": 5, "embed_dim": 21, "depth": 2, "num_heads": 3, "img_size": 25, "mlp_ratio": 2}
    swin = {"patch_size": 2, "embed_dim": 14, "depths": (2, 2), "num_heads": (2, 4), "img_size": 24, "window_size": 3}
    return {
        "timm-vit": ("vit_tiny_patch16_224", vit),
        "timm-vit-mean": ("vit_base_patch16_224", {**vit, "global_pool": "avg"}),
        "timm-vit-clip": ("vit_base_patch32_clip_quickgelu_224", vit),
        "timm-vit-registers": ("vit_base_patch16_reg4_gap_256", {**vit, "reg_tokens": 3}),
        "timm-vit-body": ("vit_tiny_patch16_224", {**vit, "num_classes": 0}),
        "timm-deit": ("deit_tiny_distilled_patch16_224", vit),
        "timm-deit3": ("deit3_small_patch16_224", vit),
        "timm-swin": ("swin_tiny_patch4_window7_224", swin),
        "timm-swinv2": ("swinv2_tiny_window8_256", {**swin, "pretrained_window_sizes": (5, 4)}),
        "timm-convnext": ("convnext_tiny", {"depths": (1, 2, 1, 1), "dims": (8, 12, 20, 24)}),
        "timm-convnextv2": ("convnextv2_tiny", {"depths": (1, 2, 1, 1), "dims": (8, 12, 20, 24)}),
        "timm-resnet": ("resnet18", {"layers": (1, 2, 1, 1), "channels": (64, 20, 24, 28)}),
        "timm-mvit": ("mvitv2_tiny", {}),
        "timm-efficientnet": ("tf_efficientnet_lite0", {}),
    }


class Folders(dict[str, Path]):
    """The folder of each kind, which is written when it is first asked for."""

    def __missing__(self, name: str) -> Path:
        place = self[name] = self["root"] / name
        if name in timm_models():
            write_timm(place, *timm_models()[name])
            return place
        model, processor = models()[name]()
        scramble(model).save_pretrained(place)
        processor.save_pretrained(place)
        return place


def write_timm(place: Path, architecture: str, arguments: dict[str, Any]) -> None:
    """Write a folder as timm does."""
    arguments = {"num_classes": LABELS, **arguments}
    model = scramble(timm.create_model(architecture, **arguments))
    timm.models.save_for_hf(model, place, model_args=arguments, safe_serialization=True)


def reference(folder: Path, image: Path) -> tuple[torch.Tensor, Any]:
    """The pixels and the output of the folder's library."""
    values = json.loads((folder / "config.json").read_text())
    if "architecture" in values:
        model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
        transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
        pixels = transform(PIL.Image.open(image).convert("RGB"))[None]
        with torch.no_grad():
            return pixels, {"logits": model(pixels)}
    (kind,) = values["architectures"]
    model = getattr(transformers, kind).from_pretrained(folder)
    inputs = transformers.AutoImageProcessor.from_pretrained(folder)(PIL.Image.open(image), return_tensors="pt")
    with torch.no_grad():
        found = model.eval()(**inputs)
    if kind.endswith("Model"):  # what a classifier would read
        states = found.last_hidden_state
        mean = [states[:, 1:].mean(1)] if kind == "Dinov2Model" else []
        found["logits"] = torch.cat([states[:, 0], *mean], -1)
    return inputs["pixel_values"], found
