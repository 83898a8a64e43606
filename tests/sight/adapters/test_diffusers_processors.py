"""Attention processors of diffusers, each alone in a layer: sites and shapes, and that the recorded weights give the
layer's own output."""

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers.models.attention_dispatch import attention_backend
from diffusion_models import WORDS, case, diffusers, processors
from torch import Tensor, nn

from foveate import look
from foveate.sight import Sight

PLACES = 16


def attention(**options: Any) -> Any:
    sizes = {"query_dim": 16, "heads": 2, "dim_head": 8} | options
    torch.manual_seed(0)
    return processors.Attention(**sizes).eval()


def fused(layer: Any) -> Any:
    layer.fuse_projections()
    return layer


def seen(layer: Any, processor: Any, *args: Tensor, **kwargs: Any) -> Sight:
    """What `layer` looked at with this processor, after a check of each site's output."""
    layer.set_processor(processor) if hasattr(layer, "set_processor") else setattr(layer, "processor", processor)
    model = nn.ModuleDict({"attn": layer})
    model.forward = lambda: layer(*args, **kwargs)
    with torch.no_grad(), look(model) as sight:
        model()
    assert sight.sites[0] == "attn"
    assert all(sight[site].output_error() < 1e-5 for site in sight.sites)
    return sight


JOINT = {"added_kv_proj_dim": 12, "context_pre_only": False, "out_dim": 16}
BOTH = PLACES + WORDS

PROCESSORS = {
    "AttnProcessor2_0": (lambda: attention(cross_attention_dim=12), [(PLACES, WORDS)]),
    "FusedAttnProcessor2_0": (lambda: fused(attention(cross_attention_dim=12)), [(PLACES, WORDS)]),
    "AttnAddedKVProcessor2_0": (lambda: attention(added_kv_proj_dim=12, norm_num_groups=4), [(PLACES, BOTH)]),
    "JointAttnProcessor2_0": (lambda: attention(**JOINT), [(BOTH, BOTH)]),
    "FusedJointAttnProcessor2_0": (lambda: fused(attention(**JOINT)), [(BOTH, BOTH)]),
    "AuraFlowAttnProcessor2_0": (lambda: attention(**JOINT), [(BOTH, BOTH)]),
    "FusedAuraFlowAttnProcessor2_0": (lambda: fused(attention(**JOINT)), [(BOTH, BOTH)]),
    "HunyuanAttnProcessor2_0": (lambda: attention(cross_attention_dim=12), [(PLACES, WORDS)]),
    "FusedHunyuanAttnProcessor2_0": (lambda: fused(attention(cross_attention_dim=12)), [(PLACES, WORDS)]),
    "AllegroAttnProcessor2_0": (lambda: attention(cross_attention_dim=12), [(PLACES, WORDS)]),
    "StableAudioAttnProcessor2_0": (lambda: attention(cross_attention_dim=12, kv_heads=1), [(PLACES, WORDS)]),
    "CogVideoXAttnProcessor2_0": (lambda: attention(qk_norm="layer_norm"), [(BOTH, BOTH)]),
    "FusedCogVideoXAttnProcessor2_0": (lambda: fused(attention(qk_norm="layer_norm")), [(BOTH, BOTH)]),
    "MochiVaeAttnProcessor2_0": (lambda: attention(cross_attention_dim=12, is_causal=True), [(PLACES, WORDS)]),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_places_and_words(name: str) -> None:
    make, shapes = PROCESSORS[name]
    places = torch.randn(2, 16, 4, 4) if "AddedKV" in name else torch.randn(2, PLACES, 16)
    text = torch.randn(2, WORDS, 16 if "CogVideoX" in name else 12)
    sight = seen(make(), getattr(processors, name)(), places, encoder_hidden_states=text)
    assert [sight[site].shape for site in sight.sites] == [(2, 2, *shape) for shape in shapes]


GUIDED = {
    "PAGIdentitySelfAttnProcessor2_0": (2, [(1, PLACES, PLACES)]),
    "PAGCFGIdentitySelfAttnProcessor2_0": (3, [(2, PLACES, PLACES)]),
    "PAGHunyuanAttnProcessor2_0": (2, [(1, PLACES, PLACES)]),
    "PAGCFGHunyuanAttnProcessor2_0": (3, [(2, PLACES, PLACES)]),
    "PAGJointAttnProcessor2_0": (2, 2 * [(1, BOTH, BOTH)]),
    "PAGCFGJointAttnProcessor2_0": (3, [(2, BOTH, BOTH), (1, BOTH, BOTH)]),
}


@pytest.mark.parametrize("name", GUIDED)
def test_perturbed_attention_guidance(name: str) -> None:
    """A batch of the plain and the perturbed half, whose places look at themselves alone."""
    batch, shapes = GUIDED[name]
    joint = "Joint" in name
    text = {"encoder_hidden_states": torch.randn(batch, WORDS, 12)} if joint else {}
    layer = attention(**JOINT if joint else {})
    sight = seen(layer, getattr(processors, name)(), torch.randn(batch, PLACES, 16), **text)
    assert [(sight[site].shape[0], *sight[site].shape[2:]) for site in sight.sites] == shapes
    if joint:
        own = sight["attn#2"].weights()[..., :PLACES, :PLACES]
        assert torch.equal(own, own.diagonal(dim1=-2, dim2=-1).diag_embed())
        assert own.diagonal(dim1=-2, dim2=-1).min() > 0


def test_mochi_leaves_out_padding() -> None:
    """It attends once for each example, to the words that the mask names."""
    layer = processors.MochiAttention(
        16, 12, processors.MochiAttnProcessor2_0(), heads=2, dim_head=8, out_context_dim=12
    ).eval()
    mask = torch.tensor([[1] * 5 + [0] * 2, [1] * WORDS])
    places, text = torch.randn(2, PLACES, 16), torch.randn(2, WORDS, 12)
    sight = seen(layer, layer.processor, places, encoder_hidden_states=text, attention_mask=mask)
    assert [sight[site].shape for site in sight.sites] == [(1, 2, PLACES + count, PLACES + count) for count in (5, 7)]


def test_lumina_has_fewer_key_heads_and_a_mask() -> None:
    layer = attention(cross_attention_dim=12, heads=4, dim_head=4, kv_heads=2)
    mask = torch.tensor([[1] * 5 + [0] * 2, [1] * WORDS])
    places, text = torch.randn(2, PLACES, 16), torch.randn(2, WORDS, 12)
    sight = seen(layer, processors.LuminaAttnProcessor2_0(), places, encoder_hidden_states=text, attention_mask=mask)
    weights = sight["attn"].weights()
    assert weights.shape == (2, 4, PLACES, WORDS)
    assert weights[0, ..., 5:].eq(0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, PLACES))


