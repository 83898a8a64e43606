"""Image GPT against transformers'."""

import pytest
import torch
from transformers import ImageGPTConfig, ImageGPTForCausalImageModeling, ImageGPTForImageClassification

from foveate import create
from foveate.interop.keys import imagegpt as keys

SIZES = {"classes": 7, "channels": 1, "image_size": 5, "colours": 11, "width": 12, "heads": 3, "feedforward": 48}


@pytest.mark.parametrize("predict", ["label", "pixels"])
def test_as_transformers(predict: str) -> None:
    sizes = {"n_positions": 25, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 48, "num_labels": 7}
    config = ImageGPTConfig(vocab_size=12, **sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    kind = ImageGPTForImageClassification if predict == "label" else ImageGPTForCausalImageModeling
    reference = kind(config).double().eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.normal_(std=0.3)
    model = create("imagegpt-tiny", **SIZES, layers=2, predict=predict).double().eval()
    theirs = reference.state_dict()
    missing, unexpected = model.load_state_dict(keys.foveate(model.config, theirs), strict=False)
    assert (missing, unexpected) == (["palette"], [])
    back = keys.transformers(model.config, model.state_dict())
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
    colours = torch.randint(11, (3, 5, 5))
    found = model(model.palette[colours].movedim(-1, 1)).logits
    tokens = colours.flatten(1)
    if predict == "pixels":
        tokens = torch.cat([torch.full((3, 1), 11), tokens[:, :-1]], 1)
    expected = reference(tokens).logits
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, gradient in keys.transformers(model.config, gradients).items():
        torch.testing.assert_close(gradient, reference.get_parameter(name).grad, atol=1e-9, rtol=0)


def test_as_many_parameters_as_the_public_model() -> None:
    """Published as 76 million: 24 blocks, 513 embeddings, 1,024 positions, and 512 colours to decide between."""
    model = create("imagegpt-small", device="meta", classes=1000, predict="pixels")
    with torch.device("meta"):
        reference = ImageGPTForCausalImageModeling(ImageGPTConfig())
    for each in (model, reference):
        assert sum(parameter.numel() for parameter in each.parameters()) == 76_682_240
