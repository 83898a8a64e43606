"""Looking at a model: which sites there are, and that what is seen is what happened."""

import gc
import math
import weakref

import pytest
import torch
from torch import Tensor, nn

from foveate import create, look
from foveate.attention import ScaledDot, attend, causal
from foveate.errors import UserError
from foveate.nn import MultiHeadAttention
from foveate.sight import Sight
from foveate.sight.key_store import copy_tensor

SMALL = {"src_vocab": 17, "tgt_vocab": 13, "width": 12, "dropout": 0.0}
SIZES = {**SMALL, "heads": 3, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 2}

SOURCE = {
    "source": torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 0, 0, 0]]),
    "source_lengths": torch.tensor([7, 4]),
}
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 9, 5]])

ATTENTIVE = {
    "transformer-tiny": SIZES,
    "rnn-bahdanau": SMALL,
    "rnn-luong": SMALL,
    "rnn-attentive": SMALL,
}


def model_of(name: str) -> nn.Module:
    """A model in evaluation mode, with weights that make it look decidedly."""
    model = create(name, **ATTENTIVE[name]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


def seen(model: nn.Module) -> Sight:
    with look(model) as sight, torch.no_grad():
        model(**SOURCE, target=TARGET)
    return sight


def test_sites_of_a_transformer() -> None:
    """Paths of modules, in the order of their calls."""
    sight = seen(model_of("transformer-tiny"))
    decoder = [f"decoder.{layer}.{part}" for layer in (0, 1) for part in ("self", "cross")]
    assert sight.sites == ["encoder.0.self", "encoder.1.self", *decoder]
    assert repr(sight["decoder.1.cross"]) == "Site('decoder.1.cross', 2 x 3 x 5 x 7)"


@pytest.mark.parametrize("name", ATTENTIVE)
def test_a_compiled_model_runs_uncompiled(name: str) -> None:
    """The same sites and weights; for other models see `doors/test_functions.py`."""
    model = model_of(name)
    sight, of_compiled = seen(model), seen(torch.compile(model, backend="eager"))
    assert of_compiled.sites == sight.sites != []
    for site in sight.sites:
        assert torch.equal(of_compiled[site].weights(), sight[site].weights())


def test_sites_of_recurrent_translators() -> None:
    assert seen(model_of("rnn-luong")).sites == ["decoder"]
    assert seen(create("rnn", **SMALL).eval()).sites == []


def test_an_unknown_site() -> None:
    with pytest.raises(UserError, match=r"unknown site 'decoder.0.corss'; did you mean decoder.0.cross or"):
        seen(model_of("transformer-tiny"))["decoder.0.corss"]


@pytest.mark.parametrize("name", ATTENTIVE)
def test_shapes_and_sums(name: str) -> None:
    """(B, H, T, S) at every site; each row is shared among the real keys, none goes to padding or to the future."""
    sight = seen(model_of(name))
    for site in sight.sites:
        found = sight[site].weights()
        queries = 5 if site.startswith("decoder") else 7
        keys = 5 if site.startswith("decoder") and site.endswith("self") else 7
        assert found.shape == (2, 3 if name == "transformer-tiny" else 1, queries, keys)
        torch.testing.assert_close(found.sum(-1), torch.ones(found.shape[:-1]))
        if keys == 7:
            assert not found[1, :, :, 4:].any()
        else:
            assert not found.triu(1).any()


def test_weights_are_the_softmax_that_made_the_output() -> None:
    """From what went into a layer, by hand; and the layer's output is their mean of the values."""
    model, inputs = model_of("transformer-tiny"), {}
    layer = model.decoder[1].cross
    layer.register_forward_pre_hook(
        lambda _, arguments, options: inputs.update(x=arguments[0], source=[*arguments[1:], options.get("source")][0]),
        with_kwargs=True,
    )
    outputs = []
    layer.register_forward_hook(lambda _, __, output: outputs.append(output))
    found = seen(model)["decoder.1.cross"].weights()

    def heads(x: Tensor) -> Tensor:
        return x.unflatten(-1, (3, 4)).transpose(1, 2)

    with torch.no_grad():
        scores = heads(layer.query(inputs["x"])) @ heads(layer.key(inputs["source"])).mT / math.sqrt(4)
        scores[1, :, :, 4:] = -torch.inf
        torch.testing.assert_close(found, scores.softmax(-1))
        values = heads(layer.value(inputs["source"]))
        torch.testing.assert_close(layer.output((found @ values).transpose(1, 2).flatten(2)), outputs[0])


@pytest.mark.parametrize("name", ATTENTIVE)
def test_steps_are_rows_of_the_teacher_forced_map(name: str) -> None:
    """Keys that a step did not have yet were not looked at: the causal zeros."""
    model = model_of(name)
    expected = seen(model)
    with look(model) as sight, torch.no_grad():
        state = model.start(**SOURCE)
        for tokens in TARGET.unbind(1):
            model.step(tokens, state)
    assert sight.sites == expected.sites
    for site in sight.sites:
        torch.testing.assert_close(sight[site].weights(), expected[site].weights(), atol=1e-5, rtol=0)
        assert len(sight[site].calls) == (5 if site.startswith("decoder") else 1)


def test_some_heads_and_some_queries() -> None:
    site = seen(model_of("transformer-tiny"))["decoder.0.cross"]
    everything = site.weights()
    assert torch.equal(site.weights(heads=[2, 0]), everything[:, [2, 0]])
    assert torch.equal(site.weights(queries=slice(1, 3)), everything[:, :, 1:3])
    assert torch.equal(site.weights([1], [4, 2]), everything[:, [1]][:, :, [4, 2]])


@pytest.mark.parametrize("name", [*ATTENTIVE, "rnn"])
@pytest.mark.parametrize("train", [False, True])
def test_looking_changes_neither_outputs_nor_gradients(name: str, train: bool) -> None:
    model = create(name, **{**ATTENTIVE.get(name, SMALL), "dropout": 0.3}).train(train)

    def run() -> list[Tensor]:
        torch.manual_seed(3)
        logits = model(**SOURCE, target=TARGET).logits
        return [logits, *torch.autograd.grad(logits.logsumexp(-1).sum(), list(model.parameters()))]

    expected = run()
    with look(model):
        found = run()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_what_the_model_does_with_its_tensors_later_changes_nothing() -> None:
    layer, x = MultiHeadAttention(12, 3).requires_grad_(False), torch.randn(2, 5, 12)
    memory = layer.memory(x)
    with look(layer) as sight:
        layer(x, memory)
    expected = sight[""].weights()
    memory.keys.zero_()
    x.zero_()
    assert torch.equal(sight[""].weights(), expected)


def test_only_queries_and_keys_are_kept() -> None:
    """Neither gradients nor the values that were projected together with them."""
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    with look(layer) as sight:
        layer(x)
    (recorded,) = sight[""].calls
    for kept in (recorded.call.queries, sight[""].keys.read(recorded.span)):
        assert kept.untyped_storage().nbytes() == 4 * 2 * 5 * 12
        assert not kept.requires_grad
    assert not recorded.call.values.numel()


@pytest.mark.parametrize("model", [MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)])
def test_what_was_seen_goes_with_its_sight(model: nn.Module) -> None:
    """At once: many looks in a row must not fill the memory until Python seeks what holds itself."""
    x = torch.randn(2, 5, 12)
    gc.collect()
    gc.disable()
    try:
        with look(model) as sight:
            model(*[x] * (1 if isinstance(model, MultiHeadAttention) else 3))
        sight[""].measure("received", "entropy", "top"), sight[""].weights(), sight[""].output_error()
        kept = [weakref.ref(part) for part in (sight, sight[""], sight[""].keys)]
        del sight
        assert [reference() for reference in kept] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_mask_that_is_written_to_later(mode: type) -> None:
    """What is still the model's own is not handed out as if it were what it was."""
    with mode():
        model, x = Attends(), torch.randn(2, 5, 3)
        bias, allowed = torch.randn(5, 5), torch.ones(5, 5, dtype=torch.bool)
        with look(model) as sight:
            model(x, bias, allowed)
        sight[""].weights()
        bias.mul_(2)
    with pytest.raises(UserError, match=r"bias or parameter of shape \(5, 5\) was modified in place"):
        sight[""].weights()


