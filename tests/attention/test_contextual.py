"""Contextual positions: their definition, kernels, gradients, and a language model that has them."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import ContextualPosition, Entmax, TalkingHeads, attend, causal, padding
from foveate.attention.kernels import rows
from foveate.errors import UserError
from foveate.interop.public_folder import layout_for
from foveate.models import config_class
from foveate.nn import MultiHeadAttention


def made(width: int, count: int, **parts: object) -> ContextualPosition:
    rule = ContextualPosition(width, count, **parts).double()
    nn.init.normal_(rule.vectors)
    return rule


def by_definition(rule: ContextualPosition, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Query by query and key by key, as section 4 of the paper has it."""
    output = torch.zeros(len(q), v.shape[-1], dtype=q.dtype)
    for i, query in enumerate(q):
        scores = k[: i + 1] @ query / q.shape[-1] ** 0.5
        added = []
        for j in range(i + 1):
            place = min(float(scores[j:].sigmoid().sum()), len(rule.vectors) - 1)
            low = int(place)
            high = min(low + 1, len(rule.vectors) - 1)
            added.append((place - low) * rule.vectors[high] @ query + (1 - place + low) * rule.vectors[low] @ query)
        output[i] = (scores + torch.stack(added)).softmax(0) @ v[: i + 1]
    return output


def test_it_is_what_the_paper_defines() -> None:
    rule, (q, k, v) = made(4, 3), (torch.randn(9, 4, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(attend(q, k, v, mask=causal(), select=rule), by_definition(rule, q, k, v))
    fewer = [part[:5].requires_grad_() for part in (q, k, v)]
    assert torch.autograd.gradcheck(lambda *given: attend(*given, mask=causal(), select=rule), fewer)


@pytest.mark.parametrize("rule", [None, Entmax()])
def test_kernels_agree_on_grouped_heads(rule: Entmax | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 300)
    position = made(5, 4, rule=rule)
    q = torch.randn(2, 3, 2, 11, 5, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(2, 3, 1, 13, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    found = []
    for kernel in ("eager", "rows"):
        mask = causal(2) & padding(torch.tensor([13, 4]))
        output = attend(q, k, v, mask=mask, select=position, kernel=kernel)
        found.append([output, *torch.autograd.grad(output.square().sum(), [q, k, v, position.vectors])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_language_model_has_them_in_each_layer_step_by_step_and_in_looks() -> None:
    torch.manual_seed(0)
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "key_value_heads": 2, "layers": 2, "feedforward": 64}
    model = foveate.create("gpt-tiny", **sizes, positions="contextual").eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    tokens = torch.randint(1, 50, (2, 30))
    with torch.inference_mode(), foveate.look(model) as sight:
        whole = model(tokens).logits
    with torch.inference_mode():
        logits, state = model.prefill(tokens[:, :20], torch.tensor([20, 11]))
        torch.testing.assert_close(logits, torch.stack([whole[0, 19], whole[1, 10]]), rtol=0, atol=1e-4)
        steps = [model.step(column, state) for column in tokens[:, 20:].unbind(1)]
    torch.testing.assert_close(torch.stack(steps, 1)[0], whole[0, 20:], rtol=0, atol=1e-4)
    layers = [layer.select for layer in model.modules() if isinstance(layer, MultiHeadAttention)]
    assert len({id(layer.vectors) for layer in layers}) == 2
    site, _ = sight
    torch.testing.assert_close(site.weights(heads=[2], queries=[7, 29]), site.weights()[:, [2]][:, :, [7, 29]])


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(TypeError, match="depend on the queries"):
        ContextualPosition(4, 3).weigh(torch.zeros(2, 2))
    with pytest.raises(UserError, match="need mixing other than 'multi-token'"):
        foveate.create("gpt-tiny", vocabulary=9, positions="contextual", mixing="multi-token")
    for family in ("gpt", "llama", "bert"):
        config = config_class(family)(vocabulary=9, positions="contextual")
        with pytest.raises(UserError, match="positions"):
            layout_for(family, config).write_config(config)


def test_looks_at_some_heads_where_heads_are_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where blocks are too small for all heads."""
    monkeypatch.setattr("foveate.sight.blocks.BLOCK", 64)
    layer = MultiHeadAttention(12, 3, select=TalkingHeads(3)).eval()
    nn.init.normal_(layer.select.before)
    nn.init.normal_(layer.select.after)
    with torch.inference_mode(), foveate.look(layer) as sight:
        layer(torch.randn(2, 20, 12), mask=causal())
    (site,) = sight
    torch.testing.assert_close(site.weights(heads=[1], queries=[3, 19]), site.weights()[:, [1]][:, :, [3, 19]])
