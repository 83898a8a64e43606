"""The ways in which pictures of attention have gone wrong elsewhere, each tried here."""

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from foveate import look
from foveate.attention import attend, causal, padding
from foveate.attention.kernels import TABLE
from foveate.errors import UserError
from foveate.nn import MultiHeadAttention

B, H, N, D = 2, 3, 11, 5


class Attends(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, **self.options)


def draw(*shape: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(*shape, D), torch.randn(*shape, D), torch.randn(*shape, D)


def gpt2(implementation: str) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(n_layer=2, n_head=3, n_embd=24, vocab_size=53, n_positions=64, initializer_range=0.3)
    return GPT2LMHeadModel._from_config(config, attn_implementation=implementation).eval()


@pytest.mark.parametrize("kernel", [kernel.name for kernel in TABLE if not kernel.only])
def test_the_mask_is_not_dropped_because_weights_are_asked_for(kernel: str) -> None:
    """On every path: what is hidden has no weight, and the weights times the values are the output that was got."""
    mask = causal() & padding(torch.tensor([N, 4]))
    q, k, v = draw(B, H, N)
    q = q[:, :, :7]  # as few as every kernel serves
    plain = attend(q, k, v, mask=mask, kernel=kernel)
    with look(model := Attends(mask=mask, kernel=kernel)) as sight:
        output = model(q, k, v)
    weights = sight[""].weights()
    assert torch.equal(output, plain)
    assert not weights.triu(1).any()
    assert not weights[1, ..., 4:].any()
    torch.testing.assert_close(weights @ v, output)


def test_rows_and_columns_are_in_the_models_order() -> None:
    """Each query looks at the key that a permutation names, heads and examples apart."""
    orders = torch.stack([torch.randperm(N) for _ in range(B * H)]).view(B, H, N)
    keys = 40 * torch.eye(N).expand(B, H, N, N)
    queries = torch.eye(N)[orders]
    with look(model := Attends()) as sight:
        model(queries, keys, torch.randn(B, H, N, D))
    assert torch.equal(sight[""].weights().argmax(-1), orders)
    assert torch.equal(sight[""].top(1).keys[..., 0], orders)
    assert torch.equal(sight[""].weights(heads=[2, 0], queries=[7, 1]).argmax(-1), orders[:, [2, 0]][..., [7, 1]])


def test_looking_leaves_the_mode_of_the_model_alone() -> None:
    layer = MultiHeadAttention(12, 3, dropout=0.5)
    x = torch.randn(B, N, 12)
    for train in (True, False):
        with look(layer.train(train)) as sight:
            assert layer.training is train
            layer(x)
        assert layer.training is train
        torch.testing.assert_close(sight[""].weights().sum(-1), torch.ones(B, 3, N))


def test_an_answer_is_never_empty_where_something_attended() -> None:
    class Own(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return torch.baddbmm(v, (q @ k.mT).softmax(-1), v)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.looker = Own()

        def forward(self, *parts: Tensor) -> Tensor:
            return self.looker(*parts)

    with pytest.raises(UserError, match=r"looker \(Own\).* by a softmax of its own"), look(model := Model()):
        model(*(part[:, 0] for part in draw(B, H, N)))


def test_rows_that_may_look_nowhere_change_nothing_by_being_looked_at() -> None:
    mask = padding(torch.tensor([N, 0]))
    q, k, v = (part.requires_grad_() for part in draw(B, H, N))
    runs = []
    for looking in (False, True):
        model = Attends(mask=mask)
        if looking:
            with look(model) as sight:
                output = model(q, k, v)
        else:
            output = model(q, k, v)
        runs.append([output, *torch.autograd.grad(output.square().sum(), (q, k, v))])
    assert all(torch.equal(plain, looked) for plain, looked in zip(*runs, strict=True))
    assert not sight[""].weights()[1].any()


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_both_paths_of_a_model_are_causal(implementation: str) -> None:
    model = gpt2(implementation)
    with look(model) as sight, torch.no_grad():
        model(torch.randint(53, (B, N)))
    for site in sight.sites:
        weights = sight[site].weights()
        assert not weights.triu(1).any()
        assert (weights.diagonal(dim1=-2, dim2=-1) > 0).all()


def test_a_cache_is_not_off_by_one() -> None:
    """A step looks at its own key too: the rows of a generation are those of one pass over what was written."""
    model, ids = gpt2("sdpa"), torch.randint(3, 53, (B, 5))
    with look(model) as steps:
        written = model.generate(
            ids, attention_mask=torch.ones_like(ids), min_new_tokens=6, max_new_tokens=6, pad_token_id=0
        )
    with look(model) as whole, torch.no_grad():
        model(written[:, :-1])
    for site in whole.sites:
        torch.testing.assert_close(steps[site].weights(), whole[site].weights(), atol=1e-5, rtol=0)


def test_neither_microbatches_nor_padding_are_mixed_into_a_row() -> None:
    """Two batches are two maps, and a padded example's numbers are those it has alone."""
    q, k, v = draw(B, H, N)
    with look(model := Attends(mask=padding(torch.tensor([N, 4])))) as sight:
        model(q, k, v)
        model(q.flip(0), k.flip(0), v.flip(0))
    assert sight.sites == ["", "#2"]
    with look(model := Attends()) as alone:
        model(q[1:, :, :, :], k[1:, :, :4], v[1:, :, :4])
    for measure in ("entropy", "max", "distance"):
        padded, own = getattr(sight[""], measure)()[1], getattr(alone[""], measure)()[0]
        torch.testing.assert_close(padded, own)
    torch.testing.assert_close(sight[""].received()[1, :, :4], alone[""].received()[0])