def test_weights_are_those_before_dropout() -> None:
    layer, x = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(2, 5, 12)
    with look(layer) as sight:
        layer(x)
    torch.testing.assert_close(sight[""].weights().sum(-1), torch.ones(2, 3, 5))


@pytest.mark.parametrize("train", [False, True])
def test_hard_attention_shows_the_chances_of_its_choices(train: bool) -> None:
    model = create("rnn-luong", select="hard", mean_share=0.0, **SMALL).train(train)
    with look(model) as sight, torch.no_grad():
        log_prob = model(**SOURCE, target=TARGET).choices.log_prob
    found = sight["decoder"].weights()[:, 0]
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 5))
    if not train:
        torch.testing.assert_close(found.amax(-1).log(), log_prob)
    else:
        nearest = (found.log() - log_prob[..., None]).abs().amin(-1)
        torch.testing.assert_close(nearest, torch.zeros(2, 5), atol=1e-5, rtol=0)


class Attends(nn.Module):
    """Attends by itself, with a mask and a bias, and with queries that may look nowhere."""

    def forward(self, x: Tensor, bias: Tensor, allowed: Tensor) -> Tensor:
        return attend(x, x, x, score=ScaledDot(2.0), mask=causal() & allowed, bias=bias)


def test_score_mask_and_bias_are_those_of_the_call() -> None:
    model, x, bias = Attends(), torch.randn(2, 5, 3), torch.randn(5, 5)
    allowed = torch.rand(5, 5) > 0.4
    allowed[0] = False
    with look(model) as sight:
        output = model(x, bias, allowed)
    found = sight[""].weights()
    scores = (x @ x.mT * 2 + bias).masked_fill(~(allowed & torch.ones(5, 5).tril().bool()), -torch.inf)
    torch.testing.assert_close(found[:, 0], scores.softmax(-1).nan_to_num())
    assert not found[:, :, 0].any()
    torch.testing.assert_close(found[:, 0] @ x, output)


