"""Layers with a state of fixed size: public weights, steps, texts that begin anew, and in a language model."""

import pytest
import torch
from torch import Tensor, nn
from transformers import Mamba2Config, Qwen3NextConfig
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

import foveate
from foveate.attention import causal, left_padding, padding, same_text
from foveate.errors import UserError
from foveate.models.idle_settings import STATES
from foveate.nn.running import LAYERS, GatedDelta, Mamba2, running_layer

LONG = 150
"""More than two chunks."""


def drawn(module: nn.Module) -> nn.Module:
    """A module whose parameters are not those it begins with."""
    for name, parameter in module.named_parameters():
        if "log" not in name:
            nn.init.normal_(parameter, std=0.3)
    return module.eval()


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=5e-5)


@torch.no_grad()
def test_mamba_2_is_that_of_transformers() -> None:
    sizes = {"hidden_size": 24, "num_heads": 6, "head_dim": 8, "state_size": 10, "expand": 2, "n_groups": 1}
    theirs = drawn(Mamba2Mixer(Mamba2Config(**sizes, chunk_size=32, num_hidden_layers=1), 0))
    state = theirs.state_dict()
    gate, inside, step = state["in_proj.weight"].split([48, 68, 6])
    ours = Mamba2(24, 6, 10)
    names = {"output.weight": "out_proj.weight", "convolution.bias": "conv1d.bias", "step_bias": "dt_bias"}
    names |= {"log_rate": "A_log", "skip": "D", "norm.weight": "norm.weight"}
    given = {"gate.weight": gate, "input.weight": inside, "step.weight": step}
    given["convolution.weight"] = state["conv1d.weight"][:, 0].T
    ours.load_state_dict(given | {own: state[name] for own, name in names.items()})
    x = torch.randn(2, LONG, 24)
    close(ours(x, mask=causal()), theirs(x))


@torch.no_grad()
def test_the_gated_delta_rule_is_that_of_qwen3_next() -> None:
    sizes = {
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 4,
        "linear_key_head_dim": 6,
        "linear_value_head_dim": 6,
    }
    config = Qwen3NextConfig(hidden_size=24, **sizes, num_hidden_layers=1, layer_types=["linear_attention"])
    theirs = drawn(Qwen3NextGatedDeltaNet(config, 0))
    state = theirs.state_dict()
    parts = state["in_proj_qkvz.weight"].unflatten(0, (4, 24)).split(6, 1)
    gates = state["in_proj_ba.weight"].unflatten(0, (4, 2)).split(1, 1)
    inputs = zip(("query", "key", "value", "gate", "strength", "decay"), (*parts, *gates), strict=True)
    given = {f"{name}.weight": part.flatten(0, 1) for name, part in inputs}
    names = {"output.weight": "out_proj.weight", "log_rate": "A_log", "decay_bias": "dt_bias"}
    names["norm.weight"] = "norm.weight"
    given["convolution.weight"] = state["conv1d.weight"][:, 0].T
    ours = GatedDelta(24, 4)
    ours.load_state_dict(given | {own: state[name] for own, name in names.items()})
    x = torch.randn(2, LONG, 24)
    close(ours(x, mask=causal()), theirs(x))


@torch.no_grad()
@pytest.mark.parametrize("name", LAYERS)
def test_steps_go_on_from_the_state(name: str) -> None:
    layer, x = drawn(running_layer(name, 24, 4)), torch.randn(3, LONG, 24)
    past = layer.memory(x[:, :0])
    begun = layer(x[:, :70], mask=causal(), past=past)
    past.reorder(torch.tensor([2, 0]))
    rest = [layer(x[[2, 0], place : place + 1], past=past) for place in range(70, 75)]
    rest.append(layer(x[[2, 0], 75:], mask=causal(75), past=past))
    close(torch.cat([begun[[2, 0]], *rest], 1), layer(x[[2, 0]], mask=causal()))
    assert past.length == LONG


@torch.no_grad()
@pytest.mark.parametrize("name", LAYERS)
def test_a_text_behind_another_or_behind_padding_begins_anew(name: str) -> None:
    layer, x = drawn(running_layer(name, 24, 4)), torch.randn(2, LONG, 24)
    texts = torch.zeros(2, LONG, dtype=torch.long)
    texts[:, 60:], texts[1, 90:] = 1, 2
    packed = layer(x, mask=causal() & same_text(texts))
    close(packed[:, 60:90], layer(x[:, 60:90], mask=causal()))
    close(packed[1:, 90:], layer(x[1:, 90:], mask=causal()))
    padded = layer(x, mask=causal() & left_padding(torch.tensor([0, 70])))
    close(padded[:1], layer(x[:1], mask=causal()))
    close(padded[1:, 70:], layer(x[1:, 70:], mask=causal()))
    close(layer(x, mask=causal() & padding(torch.tensor([LONG, 80])))[1:, :80], layer(x[1:, :80], mask=causal()))


@pytest.mark.parametrize("name", LAYERS)
def test_a_language_model_is_read_looked_into_and_continued(name: str) -> None:
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "layers": 2, "feedforward": 64}
    model = foveate.create("gpt-tiny", **sizes, mixing=name).eval()
    tokens = torch.randint(1, 50, (2, 90))
    with torch.inference_mode():
        whole = model(tokens).logits
        logits, state = model.prefill(tokens[:, :50], torch.tensor([50, 41]))
        close(logits, torch.stack([whole[0, 49], whole[1, 40]]))
        rows = [model.step(column, state) for column in tokens[:, 50:].unbind(1)]
        close(torch.stack(rows, 1)[0], whole[0, 50:])
        with foveate.look(model) as sight:
            model(tokens)
    (maps, _) = (site.weights() for site in sight)
    assert maps.shape == (2, 4, 90, 90)
    assert (maps.triu(1) == 0).all()
    assert maps.isfinite().all()
    assert (maps != 0).sum() > maps.numel() // 4
    model.train()(tokens).logits.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_names_of_layers_with_a_state_are_those_of_the_rules() -> None:
    assert {*STATES} == {*LAYERS}


def test_what_does_not_go_together_is_told() -> None:
    layer, x = running_layer("retention", 8, 2), torch.randn(1, 5, 8)
    with pytest.raises(UserError, match="reads from left to right: it needs a causal mask"):
        layer(x)
    with pytest.raises(UserError, match="reads its own input alone"):
        layer(x, x, mask=causal())
    for name in ("linear", "mamba-2"):
        with pytest.raises(UserError, match="has no rotary positions"):
            foveate.create("gpt-tiny", vocabulary=9, mixing=name, positions="rotary")
    with pytest.raises(UserError, match="width 9 is not a multiple of 2 heads"):
        running_layer("linear", 9, 2)
    with pytest.raises(UserError, match="mixing='retention' has no window"):
        foveate.create("gpt3-tiny", vocabulary=9, mixing="retention")
    with pytest.raises(
        UserError, match="has no relative-projected positions: choose none, sinusoidal, learned, rotary"
    ):
        foveate.create("gpt-tiny", vocabulary=9, mixing="gated-delta", positions="relative-projected")
