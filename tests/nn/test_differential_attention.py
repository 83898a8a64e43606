"""The difference of two maps: public weights, steps, looks."""

import pytest
import torch
from torch import nn
from transformers import DiffLlamaConfig
from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention

import foveate
from foveate.attention import causal
from foveate.errors import UserError
from foveate.nn.differential_attention import DifferentialAttention


@torch.no_grad()
@pytest.mark.parametrize("keys", [8, 4])
def test_it_is_that_of_transformers(keys: int) -> None:
    config = DiffLlamaConfig(hidden_size=24, num_attention_heads=8, num_key_value_heads=keys, attention_dropout=0.0)
    config._attn_implementation = "eager"
    theirs = DiffLlamaAttention(config, 3).eval()
    ours = DifferentialAttention(24, 8, number=3, bias=False, key_value_heads=keys)
    state = theirs.state_dict()
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
    given = {f"{own}.weight": state[f"{name}.weight"] for own, name in parts.items()}
    shares = [state[f"lambda_{name}"] for name in ("q1", "k1", "q2", "k2")]
    ours.load_state_dict(given | {"share": torch.stack(shares).unflatten(0, (2, 2))})
    x = torch.randn(2, 9, 24)
    hidden = torch.full((9, 9), -torch.inf).triu(1)[None, None]
    still = torch.ones(1, 9, 3), torch.zeros(1, 9, 3)  # positions that do not turn
    torch.testing.assert_close(ours(x, mask=causal()), theirs(x, still, hidden)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("mixing", ["differential", "talking"])
def test_a_language_model_is_read_looked_into_and_continued(mixing: str) -> None:
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "layers": 2, "feedforward": 64, "positions": "rotary"}
    model = foveate.create("gpt-tiny", **sizes, mixing=mixing).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    tokens = torch.randint(1, 50, (2, 30))
    with torch.inference_mode():
        whole = model(tokens).logits
        logits, state = model.prefill(tokens[:, :20], torch.tensor([20, 11]))
        torch.testing.assert_close(logits, torch.stack([whole[0, 19], whole[1, 10]]), rtol=0, atol=1e-4)
        rows = [model.step(column, state) for column in tokens[:, 20:].unbind(1)]
        torch.testing.assert_close(torch.stack(rows, 1)[0], whole[0, 20:], rtol=0, atol=1e-4)
        with foveate.look(model) as sight:
            model(tokens)
    (maps, _) = (site.weights() for site in sight)
    assert maps.shape == (2, 4, 30, 30)
    if mixing == "differential":
        torch.testing.assert_close(maps.sum(-1), torch.ones(2, 4, 30))


def test_what_cannot_be_is_told() -> None:
    for sizes in ({"heads": 3}, {"heads": 4, "key_value_heads": 1}):
        with pytest.raises(UserError, match="needs pairs of heads of equal width"):
            DifferentialAttention(24, **sizes)
