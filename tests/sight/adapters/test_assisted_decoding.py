"""Decoding with an assistant: drafts are thrown away again; what was looked at is that of one pass over the text."""

import pytest
import torch

from foveate import look

transformers = pytest.importorskip("transformers")


def gpt2(layers: int) -> torch.nn.Module:
    sizes = {"n_layer": layers, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 64}
    config = transformers.GPT2Config(**sizes, initializer_range=0.3, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("kind", ["assistant_model", "prompt_lookup_num_tokens"])
def test_the_text_and_the_rows_are_those_of_one_pass(kind: str) -> None:
    """Each forward pass begins with what is accepted: its first query looks as it does in the finished text."""
    model, ids = gpt2(2), torch.randint(3, 50, (1, 5))
    options = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(ids, **options)
    with look(model) as whole, torch.no_grad():
        model(plain[:, :-1])
    with look(model) as sight:
        written = model.generate(ids, **options, **{kind: gpt2(1) if kind == "assistant_model" else 3})
    assert torch.equal(written, plain)
    drafted = 0
    for name in sight.sites:
        _, _, rows, keys = sight[name].shape
        first = keys - rows
        found = sight[name].weights(queries=[0])[..., : first + 1]
        expected = whole[name.split("#")[0]].weights(queries=[first])[..., : first + 1]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        drafted += keys > plain.shape[1] - 1 or "#" in name
    assert drafted, "no draft was thrown away: nothing is tested"
