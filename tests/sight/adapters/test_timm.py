"""Models of timm, whose own weights without fused attention are the reference."""

import pytest
import torch
from references import timm
from torch import Tensor, nn

from foveate import look

MODELS = {
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "beit_base_patch16_224": {"img_size": 32, "depth": 2, "embed_dim": 24, "num_heads": 3},
    "eva02_tiny_patch14_224": {"img_size": 42, "depth": 2},
}


def model_of(name: str, fused: bool) -> nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(name, **MODELS[name]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 / parameter[0].numel() ** 0.5)
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    return model


@pytest.mark.parametrize("name", MODELS)
def test_weights(name: str) -> None:
    picture, weights = torch.randn(2, 3, MODELS[name]["img_size"], MODELS[name]["img_size"]), {}
    plain, fused = model_of(name, False), model_of(name, True)

    def keep(path: str, own: Tensor) -> None:
        weights[path] = own

    for path, module in plain.named_modules():
        if path.endswith(".attn_drop"):
            module.register_forward_pre_hook(lambda _, args, path=path: keep(path.removesuffix(".attn_drop"), args[0]))
    plain(picture)
    for model in (fused, plain):
        expected = model(picture)
        with look(model) as sight:
            assert torch.equal(model(picture), expected)
        assert sight.sites == ["blocks.0.attn", "blocks.1.attn"]
        for site in sight.sites:
            torch.testing.assert_close(sight[site].weights(), weights[site].detach(), atol=1e-5, rtol=0)
