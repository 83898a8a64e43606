"""Heads that share a latent vector: public weights, steps from what is kept, looks."""

import pytest
import torch
from torch import Tensor, nn
from transformers import DeepseekV2Config
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention

import foveate
from foveate.attention import causal
from foveate.errors import UserError
from foveate.nn.latent_attention import LatentAttention
from foveate.nn.rotary import Rotary

R, D, L, H = 6, 8, 20, 3
"""Numbers that turn, numbers of a head, the latent vector's, and heads."""


def ours_of(weight: Tensor) -> Tensor:
    """Rows of projections for R turned numbers, of which a pair lies side by side there and R/2 apart here."""
    return torch.cat([weight[0::2], weight[1::2]])


@torch.no_grad()
def test_it_is_that_of_transformers() -> None:
    config = DeepseekV2Config(
        hidden_size=24,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=None,
        kv_lora_rank=L,
        qk_nope_head_dim=D,
        qk_rope_head_dim=R,
        v_head_dim=D,
        attention_dropout=0.0,
    )
    config._attn_implementation = "eager"
    theirs, ours = DeepseekV2Attention(config, 0).eval(), LatentAttention(24, H, L, R, D, bias=False)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    state = theirs.state_dict()
    told, turned = state["q_proj.weight"].unflatten(0, (H, -1)).split([D, R], 1)
    latent, key = state["kv_a_proj_with_mqa.weight"].split([L, R])
    keys, values = state["kv_b_proj.weight"].unflatten(0, (H, -1)).split([D, D], 1)
    ours.load_state_dict(
        {
            "query.weight": torch.cat([torch.stack([*map(ours_of, turned)]), told], 1).flatten(0, 1),
            "latent.weight": torch.cat([ours_of(key), latent]),
            "norm.weight": state["kv_a_layernorm.weight"],
            "key": keys.mT,
            "value": values.mT,
            "output.weight": state["o_proj.weight"],
        }
    )
    x, places = torch.randn(2, 9, 24), torch.arange(9)[None]
    hidden = torch.full((9, 9), -torch.inf).triu(1)[None, None]
    angles = places[..., None] / 10_000 ** (torch.arange(0, R, 2) / R)
    expected = theirs(x, hidden, position_embeddings=torch.polar(torch.ones_like(angles), angles))[0]
    rotation = Rotary(R)
    torch.testing.assert_close(ours(x, mask=causal(), rotation=rotation(places, x.dtype)), expected, rtol=0, atol=1e-5)
    past = ours.memory(x[:, :0], 9)
    steps = [
        ours(x[:, part], mask=causal(part.start), past=past, rotation=rotation(places[:, part], x.dtype))
        for part in (slice(0, 4), slice(4, 5), slice(5, 9))
    ]
    torch.testing.assert_close(torch.cat(steps, 1), expected, rtol=0, atol=1e-5)
    assert past.keys.shape == (2, 1, 1, 9, R + L)
    assert past.values.data_ptr() == past.keys[..., R:].data_ptr()


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_a_language_model_is_read_looked_into_and_continued(positions: str) -> None:
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "layers": 2, "feedforward": 64, "positions": positions}
    model = foveate.create("gpt-tiny", **sizes, mixing="latent", latent_width=12).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    tokens = torch.randint(1, 50, (2, 30))
    with torch.inference_mode():
        whole = model(tokens).logits
        logits, state = model.prefill(tokens[:, :20], torch.tensor([20, 11]))
        torch.testing.assert_close(logits, torch.stack([whole[0, 19], whole[1, 10]]), rtol=0, atol=1e-4)
        state.reorder(torch.tensor([1, 0]))
        rows = [model.step(column.flip(0), state) for column in tokens[:, 20:].unbind(1)]
        torch.testing.assert_close(torch.stack(rows, 1)[1], whole[0, 20:], rtol=0, atol=1e-4)
        with foveate.look(model) as sight:
            model(tokens)
        with foveate.look(model) as steps:
            model.prefill(tokens, torch.tensor([30, 30]))
    for all_at_once, kept in zip(sight, steps, strict=True):
        assert all_at_once.weights().shape == (2, 4, 30, 30)
        torch.testing.assert_close(kept.weights().flatten(1, -3), all_at_once.weights(), rtol=0, atol=1e-5)


def test_what_cannot_be_is_told() -> None:
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "layers": 2, "feedforward": 64}
    for wrong, said in (
        ({"positions": "relative"}, "has no relative positions"),
        ({"latent_width": 0}, "latent_width"),
        ({"heads": 5}, "not a multiple of 5 heads"),
    ):
        with pytest.raises(UserError, match=said):
            foveate.create("gpt-tiny", **{**sizes, "positions": "rotary", **wrong}, mixing="latent")
    layer = LatentAttention(24, 3)
    with pytest.raises(UserError, match="its own input alone"):
        layer(torch.randn(1, 4, 24), torch.randn(1, 4, 24))
