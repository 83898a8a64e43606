"""Changes of attention, for every way to attend: what the formula gives in double precision."""

import math
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

import foveate
from foveate import look
from foveate.attention import Dot, Hard, Soft, SoftCapped, attend
from foveate.attention.scores import ScaledDot
from foveate.errors import UserError
from foveate.sight import Change, Flatten, Knock, Patch, Redirect, Scale, Sharpen, change

transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
]

B, H, T, S, D = 2, 6, 7, 11, 5


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    alibi_slopes=None, deterministic=False, return_attn_probs=False,
):  # fmt: skip
    """The signature of flash-attn 2.8, whose tensors have the heads behind the tokens."""
    return F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v))).transpose(1, 2)


@pytest.fixture(autouse=True)
def _package(request: pytest.FixtureRequest) -> Iterator[None]:
    """The package for its own tests alone: transformers would ask it for more."""
    if not hasattr(request.node, "callspec") or request.node.callspec.params.get("way") != "flash-attn":
        yield
        return
    package = ModuleType("flash_attn")
    package.flash_attn_func = flash_attn_func  # type: ignore[attr-defined]
    sys.modules["flash_attn"] = package
    yield
    del sys.modules["flash_attn"]


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    function = sys.modules["flash_attn"].flash_attn_func
    return function(*(part.transpose(1, 2) for part in (q, k, v))).transpose(1, 2)


