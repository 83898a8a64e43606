"""Multi-token attention: its definition, kernels, gradients, states, and a language model that has it."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import Entmax, MultiToken, Soft, attend, attend_full, causal, padding, window
from foveate.attention.kernels import rows
from foveate.nn import multi_token_attention


def made(heads: int, **parts: object) -> MultiToken:
    rule = MultiToken(heads, **parts).double()
    for parameter in rule.parameters():
        nn.init.normal_(parameter)
    return rule


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def by_definition(rule: MultiToken, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, query by query and key by key, as sections 3.1 and 3.2 of the paper have it; all heads are one group."""
    heads, count = q.shape[:2]
    scores = (q @ k.mT / q.shape[-1] ** 0.5).tril()  # 0 where a key is hidden
    joined = torch.full_like(scores, -torch.inf)
    for head, i in ((head, i) for head in range(heads) for i in range(count)):
        for j in range(i + 1):
            near = [
                rule.convolution[head, -1 - back, rule.convolution.shape[-1] // 2 + aside]
                * scores[head, i - back, j + aside]
                for back in range(min(i + 1, rule.convolution.shape[1]))
                for aside in (-1, 0, 1)
                if 0 <= j + aside < count
            ]
            joined[head, i, j] = sum(near)
    return torch.einsum("gh,hts->gts", rule.mixture[0], joined.softmax(-1)) @ v


def test_it_is_what_the_paper_defines() -> None:
    rule, parts = made(2, queries=3, keys=3, group=2), [drawn(2, 7, 4) for _ in range(3)]
    found = attend(*parts, mask=causal(), select=rule)
    torch.testing.assert_close(found, by_definition(rule, *parts))
    assert torch.autograd.gradcheck(
        lambda *given: attend(*given, mask=causal(), select=rule),
        [part[:, :4].detach().requires_grad_() for part in parts],
    )


def test_it_begins_as_attention() -> None:
    parts = [drawn(3, 2, 9, 4) for _ in range(3)]
    rule = MultiToken(2, group=2).double()
    torch.testing.assert_close(attend(*parts, mask=causal(), select=rule), attend(*parts, mask=causal()))


@pytest.mark.parametrize("inner", [Soft(), Entmax()])
def test_kernels_agree(inner: Soft | Entmax, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 300)
    rule, parts = made(2, queries=4, keys=5, rule=inner), [drawn(3, 2, 23, 5) for _ in range(3)]
    found = []
    for kernel in ("eager", "rows"):
        mask = causal() & window(6) & padding(torch.tensor([23, 4, 0]))
        full = attend_full(*parts, mask=mask, select=rule, kernel=kernel)
        total = full.output.square().sum() + full.log_sum_exp.sin().sum()
        gradients = torch.autograd.grad(total, [*parts, *rule.parameters()])
        found.append([full.output, full.log_sum_exp, full.state, *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_language_model_has_it_step_by_step_and_in_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    sizes = {"vocabulary": 50, "width": 32, "heads": 4, "layers": 2, "feedforward": 64, "positions": "rotary"}
    model = foveate.create("gpt-tiny", **sizes, window=9, mixing="multi-token").eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    tokens = torch.randint(1, 50, (2, 30))
    with torch.inference_mode(), foveate.look(model) as sight:
        whole = model(tokens).logits
    with torch.inference_mode(), foveate.look(model) as steps:
        logits, state = model.prefill(tokens[:, :20], torch.tensor([20, 11]))
        torch.testing.assert_close(logits, torch.stack([whole[0, 19], whole[1, 10]]), rtol=0, atol=1e-4)
        columns = [model.step(column, state) for column in tokens[:, 20:].unbind(1)]
    torch.testing.assert_close(torch.stack(columns, 1)[0], whole[0, 20:], rtol=0, atol=1e-4)
    with torch.inference_mode(), foveate.look(model) as pieces:
        _, again = model.prefill(tokens[:, :20], torch.tensor([20, 11]))
        monkeypatch.setattr(multi_token_attention, "LARGE", 2 * 4 * 30 * 3)  # three tokens at a time
        torch.testing.assert_close(model.steps(tokens[:, 20:], again), torch.stack(columns, 1), rtol=0, atol=1e-4)
    assert len(next(site for site in pieces if site.name.endswith("0.self")).calls) == 5
    site, _ = sight
    weights = site.weights()
    torch.testing.assert_close(site.weights(heads=[2], queries=[0, 2, 7, 29]), weights[:, [2]][:, :, [0, 2, 7, 29]])
    torch.testing.assert_close(next(iter(steps)).weights()[0], weights[0], rtol=0, atol=1e-4)
    state.reorder(torch.tensor([1, 0, 0]))
    assert state.past[0].scores.shape == (3, 4, 5, 30)
    with pytest.raises(ValueError, match="cannot be cropped"):
        state.past[0].crop(3)


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(ValueError, match="keys must be odd"):
        MultiToken(4, keys=2)
    with pytest.raises(ValueError, match="does not have 4 heads"):
        MultiToken(4).weigh(torch.zeros(3, 5, 5))
