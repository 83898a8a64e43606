"""Models of the transformers library, whose own eager weights are the reference."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from foveate import look
from foveate.sight import Sight

transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
]

B, T, S = 2, 7, 11

SMALL = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 20}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GROUPED = {**SMALL, **SPECIAL, "num_key_value_heads": 2, "head_dim": 4}
BART = {
    **SPECIAL,
    "vocab_size": 53,
    "d_model": 24,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": 2,
    **{f"{side}_layers": 2 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 3 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": 17 for side in ("encoder", "decoder")},
}
T5 = {
    "vocab_size": 53,
    "d_model": 24,
    "d_kv": 4,
    "d_ff": 17,
    "num_layers": 2,
    "num_heads": 3,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}

MODELS: dict[str, dict[str, Any]] = {
    "GPT2": {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 53, "n_positions": 64, **SPECIAL},
    "Llama": GROUPED,
    "Gemma2": {**GROUPED, "sliding_window": 4, "attn_logit_softcapping": 2.0},
    "GptOss": {**GROUPED, "sliding_window": 4, "num_local_experts": 3, "num_experts_per_tok": 2},
    "Mistral": {**GROUPED, "sliding_window": 4},
    "Bert": {**SMALL, "pad_token_id": 0},
    "T5": T5,
    "Bart": BART,
}


def model_of(name: str, implementation: str | None = None) -> nn.Module:
    """A small model that looks decidedly, in evaluation mode."""
    config = getattr(transformers, f"{name}Config")(**MODELS[name])
    chosen = {} if implementation is None else {"attn_implementation": implementation}
    torch.manual_seed(0)
    return decided(getattr(transformers, f"{name}Model")._from_config(config, **chosen))


def decided(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) / 5)
    return model.eval()


def text(name: str) -> dict[str, Tensor]:
    """Two texts, of which the second is shorter."""
    generator = torch.Generator().manual_seed(3)
    found = {"input_ids": torch.randint(3, 53, (B, S), generator=generator), "attention_mask": torch.ones(B, S).long()}
    found["attention_mask"][1, 8:] = 0
    if name in ("T5", "Bart"):
        found["decoder_input_ids"] = torch.randint(3, 53, (B, T), generator=generator)
    return found


def own_weights(model: nn.Module, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The weights that the model itself returns, in the order in which it computes them."""
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    if "encoder_attentions" not in output:
        return list(output.attentions)
    pairs = zip(output.decoder_attentions, output.cross_attentions, strict=True)
    return [*output.encoder_attentions, *(each for pair in pairs for each in pair)]


def seen(model: nn.Module, inputs: dict[str, Tensor], run: Callable | None = None) -> Sight:
    """What is seen, after a check that the output is what it is without looking."""
    run = run or model
    with torch.no_grad():
        expected = run(**inputs)[0]
        with look(model) as sight:
            assert torch.equal(run(**inputs)[0], expected)
    return sight


def assert_alike(sight: Sight, weights: list[Tensor], atol: float = 2e-6) -> None:
    assert len(sight.sites) == len(weights)
    for name, own in zip(sight.sites, weights, strict=True):
        torch.testing.assert_close(sight[name].weights(), own.float(), atol=atol, rtol=0)
        assert own.std(-1).max() > 0.1  # weights that are all alike would prove nothing
        assert sight[name].output_error() < 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_weights(name: str) -> None:
    """By the default implementation and by the eager one."""
    inputs, eager = text(name), model_of(name, "eager")
    weights = own_weights(eager, inputs)
    assert_alike(seen(eager, inputs), weights)
    model = model_of(name)
    assert_alike(seen(model, inputs), weights, atol=1e-5)
    default = "eager" if name in ("Gemma2", "GptOss") else "sdpa"
    assert model.config._attn_implementation == default


def test_what_the_tests_are_about() -> None:
    """Causality, padding, windows and sinks are at work in these weights."""
    sights = {name: seen(model_of(name), text(name)) for name in ("GPT2", "Mistral", "Bert", "GptOss")}
    first = {name: sight[sight.sites[0]].weights() for name, sight in sights.items()}
    assert not first["GPT2"].triu(1).any()
    assert not first["Mistral"].tril(-4).any()
    assert not first["Bert"][1, ..., 8:].any()
    assert first["Bert"][0, ..., 8:].any()
    assert first["GptOss"].sum(-1).min() < 0.9
    assert sights["Mistral"].sites == ["layers.0.self_attn", "layers.1.self_attn"]


@pytest.mark.parametrize("name", ["Llama", "Bert"])
def test_bfloat16(name: str) -> None:
    eager, model = model_of(name, "eager").bfloat16(), model_of(name).bfloat16()
    sight, weights = seen(eager, text(name)), own_weights(eager, text(name))
    for site, own in zip(sight.sites, weights, strict=True):
        torch.testing.assert_close(sight[site].weights(), own.float(), atol=2e-2, rtol=0)
    assert seen(model, text(name)).sites == sight.sites