def test_only_the_calls_of_the_model() -> None:
    """Another model's are not seen, nor those of a part that is not looked at."""
    model, other = model_of("transformer-tiny"), model_of("rnn-luong")
    with look(model.encoder) as sight, torch.no_grad():
        other(**SOURCE, target=TARGET)
        model(**SOURCE, target=TARGET)
        attend(torch.randn(2, 3), torch.randn(5, 3), torch.randn(5, 3))
    assert sight.sites == ["0.self", "1.self"]


def test_calls_for_different_batches_are_different_maps() -> None:
    """As in a beam search from which finished sentences leave."""
    model = model_of("rnn-luong")
    with look(model) as sight, torch.no_grad():
        state = model.start(**SOURCE)
        model.step(TARGET[:, 0], state)
        state.reorder(torch.tensor([0, 0, 1]))
        model.step(TARGET[[0, 0, 1], 1], state)
        model.step(TARGET[[0, 0, 1], 2], state)
    assert {site: sight[site].shape for site in sight.sites} == {"decoder": (2, 1, 1, 7), "decoder#2": (3, 1, 2, 7)}


def test_a_second_run_makes_a_second_map() -> None:
    """Also of a recurrent decoder whose first step looks at the same source again."""
    for name, encoders in (("rnn-luong", 0), ("transformer-tiny", 2)):
        model = model_of(name)
        with look(model) as sight, torch.no_grad():
            for _ in range(2):
                model(**SOURCE, target=TARGET)
        first, second = sight.sites[: len(sight.sites) // 2], sight.sites[len(sight.sites) // 2 :]
        assert second == [f"{site}#2" for site in first]
        assert len(first) == encoders + (1 if name == "rnn-luong" else 4)
        for one, other in zip(first, second, strict=True):
            assert torch.equal(sight[one].weights(), sight[other].weights())


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_a_second_text_that_is_written_makes_a_second_map() -> None:
    """Though its steps run no layer but those that attend, one after the other."""
    model = create("gpt-tiny", vocabulary=50, width=32, heads=4, layers=2, feedforward=64).eval()
    with torch.inference_mode(), look(model) as sight:
        for steps in (5, 3):
            _, state = model.prefill(torch.randint(1, 50, (1, 7)), torch.tensor([7]))
            for token in range(steps):
                model.step(torch.tensor([token]), state)
    first, second = [f"stack.blocks.{number}.self" for number in range(2)]
    assert {site.name: site.weights().shape[-2:] for site in sight} == {
        first: (12, 12),
        second: (12, 12),
        f"{first}#2": (10, 10),
        f"{second}#2": (10, 10),
    }


def test_one_look_at_a_time() -> None:
    model = model_of("transformer-tiny")
    with look(model) as sight:
        within = hooks(model)
        with pytest.raises(UserError, match="another look is open, here or"), look(model):
            pass
        assert hooks(model) == within
        model(**SOURCE, target=TARGET)
    assert len(sight.sites) == 6
    assert hooks(model) == 0


def test_nothing_is_left_behind_after_an_error() -> None:
    """Neither of the look, nor in it: an error within a layer does not change the paths of what follows."""
    model = model_of("transformer-tiny")
    sights = []

    def fail_twice() -> None:
        with look(model) as sight:
            sights.append(sight)
            with pytest.raises(IndexError):
                model(**{**SOURCE, "target": TARGET + 99})
            attend(torch.randn(2, 3), torch.randn(5, 3), torch.randn(5, 3))
            model(**SOURCE, target=TARGET)
            raise KeyError

    with pytest.raises(KeyError):
        fail_twice()
    (sight,) = sights
    encoder, decoder = seen(model).sites[:2], seen(model).sites[2:]
    assert sight.sites == [*encoder, *(f"{site}#2" for site in encoder), *decoder]
    assert hooks(model) == 0
    model(**SOURCE, target=TARGET)
    assert {len(sight[site].calls) for site in sight.sites} == {1}


def test_only_what_may_attend_has_hooks_and_none_stays() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.MultiheadAttention(4, 2), nn.Sequential(nn.ReLU(), nn.Dropout()))
    model[0].forward = model[0].forward  # what somebody gave a module may do anything
    with look(model, sites="1"):
        model[1](*[torch.zeros(3, 4)] * 3)
        watched = [path for path, module in model.named_modules() if module._forward_hooks]
    assert watched == ["", "0", "1", "2"]
    assert hooks(model) == 0
    assert not any(module._forward_hooks_always_called for module in model.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_copy_stays_as_it_was_and_says_the_same(dtype: torch.dtype) -> None:
    large = torch.randn(2, 3, 16384, 16).to(dtype).transpose(-1, -2)
    copied, before = copy_tensor(large), large.clone()
    assert copied.is_contiguous()
    assert copied.untyped_storage().nbytes() == copied.nbytes
    large.zero_()
    assert torch.equal(copied, before)
    repeated = copy_tensor(before[:1].expand(5, -1, -1, -1))
    assert repeated.shape[0] == 1
    assert torch.equal(repeated, before[:1])