def test_custom_diffusion_has_its_own_projections() -> None:
    processor = processors.CustomDiffusionAttnProcessor2_0(hidden_size=16, cross_attention_dim=12)
    sight = seen(
        attention(cross_attention_dim=12),
        processor,
        torch.randn(2, PLACES, 16),
        encoder_hidden_states=torch.randn(2, WORDS, 12),
    )
    assert sight["attn"].shape == (2, 2, PLACES, WORDS)


def test_an_image_as_a_second_source_of_stable_diffusion_3() -> None:
    processor = processors.SD3IPAdapterJointAttnProcessor2_0(16, 10, 8, timesteps_emb_dim=6)
    more = {"ip_hidden_states": torch.randn(2, 4, 10), "temb": torch.randn(2, 6)}
    sight = seen(
        attention(**JOINT),
        processor,
        torch.randn(2, PLACES, 16),
        encoder_hidden_states=torch.randn(2, WORDS, 12),
        **more,
    )
    shapes = {site: sight[site].shape for site in sight.sites}
    assert shapes == {"attn": (2, 2, BOTH, BOTH), "attn#2": (2, 2, PLACES, PLACES + 4)}


def test_two_sources_have_two_sites() -> None:
    layer = attention(cross_attention_dim=12)
    layer.set_processor(processors.IPAdapterAttnProcessor2_0(16, 12, num_tokens=(4,)))
    model = nn.ModuleDict({"attn": layer})
    text, images = torch.randn(2, WORDS, 12), [torch.randn(2, 1, 4, 12)]
    model.forward = lambda: layer(torch.randn(2, 16, 16), encoder_hidden_states=(text, images))
    with torch.no_grad(), look(model) as sight:
        model()
    assert {site: sight[site].shape for site in sight.sites} == {"attn": (2, 2, 16, WORDS), "attn#2": (2, 2, 16, 4)}


@pytest.mark.parametrize("backend", ["native", "_native_math", "_native_flash"])
def test_backends_of_the_dispatcher(backend: str) -> None:
    model, inputs, text = case("flux")
    with attention_backend(backend), torch.no_grad(), look(model) as sight:
        model(encoder_hidden_states=text, **inputs)
    assert len(sight.sites) == 2
    assert all(sight[site].output_error() < 1e-5 for site in sight.sites)


OWN_SOFTMAX = {
    *("AttnProcessor", "SlicedAttnProcessor", "SlicedAttnAddedKVProcessor", "AttnAddedKVProcessor"),
    *("IPAdapterAttnProcessor", "CustomDiffusionAttnProcessor", "CrossFrameAttnProcessor", "AttendExciteAttnProcessor"),
    *("LEDITSCrossAttnProcessor", "Pix2PixZeroAttnProcessor"),
}
"""Without a fused kernel."""

OTHER_DEVICES = ("XFormers", "NPU", "XLA")

LINEAR = {
    *("SanaMultiscaleAttnProcessor2_0", "SanaLinearAttnProcessor2_0", "SanaLinearAttnProcessor3_0"),
    *("PAGCFGSanaLinearAttnProcessor2_0", "PAGIdentitySanaLinearAttnProcessor2_0"),
}
"""Linear attention: no weights."""

FUSED_CALLS = {"scaled_dot_product_attention", "dispatch_attention_fn"}


def test_every_processor_calls_what_is_recorded() -> None:
    """Torch's function, or the dispatcher, which calls it: 140 processors of all models, read and not run."""
    count, other = 0, set()
    for file in Path(diffusers.__file__).parent.rglob("*.py"):
        source = file.read_text()
        for node in ast.walk(ast.parse(source)) if "AttnProcessor" in source else ():
            if not isinstance(node, ast.ClassDef) or "AttnProcessor" not in node.name:
                continue
            called = {
                part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in ast.walk(node)
            }
            count += 1
            is_alias = not {"to_q", "to_out", "to_qkv"} & called  # an old name, which gives the new class
            if not called & FUSED_CALLS and not is_alias:
                other.add(node.name)
    assert count > 100
    rest = {name for name in other if not any(device in name for device in OTHER_DEVICES)}
    assert rest <= OWN_SOFTMAX | LINEAR
