"""`attn_implementation="foveate"`: outputs, weights and gradients are those of eager attention."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foveate import look
from foveate.errors import UserError
from foveate.sight import register

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[0, 0, 5, 9, 2, 7, 1], [3, 3, 8, 6, 2, 1, 4]])
MASK = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])


def small(kind: str) -> Any:
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 11}
    torch.manual_seed(4)
    if kind == "gpt2":
        config = transformers.GPT2Config(n_embd=16, n_layer=3, n_head=4, vocab_size=11)
    elif kind == "bert":
        config = transformers.BertConfig(**sizes, intermediate_size=12)
    elif kind == "gemma2":  # soft caps, windows
        more: dict[str, Any] = {"intermediate_size": 12, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3}
        config = transformers.Gemma2Config(**sizes, **more)
    elif kind == "gpt-oss":  # sinks
        more = {"intermediate_size": 12, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4}
        config = transformers.GptOssConfig(**sizes, **more)
    else:
        config = transformers.LlamaConfig(**sizes, intermediate_size=12, num_key_value_heads=2)
    return transformers.AutoModel.from_config(config, attn_implementation="eager").eval()


def rows(weights: Tensor) -> Tensor:
    """The weights of the rows that are not padding."""
    return weights * MASK[:, None, :, None]


@pytest.mark.parametrize("kind", ["gpt2", "bert", "llama", "gemma2", "gpt-oss"])
@pytest.mark.parametrize("padded", [False, True])
def test_outputs_weights_and_gradients(kind: str, padded: bool) -> None:
    register()
    model = small(kind)
    inputs = {"input_ids": IDS} | ({"attention_mask": MASK} if padded else {})
    keep = MASK[..., None] if padded else torch.ones_like(MASK)[..., None]
    expected = model(**inputs, output_attentions=True)
    weight = next(part for name, part in model.named_parameters() if "mlp" in name or "dense" in name)
    slope = None
    if kind != "gpt-oss":
        (slope,) = torch.autograd.grad((expected.last_hidden_state * keep).square().sum(), weight)
    model.set_attn_implementation("foveate")
    with torch.set_grad_enabled(kind != "gpt-oss"):
        found = model(**inputs, output_attentions=True)
    torch.testing.assert_close(found.last_hidden_state * keep, expected.last_hidden_state * keep, rtol=1e-4, atol=1e-5)
    for one, other in zip(found.attentions, expected.attentions, strict=True):
        one, other = (rows(each) if padded else each for each in (one, other))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    if slope is not None:
        (own,) = torch.autograd.grad((found.last_hidden_state * keep).square().sum(), weight)
        torch.testing.assert_close(own, slope, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        assert not model(**inputs).attentions


def test_weights_of_some_layers_and_a_look() -> None:
    register(layers=[1])
    model = small("llama")
    with torch.no_grad():
        expected = model(IDS, output_attentions=True).attentions
        model.set_attn_implementation("foveate")
        with look(model) as sight:
            found = model(IDS, output_attentions=True).attentions
    (only,) = found
    torch.testing.assert_close(only, expected[1], rtol=1e-4, atol=1e-6)
    for site, weights in zip(sight, expected, strict=True):
        torch.testing.assert_close(site.weights(), weights, rtol=1e-4, atol=1e-6)


def test_generation_is_that_of_sdpa() -> None:
    register()
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=11)).eval()
    options: dict[str, Any] = {"do_sample": False, "max_new_tokens": 6, "pad_token_id": 0, "eos_token_id": None}
    expected = model.generate(IDS, attention_mask=MASK, **options)
    model.set_attn_implementation("foveate")
    assert torch.equal(model.generate(IDS, attention_mask=MASK, **options), expected)


def test_a_learned_sink_is_not_trained() -> None:
    register()
    model = small("gpt-oss")
    model.set_attn_implementation("foveate")
    with pytest.raises(UserError, match="attn_implementation='eager'"):
        model(IDS)
