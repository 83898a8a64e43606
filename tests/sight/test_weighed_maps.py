"""Weights times what they weigh and times their gradients, beside whole maps of eager attention."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import foveate
from foveate import look
from foveate.errors import UserError
from foveate.sight import Knock, change
from foveate.sight.sinks import sinks

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

IDS = torch.tensor([[5, 9, 2, 7, 1, 9, 4], [3, 3, 8, 6, 2, 1, 0]])
HEADS = 2


def gpt2() -> Any:
    sizes: dict[str, Any] = {"n_embd": 8, "n_layer": 2, "n_head": HEADS, "vocab_size": 11, "n_positions": 16}
    config = transformers.GPT2Config(**sizes, attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    return transformers.GPT2LMHeadModel(config).eval()


def bert() -> Any:
    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 11}
    return transformers.BertForMaskedLM(transformers.BertConfig(**sizes, intermediate_size=12)).eval()


def llama() -> Any:
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 11}
    config = transformers.LlamaConfig(**sizes, intermediate_size=12, num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config).eval()


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any, int], Tensor]]] = {
    "gpt2": (gpt2, lambda model, layer: model.transformer.h[layer].attn.c_proj.weight),
    "bert": (bert, lambda model, layer: model.bert.encoder.layer[layer].attention.output.dense.weight.mT),
    "llama": (llama, lambda model, layer: model.model.layers[layer].self_attn.o_proj.weight.mT),
}


def attended(model: Any, ids: Tensor, kept: list[Tensor] | None = None) -> list[Tensor]:
    """The weights of every layer, with gradients."""
    model.set_attn_implementation("eager")
    found = model(ids, output_attentions=True)
    if kept is not None:
        kept.append(found.logits)
    return list(found.attentions)


@pytest.fixture(params=MODELS)
def made(request: pytest.FixtureRequest) -> tuple[Any, Callable[[Any, int], Tensor]]:
    torch.manual_seed(3)
    build, projection = MODELS[request.param]
    model = build()
    for parameter in model.parameters():  # biases of values count too
        nn.init.normal_(parameter, std=0.3)
    return model, projection


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_norms_are_weights_times_projected_values(made: Any, implementation: str) -> None:
    model, projection = made
    model.set_attn_implementation(implementation)
    with torch.no_grad(), look(model, values=True) as sight:
        model(IDS)
    assert not sight.notes
    values = []
    hooks = [
        module.register_forward_hook(lambda _, __, output: values.append(output.detach()))
        for name, module in model.named_modules()
        if name.endswith((".c_attn", ".value", ".v_proj"))
    ]
    with torch.no_grad():
        weights = attended(model, IDS)
    for hook in hooks:
        hook.remove()
    norms = sight.norms()
    for layer, site in enumerate(norms):
        heads = weights[layer].shape[1]
        matrix = projection(model, layer).detach()
        value = values[layer][..., -16 if isinstance(model, transformers.LlamaForCausalLM) else -8 :]
        value = value.unflatten(-1, (-1, matrix.shape[0] // heads)).transpose(1, 2)
        value = value.repeat_interleave(heads // value.shape[1], 1)
        given = torch.einsum("bhsv,hvc->bhsc", value, matrix.unflatten(0, (heads, -1))).norm(dim=-1)
        expected = weights[layer] * given[:, :, None]
        torch.testing.assert_close(site.weights(), expected, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(site.received(), expected.sum(-2), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(site.weights([1], [2, 0], [0]), expected[:, [1]][:, :, [2, 0]][..., [0]])


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_gradients_and_relevance_are_those_of_whole_maps(made: Any, implementation: str) -> None:
    model, _ = made
    kept: list[Tensor] = []
    maps = attended(model, IDS, kept)
    slopes = torch.autograd.grad(kept[0][:, -1, 4].sum(), maps)
    products = [weights * slope for weights, slope in zip(maps, slopes, strict=True)]
    model.set_attn_implementation(implementation)
    with look(model, gradients=True) as sight:
        logits = model(IDS).logits
    torch.testing.assert_close(logits, kept[0], rtol=1e-4, atol=1e-5)
    target = logits[:, -1, 4].sum()
    positive, signed = sight.gradients(target), sight.gradients(target, signed=True)
    for site, both, expected in zip(positive, signed, products, strict=True):
        torch.testing.assert_close(both.weights(), expected, rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(site.weights(), expected.clamp(min=0), rtol=1e-3, atol=1e-6)
    relevance = torch.eye(IDS.shape[1]).repeat(len(IDS), 1, 1)
    for each in products:
        relevance = relevance + each.clamp(min=0).mean(1) @ relevance
    torch.testing.assert_close(sight.relevance(target), relevance.detach(), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(sight.relevance(target, queries=-1), relevance[:, -1:].detach(), rtol=1e-3, atol=1e-6)


def test_torchs_own_layers_and_a_model_of_ours() -> None:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, HEADS, 12, dropout=0.0, batch_first=True)
    x = torch.randn(2, 5, 8)
    with look(layer, values=True) as sight:
        layer(x)
    assert not sight.notes
    attention = layer.self_attn
    value = x @ attention.in_proj_weight[16:].mT + attention.in_proj_bias[16:]
    matrix = attention.out_proj.weight.mT.unflatten(0, (HEADS, -1))
    given = torch.einsum("bshv,hvc->bhsc", value.unflatten(-1, (HEADS, -1)), matrix).norm(dim=-1)
    site = sight.norms()["self_attn"]
    torch.testing.assert_close(site.weights(), (sight["self_attn"].weights() * given[:, :, None]).detach())
    with look(layer, gradients=True) as sight:
        target = layer(x)[:, 0, 0].sum()
    assert sight.relevance(target).shape == (2, 5, 5)

    model = foveate.create("gpt-tiny", vocabulary=11).eval()
    with look(model, values=True, gradients=True) as sight:
        target = model(IDS).logits[:, -1, 3].sum()
    assert not sight.notes
    assert sight.relevance(target).shape == (2, 7, 7)
    for name, site in sight._recorded.items():
        attention: Any = model.get_submodule(name)
        (recorded,) = site.calls
        assert recorded.values is not None
        matrix = attention.output.weight.mT.unflatten(0, (site.shape[1], -1))
        given = torch.einsum("bhsv,hvc->bhsc", recorded.values, matrix).norm(dim=-1)
        torch.testing.assert_close(sight.norms()[name].weights(), (site.weights() * given[:, :, None]).detach())


def test_steps_with_a_growing_cache_have_the_norms_of_the_whole_text() -> None:
    torch.manual_seed(2)
    model = gpt2()
    with torch.no_grad():
        with look(model, values=True) as whole:
            model(IDS)
        with look(model, values=True) as stepwise:
            cache = model(IDS[:, :3], use_cache=True).past_key_values
            for place in range(3, 7):
                cache = model(IDS[:, place : place + 1], past_key_values=cache, use_cache=True).past_key_values
    for one, other in zip(whole.norms(), stepwise.norms(), strict=True):
        torch.testing.assert_close(one.weights(), other.weights(), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(one.pooled(3, 2), other.pooled(3, 2), rtol=1e-4, atol=1e-6)


def test_maps_without_sinks_are_shares_of_the_rest() -> None:
    torch.manual_seed(2)
    model = gpt2()
    with torch.no_grad(), look(model) as sight:
        model(IDS)
    site = sight[sight.sites[0]]
    weights, found = site.weights(), sinks(site, 0.2)
    assert found[..., 0].any()
    assert (found == (weights.mean(-2) > 0.2)).all()
    rest = weights.masked_fill(found[:, :, None], 0)
    expected = (rest / rest.sum(-1, keepdim=True)).nan_to_num(0)
    shown = sight.without_sinks(0.2)[site.name]
    torch.testing.assert_close(shown.weights(), expected, rtol=1e-4, atol=1e-6)
    top = shown.top(2)
    torch.testing.assert_close(top.weights[..., 0], expected.amax(-1), rtol=1e-4, atol=1e-6)


def test_what_was_not_kept_is_said() -> None:
    model = gpt2()
    with torch.no_grad(), look(model) as sight:
        logits = model(IDS).logits
    with pytest.raises(UserError, match="values=True"):
        sight.norms()
    with pytest.raises(UserError, match="gradients=True"):
        sight.gradients(logits.sum())
    with look(model, gradients=True, values=True) as sight:
        logits = model(IDS).logits
    with pytest.raises(UserError, match="no gradient"):
        sight.gradients(logits.detach().sum())
    with pytest.raises(UserError, match="does not depend"):
        sight.gradients(torch.ones((), requires_grad=True))
    with pytest.raises(UserError, match="as it was recorded"):
        sight.norms().norms()
    with pytest.raises(UserError, match="without keep"), look(model, keep=["top"], values=True):
        pass
    knocked = change(model, {"*": Knock(heads=0)})
    with pytest.raises(UserError, match="close it first"), knocked, look(model, gradients=True):
        pass


def test_statistics_are_those_of_whole_maps() -> None:
    torch.manual_seed(2)
    model = bert()
    with torch.no_grad(), look(model) as sight, look_at_scores() as scores:
        model(IDS)
    for site, raw in zip(sight, scores, strict=True):
        weights, found = site.weights(), site.statistics()
        torch.testing.assert_close(found.entropy, -(weights * weights.log()).sum(-1).mean((0, 2)))
        torch.testing.assert_close(found.largest_score, raw.amax((0, 2, 3)))
        torch.testing.assert_close(found.sink_share, weights.mean(2).amax(-1).mean(0))
    with torch.no_grad(), look(model, keep=["entropy", "score", "received"]) as kept:
        model(IDS)
    for one, other in zip(sight, kept, strict=True):
        torch.testing.assert_close(one.statistics(), other.statistics())


@contextmanager
def look_at_scores() -> Iterator[list[Tensor]]:
    """The scaled scores of each call of torch's attention function."""
    found: list[Tensor] = []
    plain = torch.nn.functional.scaled_dot_product_attention

    class Noted(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is plain:
                found.append((args[0] @ args[1].mT) / args[0].shape[-1] ** 0.5)
            return func(*args, **(kwargs or {}))

    with Noted():
        yield found


class ByHand(nn.Module):
    """Attention as in a lecture: a softmax, multiplied with the values."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.output = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.project(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        self.kept = (q @ k.mT / 2).softmax(-1)
        self.values = v
        return self.output((self.kept @ v).transpose(1, 2).flatten(2))


def test_weights_that_a_model_makes_itself() -> None:
    torch.manual_seed(6)
    model, x = ByHand(), torch.randn(2, 5, 8)
    with look(model, values=True, gradients=True) as sight:
        target = model(x)[:, 0, 3].sum()
    (slope,) = torch.autograd.grad(target, model.kept, retain_graph=True)
    (site,) = sight
    matrix = model.output.weight.mT.unflatten(0, (HEADS, -1))
    given = torch.einsum("bhsv,hvc->bhsc", model.values, matrix).norm(dim=-1)
    assert not sight.notes
    torch.testing.assert_close(sight.norms()[site.name].weights(), (model.kept * given[:, :, None]).detach())
    found = sight.gradients(target, signed=True)[site.name].weights()
    torch.testing.assert_close(found, (model.kept * slope).detach(), rtol=1e-4, atol=1e-6)
