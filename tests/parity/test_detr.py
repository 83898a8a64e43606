"""DETR against transformers' `DetrForObjectDetection` (Carion et al. 2020)."""

from typing import Any

import pytest
import torch
from image_references import rename
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

from foveate import create
from foveate.interop.keys import detr as keys

SIZES = {"width": 20, "heads": 5, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 3, "queries": 7}


def reference(backbone: dict[str, Any], classes: int, **sizes: int) -> DetrForObjectDetection:
    heads, hidden = sizes["heads"], sizes["feedforward"]
    config = DetrConfig(
        backbone_config=ResNetConfig(**backbone),
        num_labels=classes,
        d_model=sizes["width"],
        encoder_layers=sizes["encoder_layers"],
        decoder_layers=sizes["decoder_layers"],
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        num_queries=sizes["queries"],
    )
    return DetrForObjectDetection(config).eval()


@pytest.fixture(scope="module")
def pair() -> tuple[Any, DetrForObjectDetection]:
    """Both with the same random weights and statistics."""
    torch.manual_seed(5)
    model = create("detr-tiny", classes=3, **SIZES).double().eval()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if "norm" in name and value.is_floating_point():
                value.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                value.normal_(std=0.1)
    widths = [32, 64, 128]
    small = {"embedding_size": 32, "hidden_sizes": widths, "depths": [2, 2, 2], "layer_type": "basic"}
    other = reference({**small, "out_features": ["stage3"]}, 3, **SIZES).double()
    names = keys.transformers(model.config, model.backbone.config)
    weights = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    other.load_state_dict(rename(weights, names))
    return model, other


@pytest.mark.parametrize("sizes", [None, [[53, 71], [37, 71], [53, 29]]], ids=["whole", "padded"])
def test_as_transformers(pair: tuple[Any, DetrForObjectDetection], sizes: list[list[int]] | None) -> None:
    """Logits, boxes and gradients, of whole images and of padded ones; also the boxes of the earlier layers."""
    model, other = pair
    pixels = torch.randn(3, 3, 53, 71, dtype=torch.float64)
    mask = torch.ones(3, 53, 71, dtype=torch.long)
    for row, (height, width) in enumerate(sizes or []):
        mask[row, height:] = mask[row, :, width:] = 0
    ours, theirs = pixels.clone().requires_grad_(), pixels.clone().requires_grad_()
    found = model(ours, None if sizes is None else torch.tensor(sizes))
    expected = other(theirs, pixel_mask=mask, output_hidden_states=True)
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.boxes, expected.pred_boxes, atol=1e-6, rtol=0)
    for each, hidden in zip(found.earlier, expected.decoder_hidden_states[1:3], strict=True):
        boxes = other.bbox_predictor(other.model.decoder.layernorm(hidden)).sigmoid()
        torch.testing.assert_close(each.boxes, boxes, atol=1e-6, rtol=0)
    (found.logits.square().sum() + found.boxes[..., 0].sum()).backward()
    (expected.logits.square().sum() + expected.pred_boxes[..., 0].sum()).backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-6)


def test_as_large_as_the_public_model() -> None:
    """41.5 million parameters. Theirs does not count the norms of the backbone, which it does not train."""
    model = create("detr-resnet50", device="meta", classes=91)
    with torch.device("meta"):
        sizes = {"width": 256, "heads": 8, "feedforward": 2048, "encoder_layers": 6, "decoder_layers": 6}
        other = reference({"out_features": ["stage4"]}, 91, **sizes, queries=100)
    counted = sum(parameter.numel() for parameter in other.parameters())
    norms = sum(value.numel() for name, value in other.named_buffers() if name.endswith(("n.weight", "n.bias")))
    assert counted == 41_524_768
    assert sum(parameter.numel() for parameter in model.parameters()) == counted + norms
    weights = {name: value for name, value in model.state_dict().items() if "num_batches" not in name}
    assert rename(weights, keys.transformers(model.config, model.backbone.config)).keys() == other.state_dict().keys()
