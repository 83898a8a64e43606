"""Text-to-image models of diffusers: sites, shapes and weights for every processor that uses a fused kernel."""

from typing import Any

import pytest
import torch
from diffusion_models import CASES, SIDE, WORDS, case, processors
from torch import Tensor, nn

from foveate import look
from foveate.tasks.viewers.joint import grid_size, part_joint, parts_of, text_is_first

IMAGE_FIRST = {"sd3"}

JOINT = {"sd3", "flux", "chroma", "auraflow", "qwen", "cogview4", "lumina2"}

PLACES = SIDE * SIDE


@pytest.mark.parametrize("name", CASES)
def test_text_and_image_are_parted(name: str) -> None:
    model, inputs, text = case(name)
    with torch.no_grad(), look(model) as sight:
        model(encoder_hidden_states=text, **inputs)
    assert all(sight[site].output_error() < 1e-5 for site in sight.sites)
    joint = [site for site in sight.sites if parts_of(sight[site].shape[3], WORDS, 1.0, True)]
    assert bool(joint) == (name in JOINT or name == "unet_added_keys")
    first = not joint or text_is_first(model, lambda other: model(encoder_hidden_states=other, **inputs), text, joint)
    assert first == (name not in IMAGE_FIRST)
    separated = part_joint(sight, WORDS, 1.0, first)
    words = [
        separated[site] for site in separated.sites if separated[site].shape[3] == WORDS != separated[site].shape[2]
    ]
    assert words
    assert all(grid_size(site.shape[2], 1.0) or site.name.endswith("extra-text") for site in words)
    if name in JOINT:
        site = separated[next(site for site in separated.sites if site.endswith("image-text"))]
        over = separated[next(site for site in separated.sites if site.endswith("text-image"))]
        assert site.shape[2:] == (PLACES, WORDS)
        assert over.shape[2:] == (WORDS, PLACES)


def test_parted_keys_are_those_of_the_text() -> None:
    """With the keys of the text scaled up or down in the layer itself, just their part changes."""
    model, inputs, text = case("sd3")
    shares = []
    for factor in (1.0, 0.0):
        layer = model.transformer_blocks[0].attn
        hook = layer.norm_added_k.register_forward_hook(lambda module, args, out, factor=factor: out * factor)
        with torch.no_grad(), look(model, sites=["transformer_blocks.0.attn"]) as sight:
            model(encoder_hidden_states=text, **inputs)
        hook.remove()
        shares.append(part_joint(sight, WORDS, 1.0, False)["transformer_blocks.0.attn.image-text"].weights())
    spread = [weights.std(-1).mean() for weights in shares]
    assert spread[1] < 1e-6 < spread[0]


def eager_weights(model: nn.Module, run: Any) -> list[Tensor]:
    """The weights that diffusers computes itself without a fused kernel, one (B*H, T, S) for each layer."""
    found: list[Tensor] = []
    plain = processors.Attention.get_attention_scores

    def scores(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        found.append(plain(self, *args, **kwargs))
        return found[-1]

    processors.Attention.get_attention_scores = scores
    try:
        model.set_attn_processor(processors.AttnProcessor())
        run()
    finally:
        processors.Attention.get_attention_scores = plain
    return found


@pytest.mark.parametrize("name", ["unet", "pixart"])
def test_weights_are_those_of_the_processor_without_a_fused_kernel(name: str) -> None:
    model, inputs, text = case(name)
    mask = torch.tensor([[1] * 5 + [0] * 2])
    with torch.no_grad():
        with look(model) as sight:
            model(encoder_hidden_states=text, encoder_attention_mask=mask, **inputs)
        expected = eager_weights(
            model, lambda: model(encoder_hidden_states=text, encoder_attention_mask=mask, **inputs)
        )
    assert len(expected) == len(sight.sites)
    for site, weights in zip(sight.sites, expected, strict=True):
        torch.testing.assert_close(sight[site].weights()[0], weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize("processor", ["AttnProcessor", "SlicedAttnProcessor"])
def test_processors_without_a_fused_kernel(processor: str) -> None:
    """They make their weights themselves: the sliced one some heads after others, which are maps of their own."""
    model, inputs, text = case("unet")
    make = getattr(processors, processor)
    with torch.no_grad(), look(model) as fused:
        model(encoder_hidden_states=text, **inputs)
    model.set_attn_processor(make(2) if "Sliced" in processor else make())
    with torch.no_grad(), look(model) as sight:
        model(encoder_hidden_states=text, **inputs)
    assert [name for name in sight.sites if "#" not in name] == fused.sites
    for name in fused.sites if processor == "AttnProcessor" else ():
        torch.testing.assert_close(sight[name].weights(), fused[name].weights(), atol=1e-5, rtol=0)