def test_autocast() -> None:
    model = model_of("Llama", "eager")
    with torch.autocast("cpu", torch.bfloat16):
        sight, weights = seen(model, text("Llama")), own_weights(model, text("Llama"))
    for site, own in zip(sight.sites, weights, strict=True):
        torch.testing.assert_close(sight[site].weights(), own.float(), atol=2e-2, rtol=0)


@pytest.mark.parametrize("name", ["GPT2", "Llama", "T5"])
def test_gradients_are_those_without_looking(name: str) -> None:
    model, inputs = model_of(name).train(), text(name)

    def run() -> list[Tensor]:
        torch.manual_seed(3)
        output = model(**inputs)[0]
        return [output, *torch.autograd.grad(output.square().sum(), list(model.parameters()), allow_unused=True)]

    expected = run()
    with look(model) as sight:
        found = run()
    pairs = zip(found, expected, strict=True)
    assert all((one is None and other is None) or torch.equal(one, other) for one, other in pairs)
    assert sight.sites


def test_gradient_checkpointing_notes_each_call_once() -> None:
    model = model_of("Llama").train()
    expected = seen(model, text("Llama"))
    model.gradient_checkpointing_enable()
    with look(model) as sight:
        model(**text("Llama"))[0].sum().backward()
    assert sight.sites == expected.sites
    for site in sight.sites:
        torch.testing.assert_close(sight[site].weights(), expected[site].weights())