def in_groups(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Three heads of queries for each of keys, which are every third one."""
    return F.scaled_dot_product_attention(q, k[:, ::3], v[:, ::3], enable_gqa=True)


def by_registry(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """As a layer of transformers attends."""

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        functions = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS
        eager = transformers.models.llama.modeling_llama.eager_attention_forward
        layer = nn.Module()
        layer.num_key_value_groups, layer.training, layer.is_causal = 1, False, False  # type: ignore[assignment]
        output = functions.get_interface(name, eager)(layer, q, k, v, None, scaling=1 / math.sqrt(D))[0]
        return output.transpose(1, 2)

    return call


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "attend": attend,
    "attend, blocked": lambda q, k, v: attend(q, k, v, kernel="blocked"),
    "torch": F.scaled_dot_product_attention,
    "torch in groups": in_groups,
    "flex_attention": flex_attention,
    "flash-attn": flash,
    "transformers, eager": by_registry("eager"),
    "transformers, sdpa": by_registry("sdpa"),
}


class Attends(nn.Module):
    """A layer of each way to attend."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = WAYS[way]

    def forward(self, *given: Tensor) -> Tensor:
        return self.way(*given)


class Model(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.second = Attends(way), Attends(way)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return self.first(q, k, v), self.second(q, k, v)


HEADS = torch.tensor([False, True, False, False, True, False])[:, None, None]
ROWS = torch.arange(T)[:, None]
COLUMNS = torch.arange(S)

Edit = Callable[[Tensor], Tensor]

CHANGES: dict[str, tuple[Change | list[Change], Edit, float]] = {
    "heads": (Knock([1, 4]), lambda scores: scores.masked_fill(HEADS, -torch.inf), 1.0),
    "last but one": (
        Knock(-2),
        lambda scores: scores.masked_fill(torch.arange(H)[:, None, None] == 4, -torch.inf),
        1.0,
    ),
    "keys": (Knock(keys=[0, 7]), lambda scores: scores.masked_fill((COLUMNS == 0) | (COLUMNS == 7), -torch.inf), 1.0),
    "edges": (
        Knock([1, 4], queries=slice(2, 5), keys=3),
        lambda scores: scores.masked_fill(HEADS & (ROWS >= 2) & (ROWS < 5) & (COLUMNS == 3), -torch.inf),
        1.0,
    ),
    "rows": (Knock(queries=[6]), lambda scores: scores.masked_fill(ROWS == 6, -torch.inf), 1.0),
    "redirected": (
        Redirect([2, 3], others=0.05, heads=[1, 4]),
        lambda scores: scores + (HEADS & (COLUMNS != 2) & (COLUMNS != 3)) * math.log(0.05),
        1.0,
    ),
    "sharpened": (Sharpen(3.0, [1, 4]), lambda scores: torch.where(HEADS, 3 * scores, scores), 1.0),
    "flattened": (Flatten([1, 4]), lambda scores: torch.where(HEADS, 0 * scores, scores), 1.0),
    "scaled": (Scale(-0.5, [1, 4]), lambda scores: scores, -0.5),
    "several": (
        [Sharpen(3.0, [1, 4]), Knock(keys=[0])],
        lambda scores: torch.where(HEADS, 3 * scores, scores).masked_fill(COLUMNS == 0, -torch.inf),
        1.0,
    ),
}
"""What changes the scores of the heads 1 and 4 or of all, and the factor of the output of the heads 1 and 4."""


def given() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    return torch.randn(B, H, T, D), torch.randn(B, H, S, D), torch.randn(B, H, S, D)


def expected(way: str, edit: Edit, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """Outputs and weights by the formula."""
    q, k, v = (part.double() for part in given())
    if way == "torch in groups":
        k, v = (part[:, ::3].repeat_interleave(3, 1) for part in (k, v))
    weights = edit(q @ k.mT / math.sqrt(D)).softmax(-1).nan_to_num()
    return (torch.where(HEADS, factor, 1.0) * (weights @ v)).float(), weights.float()


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("way", WAYS)
def test_outputs_and_weights(way: str, kind: str) -> None:
    changes, edit, factor = CHANGES[kind]
    model = Model(way)
    unchanged = model(*given())[0]
    with change(model, {"second": changes}), look(model) as sight:
        first, second = model(*given())
    output, weights = expected(way, edit, factor)
    assert torch.equal(first, unchanged)
    assert not torch.allclose(unchanged, output, atol=0.05)
    torch.testing.assert_close(second, output, atol=1e-5, rtol=0)
    torch.testing.assert_close(sight["second"].weights(), weights, atol=1e-5, rtol=0)
    torch.testing.assert_close(sight["first"].weights(), expected(way, lambda scores: scores)[1], atol=1e-5, rtol=0)
    assert torch.equal(model(*given())[1], unchanged)  # nothing is left behind


@pytest.mark.parametrize("parts", ["queries", "keys", "both"])
@pytest.mark.parametrize("way", WAYS)
def test_another_input_is_put_in(way: str, parts: str) -> None:
    model, (q, k, v) = Model(way), given()
    other_q, other_k = torch.randn_like(q), torch.randn_like(k)
    with look(model) as sight:
        model(other_q, other_k, v)
    patch = Patch(sight["second"], [1, 4], queries=parts != "keys", keys=parts != "queries")
    with change(model, {"second": patch}):
        _, found = model(q, k, v)
    if way == "torch in groups":  # some heads of a group have other keys than the others
        k, other_k, v = (part[:, ::3].repeat_interleave(3, 1) for part in (k, other_k, v))
    mixed_q = torch.where(HEADS, other_q, q) if patch.queries else q
    mixed_k = torch.where(HEADS, other_k, k) if patch.keys else k
    wanted = (mixed_q.double() @ mixed_k.double().mT / math.sqrt(D)).softmax(-1) @ v.double()
    torch.testing.assert_close(found, wanted.float(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("needs", ["none", "mean", "all"])
def test_layers_of_torch(needs: str, batch_first: bool) -> None:
    layer = nn.MultiheadAttention(H * D, H, batch_first=batch_first)
    x = torch.randn((B, T, H * D) if batch_first else (T, B, H * D))
    with torch.no_grad():
        _, own = layer(x, x, x, average_attn_weights=False)
        with change(layer, {"": Knock([1, 4])}):
            output, weights = layer(x, x, x, need_weights=needs != "none", average_attn_weights=needs == "mean")
        layer.out_proj.weight.unflatten(1, (H, D))[:, [1, 4]] = 0  # what these heads give is lost
        torch.testing.assert_close(output, layer(x, x, x)[0], atol=1e-5, rtol=0)
    if needs == "none":
        assert weights is None
    else:
        own[:, [1, 4]] = 0
        torch.testing.assert_close(weights, own.mean(1) if needs == "mean" else own, atol=1e-5, rtol=0)


SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SMALL = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 20}
GROUPED = {**SMALL, **SPECIAL, "num_key_value_heads": 2, "head_dim": 4}

PUBLIC: dict[str, tuple[str, dict[str, Any]]] = {
    "Bert": ("BertModel", {**SMALL, "pad_token_id": 0}),
    "GPT2": ("GPT2Model", {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 53, "n_positions": 64, **SPECIAL}),
    "Llama": ("LlamaModel", GROUPED),
    "Gemma2": ("Gemma2Model", {**GROUPED, "sliding_window": 4, "attn_logit_softcapping": 2.0}),
    "GptOss": ("GptOssModel", {**GROUPED, "sliding_window": 4, "num_local_experts": 3, "num_experts_per_tok": 2}),
}


def public(name: str, implementation: str) -> nn.Module:
    kind, sizes = PUBLIC[name]
    config = getattr(transformers, f"{name}Config")(**sizes)
    torch.manual_seed(0)
    model = getattr(transformers, kind)._from_config(config, attn_implementation=implementation)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=1.5 / parameter.shape[-1] ** 0.5)
    return model.eval()


@pytest.mark.parametrize("name", PUBLIC)
def test_hidden_keys_are_those_of_a_mask(name: str) -> None:
    """A model of transformers by the mask that it takes, and by a change, in both of its implementations."""
    tokens, hidden = torch.randint(3, 53, (B, S)), [4, 6]
    mask = torch.ones(B, S).long()
    mask[:, hidden] = 0
    for implementation in ("eager",) if name in ("Gemma2", "GptOss") else ("eager", "sdpa"):
        model = public(name, implementation)
        with torch.no_grad():
            wanted = model(tokens, attention_mask=mask, position_ids=torch.arange(S)[None]).last_hidden_state
            with change(model, {"*": Knock(keys=hidden)}):
                found = model(tokens, position_ids=torch.arange(S)[None]).last_hidden_state
        seen = mask[0].bool()  # a mask also changes what the hidden ones read
        torch.testing.assert_close(found[:, seen], wanted[:, seen], atol=1e-5, rtol=0)
        assert not torch.allclose(found, model(tokens).last_hidden_state, atol=1e-3)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_edges_of_a_text_that_is_written_step_by_step(implementation: str) -> None:
    """Positions count from the first token of the text, with a cache and without one."""
    kind, sizes = "LlamaForCausalLM", GROUPED
    torch.manual_seed(0)
    model = getattr(transformers, kind)._from_config(
        transformers.LlamaConfig(**sizes), attn_implementation=implementation
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=1.5 / parameter.shape[-1] ** 0.5)
    tokens, changes = torch.randint(3, 53, (1, S)), {"model.layers.*": Knock([1, 2], queries=[5, 8], keys=slice(1, 4))}
    model.eval()
    with torch.no_grad(), change(model, changes):
        whole = model(tokens).logits
        cache, steps = transformers.DynamicCache(config=model.config), []
        for part in tokens.split([4, 1, 1, 1, 1, 1, 1, 1], 1):
            steps.append(model(part, past_key_values=cache).logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=2e-5, rtol=0)
    assert not torch.allclose(whole[:, 5:], model(tokens).logits[:, 5:], atol=0.1)
    torch.testing.assert_close(whole[:, :5], model(tokens).logits[:, :5])


def test_other_scores_and_selections() -> None:
    class Other(nn.Module):
        def __init__(self, **settings: Any) -> None:
            super().__init__()
            self.settings = settings

        def forward(self, *parts: Tensor) -> Tensor:
            return attend(*parts, **self.settings)

    q, k, v = given()
    capped, bias = SoftCapped(ScaledDot(), 0.7), torch.randn(H, T, S)
    bias[:, 2, 3] = -torch.inf
    scores = 0.7 * torch.tanh(q.double() @ k.double().mT / math.sqrt(D) / 0.7) + bias
    model = Other(score=capped, bias=bias)
    for by in (3.0, 0.0):
        with change(model, {"": Sharpen(by, [1, 4])}):
            found = model(q, k, v)
        sharp = torch.where(HEADS & scores.isfinite(), by * scores, scores)
        torch.testing.assert_close(found, (sharp.softmax(-1) @ v.double()).float(), atol=1e-5, rtol=0)
    model = Other(select=Hard())
    with change(model, {"": Knock(keys=slice(1, None))}):
        assert torch.equal(model(q, k, v), v[:, :, :1].expand(B, H, T, D))
    model = Other(select=Soft(torch.zeros(H)))
    with change(model, {"": Knock([1, 4])}):
        assert not model(q, k, v)[:, [1, 4]].any()


def test_gradients_are_those_of_the_changed_model() -> None:
    model, (q, k, v) = Model("torch"), given()
    q.requires_grad_()
    with change(model, {"second": Scale(2.0)}):
        _, second = model(q, k, v)
    (gradient,) = torch.autograd.grad(second.sum(), q)
    (plain,) = torch.autograd.grad(model(q, k, v)[1].sum(), q)
    torch.testing.assert_close(gradient, 2 * plain, atol=1e-5, rtol=0)


def test_a_model_of_our_own() -> None:
    """A head that is out in all layers that attend across is as good as one whose output weights are zero."""
    model = foveate.create("transformer-tiny", src_vocab=31, tgt_vocab=29).eval()
    source, target = torch.randint(4, 29, (2, 9)), torch.randint(4, 29, (2, 7))
    lengths = torch.tensor([9, 6])
    with torch.no_grad():
        plain = model(source, lengths, target).logits
        with change(model, {"*.cross": Knock(1)}), look(model) as sight:
            found = model(source, lengths, target).logits
        layers = [module for name, module in model.named_modules() if name.endswith(".cross")]
        for layer in layers:
            layer.output.weight.unflatten(1, (-1, layer.value_width))[:, 1] = 0
        torch.testing.assert_close(found, model(source, lengths, target).logits, atol=1e-5, rtol=0)
    assert not torch.allclose(found, plain, atol=1e-3)
    cross = [site for site in sight.sites if site.endswith("cross")]
    assert len(cross) == len(layers)
    assert all(not sight[site].weights()[:, 1].any() for site in cross)


def test_errors() -> None:
    model, parts = Model("torch"), given()
    untouched = model(*parts)
    with pytest.raises(UserError, match=r"^second has 6 heads, 0 to 5: there is no head 6$"):  # noqa: SIM117
        with change(model, {"second": Knock([2, 6])}):
            model(*parts)
    with pytest.raises(UserError, match="no module that attends has a path like third; modules"):  # noqa: SIM117
        with change(model, {"third": Knock(2)}):
            model(*parts)
    with pytest.raises(UserError, match=r"^Knock\(.*keys=\[40\]\) of 'first' changed nothing: "):  # noqa: SIM117
        with change(model, {"first": [Knock(2), Knock(keys=[40])]}):
            model(*parts)
    with pytest.raises(UserError, match="another change is open"), change(model, {"*": Knock(2)}):  # noqa: SIM117
        with change(model, {"*": Knock(2)}):
            pass
    with pytest.raises(UserError, match="open the change before the look"), look(model):  # noqa: SIM117
        with change(model, {"*": Knock(2)}):
            pass
    with pytest.raises(KeyError), change(model, {"*": Knock(2)}):
        raise KeyError
    with pytest.raises(UserError, match="others is a factor above 0, not 0; Knock"):
        Redirect(2, others=0)
    with pytest.raises(UserError, match="by is inf, but must be a finite number"):
        Sharpen(math.inf)
    with look(model) as sight:
        model(*parts)
    with pytest.raises(UserError, match=r"say what to put in: Patch\(site, queries=True\)"):
        Patch(sight["first"])
    with (
        pytest.raises(UserError, match=r"second has keys of shape \(2, 6, 9, 5\) here and \(2, 6, 11, 5\) in the look"),
        change(model, {"second": Patch(sight["first"], keys=True)}),
    ):
        model(parts[0], *(part[:, :, :9] for part in parts[1:]))
    for first, second in zip(untouched, model(*parts), strict=True):
        assert torch.equal(first, second)


class Own(nn.Module):
    """Makes its weights itself, with dropout in training."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.dropout((q @ k.mT).softmax(-1), 0.5, self.training) @ v


@pytest.mark.parametrize("made", [Knock(1), Knock(keys=[0, 3]), Flatten(0), Sharpen(2.0), Scale(0.5, 1), Redirect(2)])
def test_weights_that_a_model_makes_itself(made: Change) -> None:
    """They are changed as those of the same call of `attend`, and a look shows it."""

    class Attends(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return attend(q, k, v, score=Dot())

    found = []
    parts = given()
    for model in (Own().eval(), Attends()):
        with change(model, {"*": made}), look(model) as sight:
            output = model(*parts)
        found.append((output, sight[""].weights()))
    (own, own_weights), (expected, weights) = found
    torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(own_weights, weights, atol=1e-5, rtol=0)


def test_weights_of_its_own_that_cannot_be_changed() -> None:
    with pytest.raises(UserError, match=r"its weights itself, and they cannot be changed: .* call model.eval\(\)"):  # noqa: SIM117
        with change(model := Own(), {"*": Knock(1)}):
            model(*given())
    with look(model := Own().eval()) as sight:
        model(*given())
    with pytest.raises(UserError, match="makes its weights itself: it has no queries and keys to put in"):
        Patch(sight[""], keys=True)
