"""GPT against transformers: the same logits and gradients from the same weights, both ways."""

import pytest
import torch
import transformers
from torch import nn

import foveate
from foveate.interop.keys import gpt

SIZES = {"vocabulary": 17, "width": 20, "heads": 5, "feedforward": 28, "layers": 3, "max_length": 13, "dropout": 0.0}


def reference(norm: str) -> nn.Module:
    if norm == "pre":
        config = transformers.GPT2Config(vocab_size=17, n_embd=20, n_head=5, n_inner=28, n_layer=3, n_positions=13)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.OpenAIGPTConfig(vocab_size=17, n_embd=20, n_head=5, n_layer=3, n_positions=13)
    return transformers.OpenAIGPTLMHeadModel(config)


@pytest.fixture(params=["pre", "post"])
def pair(request: pytest.FixtureRequest) -> tuple[nn.Module, nn.Module]:
    """A model of ours and one of theirs with the same weights, none of them at its initial value."""
    inner = 28 if request.param == "pre" else 80  # GPT-1 has no other inner width there
    ours = foveate.create("gpt2", **{**SIZES, "norm": request.param, "feedforward": inner}).double().eval()
    theirs = reference(request.param).double().eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.uniform_(-0.5, 0.5)
    missing, unexpected = theirs.load_state_dict(gpt.key_map(ours.config).to_public(ours.state_dict()), strict=False)
    assert not unexpected
    assert all(name.endswith("attn.bias") for name in missing)
    return ours, theirs


def test_logits_and_gradients(pair: tuple[nn.Module, nn.Module]) -> None:
    ours, theirs = pair
    tokens = torch.randint(17, (3, 11))
    found, expected = ours(tokens).logits, theirs(tokens).logits
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters(remove_duplicate=False)}
    others = {name: parameter.grad for name, parameter in theirs.named_parameters(remove_duplicate=False)}
    for name, value in gpt.key_map(ours.config).to_public(gradients).items():
        torch.testing.assert_close(value, others[name], atol=1e-9, rtol=0, msg=name)


def test_the_tensors_come_back_as_they_were(pair: tuple[nn.Module, nn.Module]) -> None:
    ours, theirs = pair
    back = gpt.key_map(ours.config).to_ours(theirs.state_dict())
    assert back.keys() == ours.state_dict().keys()
    for name, value in ours.state_dict().items():
        assert torch.equal(back[name], value), name


def test_the_same_tokens_are_written(pair: tuple[nn.Module, nn.Module]) -> None:
    """Prompts of different lengths in one batch, greedily; theirs one by one, for they pad otherwise."""
    ours, theirs = pair
    prompts, lengths = torch.randint(3, 17, (3, 5)), torch.tensor([5, 2, 3])
    with torch.no_grad():
        logits, state = ours.prefill(prompts, lengths)
        written = [logits.argmax(-1)]
        for _ in range(5):
            written.append(ours.step(written[-1], state).argmax(-1))
        for row, length in enumerate(lengths.tolist()):
            text = prompts[row : row + 1, :length]
            for _ in range(6):
                text = torch.cat([text, theirs(text).logits[:, -1:].argmax(-1)], 1)
            assert torch.stack(written, 1)[row].tolist() == text[0, length:].tolist()