def test_flex_attention() -> None:
    """Its functions say what the eager mask says."""
    model, inputs = model_of("Mistral", "flex_attention"), text("Mistral")
    with torch.no_grad(), look(model) as sight:  # alone, because it would be compiled without a look
        model(**inputs)
    eager = own_weights(model_of("Mistral", "eager"), inputs)
    for site, own in zip(sight.sites, eager, strict=True):
        torch.testing.assert_close(sight[site].weights()[0], own[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(sight[site].weights()[1, :, :8, :8], own[1, :, :8, :8], atol=1e-5, rtol=0)


def flash(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> Any:
    """A stand-in for the implementations that are made of flash-attn, one text after the other."""
    output = torch.zeros(*query.shape[:-1], value.shape[-1])
    groups, steps, keys = query.shape[1] // key.shape[1], query.shape[2], key.shape[2]
    key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
    texts = [(example, torch.arange(keys)) for example in range(len(query))]
    if attention_mask is not None:
        texts = [(example, row.nonzero()[:, 0]) for example, row in enumerate(attention_mask)]
    elif (given["position_ids"].diff() < 0).any():
        texts = [
            (0, part) for part in torch.arange(keys).tensor_split((given["position_ids"][0] == 0).nonzero()[1:, 0])
        ]
    for example, places in texts:
        rows = places - (keys - steps)
        rows = rows[rows >= 0]
        scores = query[example][:, rows] @ key[example][:, places].mT * given["scaling"]
        behind = (rows + keys - steps)[:, None] - places
        hidden = (behind < 0) | (behind >= (given.get("sliding_window") or keys))
        output[example, :, rows] = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value[example][:, places]
    return output.transpose(1, 2), None


def flash_model(name: str) -> nn.Module:
    """A model that attends by the stand-in, which the library would look for on the web if asked at once."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, flash_attention_mask

    transformers.AttentionInterface.register("plain_flash", flash)
    ALL_MASK_ATTENTION_FUNCTIONS.register("plain_flash", flash_attention_mask)
    model = model_of(name)
    model.config._attn_implementation_internal = "plain_flash"
    return model


@pytest.mark.parametrize("name", ["Llama", "Mistral"])
def test_flash_implementations(name: str) -> None:
    """Which are given the padding itself, and whose output there is 0."""
    inputs, model = text(name), flash_model(name)
    eager = own_weights(model_of(name, "eager"), inputs)
    sight = seen(model, inputs)
    for site, own in zip(sight.sites, eager, strict=True):
        found = sight[site].weights()
        torch.testing.assert_close(found[0], own[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(found[1, :, :8], own[1, :, :8], atol=1e-5, rtol=0)
        assert not found[1, :, 8:].any()


def test_packed_texts_of_flash_implementations() -> None:
    """Texts behind one another in one row, told by positions that begin anew."""
    model, tokens = flash_model("Llama"), text("Llama")["input_ids"][:1]
    sight = seen(model, {"input_ids": tokens, "position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6]])})
    found = sight[sight.sites[0]].weights()
    assert not found[..., 4:, :4].any()
    alone = own_weights(model_of("Llama", "eager"), {"input_ids": tokens[:, 4:]})[0]
    torch.testing.assert_close(found[..., 4:, 4:], alone, atol=1e-5, rtol=0)


def test_vision_and_windows() -> None:
    vit = transformers.ViTConfig(**{**SMALL, "image_size": 20, "patch_size": 5})
    swin = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4, drop_path_rate=0.0
    )
    for config, kind, size in ((vit, transformers.ViTModel, 20), (swin, transformers.SwinModel, 32)):
        model, inputs = decided(kind(config)), {"pixel_values": torch.randn(B, 3, size, size)}
        sight = seen(model, inputs)
        eager = kind._from_config(config, attn_implementation="eager").eval()
        eager.load_state_dict(model.state_dict())
        weights = own_weights(eager, inputs)
        if kind is transformers.SwinModel:  # it returns the last weights of each stage
            assert sight["encoder.layers.0.blocks.1.attention"].shape == (B * 4, 2, 16, 16)
            sight_of_last = [name for name in sight.sites if "blocks.1." in name]
            for site, own in zip(sight_of_last, weights, strict=True):
                torch.testing.assert_close(sight[site].weights(), own, atol=1e-5, rtol=0)
        else:
            assert_alike(sight, weights, atol=1e-5)


def test_looked_up_by_name_or_by_function() -> None:
    """Some models read the registry as a dictionary, or call torch's function themselves."""

    class Layer(nn.Module):
        is_causal = True

        def forward(self, x: Tensor) -> Tensor:
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

            return ALL_ATTENTION_FUNCTIONS["sdpa"](self, x, x, x, None)[0]

    x = torch.randn(B, 3, T, 5)
    with look(model := Layer()) as sight:
        model(x)
    scores = (x @ x.mT / 5**0.5).masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
    torch.testing.assert_close(sight[""].weights(), scores.softmax(-1), atol=1e-6, rtol=0)


OWN: dict[str, dict[str, Any]] = {
    "Falcon": {**SMALL, "bos_token_id": 1, "eos_token_id": 2},
    "MPNet": {**SMALL, "max_position_embeddings": 40},
    "Bloom": {"vocab_size": 53, "hidden_size": 24, "n_layer": 2, "n_head": 6},
    "GPTJ": {"vocab_size": 53, "n_embd": 24, "n_layer": 2, "n_head": 3, "rotary_dim": 4, "n_positions": 64},
    "OpenAIGPT": {"vocab_size": 53, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64},
    "XLNet": {"vocab_size": 53, "d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 20},
    "DebertaV2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4},
}
"""Models that compute a softmax in code of their own, and their configs."""


@pytest.mark.parametrize("name", OWN)
def test_a_softmax_of_its_own(name: str) -> None:
    config = getattr(transformers, f"{name}Config")(**OWN[name])
    model = decided(getattr(transformers, f"{name}Model")._from_config(config, attn_implementation="eager"))
    inputs = {"input_ids": text("Bert")["input_ids"]}
    plain = model(**inputs).last_hidden_state
    expected = model(**inputs, output_attentions=True).attentions
    with look(model) as sight:
        assert torch.equal(model(**inputs).last_hidden_state, plain)
    assert len(sight.sites) == len(expected) == 2
    for site, weights in zip(sight, expected, strict=True):
        assert site.output_error() < 1e-5
        assert site.shape == weights.shape
        torch.testing.assert_close(site.weights(), weights.detach(), atol=1e-6, rtol=0)


def test_each_query_has_a_sink_of_its_own() -> None:
    """As in Inkling 2: one more score in the softmax of a row, which takes weight from its keys."""
    config = transformers.Inkling2TextConfig(
        **SMALL,
        num_key_value_heads=2,
        head_dim=4,
        swa_num_attention_heads=6,
        swa_num_key_value_heads=2,
        swa_head_dim=4,
        sliding_window_size=4,
        d_rel=5,
        rel_extent=6,
        moe_intermediate_size=7,
        n_routed_experts=3,
        num_experts_per_tok=2,
        layer_types=["hybrid_sliding", "hybrid_sliding"],
    )
    torch.manual_seed(0)
    model = decided(transformers.Inkling2TextModel._from_config(config, attn_implementation="eager"))
    with Softmaxes() as softmaxes:
        sight = seen(model, {"input_ids": text("Llama")["input_ids"]})
    sites = [site for site in sight if site.shape[2:] == (S, S)]
    own = [made[..., :-1] for made in softmaxes.made if made.shape[-2:] == (S, S + 1)]
    assert len(sites) == 2
    for site, expected in zip(sites, own[-2:], strict=True):
        torch.testing.assert_close(site.weights(), expected, atol=2e-6, rtol=0)
        assert site.weights().sum(-1).min() < 0.9
        assert site.output_error() < 1e-4


class Softmaxes(TorchFunctionMode):
    """Keeps what softmaxes return."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func is torch.nn.functional.softmax:
            self.made.append(found)
        return found
