"""Generation by models of transformers: rows are the tokens, whatever the cache does."""

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from foveate import look
from foveate.sight import Sight

PROMPT, NEW = 7, 6
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": 53, "initializer_range": 0.3}
LLAMA = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2}
FAMILIES = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(n_layer=2, n_head=3, n_embd=24, n_positions=64, **TOKENS)),
    "llama": (LlamaForCausalLM, LlamaConfig(intermediate_size=16, **LLAMA, **TOKENS)),
    "mistral": (
        MistralForCausalLM,
        MistralConfig(intermediate_size=16, head_dim=4, sliding_window=5, **LLAMA, **TOKENS),
    ),
    "t5": (
        T5ForConditionalGeneration,
        T5Config(
            d_model=24,
            d_kv=4,
            d_ff=16,
            num_layers=2,
            num_heads=3,
            initializer_factor=3.0,
            decoder_start_token_id=0,
            **TOKENS,
        ),
    ),
}


def model_of(family: str) -> torch.nn.Module:
    torch.manual_seed(0)
    kind, config = FAMILIES[family]
    return kind(config).eval()


def prompts(padded: bool) -> dict[str, torch.Tensor]:
    """Two prompts, the second one shorter and padded on the left."""
    mask = torch.ones(2, PROMPT, dtype=torch.long)
    if padded:
        mask[1, :3] = 0
    ids = torch.randint(3, 53, (2, PROMPT), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": mask}


def generate(model: torch.nn.Module, beams: int = 1, cache: str = "dynamic", padded: bool = False, **options):
    return model.generate(
        **prompts(padded),
        min_new_tokens=NEW,
        max_new_tokens=NEW,
        do_sample=False,
        num_beams=beams,
        cache_implementation=cache,
        return_dict_in_generate=True,
        **options,
    )


def told(model: torch.nn.Module, cross: bool = False, **options) -> list[list[torch.Tensor]]:
    """What the eager implementation tells: for each layer the weights of each step."""
    model.set_attn_implementation("eager")
    found = generate(model, output_attentions=True, **options)
    model.set_attn_implementation("sdpa")
    steps = found.cross_attentions if cross else found.get("attentions", found.get("decoder_attentions"))
    return [list(layer) for layer in zip(*steps, strict=True)]


def check(sight: Sight, sites: list[str], expected: list[list[torch.Tensor]], at_end: bool = False) -> None:
    """Each step's rows are those that are told, and look at nothing besides.

    A cache that forgets tells of its last keys, which are then `at_end`; the rows of padding are nobody's.
    """
    assert len(sites) == len(expected) == 2
    for site, steps in zip(sites, expected, strict=True):
        found, row = sight[site].weights(), 0
        for step in steps:
            count, keys = step.shape[2:]
            start = max(0, row + count - keys) if at_end else 0
            padded = torch.nn.functional.pad(step, (start, max(0, found.shape[3] - start - keys)))
            assert not padded[..., found.shape[3] :].any()
            first = 3 if row == 0 and count > 3 else 0
            mine = found[:, :, row + first : row + count]
            torch.testing.assert_close(mine, padded[:, :, first:, : found.shape[3]], atol=3e-5, rtol=0)
            row += count
        assert row == found.shape[2]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_generation(family: str, cache: str, beams: int) -> None:
    """One map for each layer, however the cache keeps its keys and whatever beams do to its rows."""
    model = model_of(family)
    options = {"cache": cache, "beams": beams, "padded": family != "mistral"}
    expected, plain = told(model, **options), generate(model, **options)
    with look(model) as sight:
        looked = generate(model, **options)
    assert torch.equal(looked.sequences, plain.sequences)
    assert {sight[site].shape[:1] + sight[site].shape[2:] for site in sight.sites} == {
        (2 * beams, PROMPT + NEW - 1, PROMPT + NEW - 1)
    }
    check(sight, sight.sites, expected, at_end=family == "mistral")


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", ["gpt2", "mistral"])
def test_measures_of_what_forgets(family: str, cache: str, beams: int) -> None:
    """A window of 5 leaves no key farther away than 4; and nothing of it is otherwise where only measures are kept."""
    model, names = model_of(family), ["received", "top", "distance"]
    with look(model) as sight:
        generate(model, cache=cache, beams=beams)
    if family == "mistral":
        assert all(sight[name].distance().max() <= 4 for name in sight.sites)
    with look(model, keep=names) as kept:
        generate(model, cache=cache, beams=beams)
    assert kept.sites == sight.sites
    for name in sight.sites:
        if beams == 1:
            torch.testing.assert_close(kept[name].received(), sight[name].received(), atol=1e-5, rtol=0)
        torch.testing.assert_close(kept[name].distance(), sight[name].distance(), atol=1e-5, rtol=0)
        assert torch.equal(kept[name].top(3).keys, sight[name].top(3).keys)


@pytest.mark.parametrize("beams", [1, 3])
def test_generation_from_a_source(beams: int) -> None:
    """Self-attention grows from token to token, cross-attention looks at one source; the encoder has its own map."""
    model = model_of("t5").double()  # whose scores are so large that single precision leaves 5e-5 of the weights
    expected, crossed = told(model, beams=beams), told(model, cross=True, beams=beams)
    with look(model) as sight:
        generate(model, beams=beams)
    layers = [f"decoder.block.{layer}.layer" for layer in (0, 1)]
    assert sight.sites[2:] == [
        f"{layer}.{part}" for layer in layers for part in ("0.SelfAttention", "1.EncDecAttention")
    ]
    check(sight, [f"{layer}.0.SelfAttention" for layer in layers], expected)
    check(sight, [f"{layer}.1.EncDecAttention" for layer in layers], crossed)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_beams_of_a_text(family: str) -> None:
    """The rows of each final text, whose beam changed its place, are those of a pass over that text."""
    model = model_of(family)
    with look(model) as sight:
        found = generate(model, beams=4)
    beams = found.beam_indices
    assert not torch.equal(beams, beams[:, :1].expand_as(beams))
    inputs = prompts(padded=False)
    if family == "gpt2":
        start, again = PROMPT - 1, {"input_ids": found.sequences[:, :-1]}
    else:
        start, again = 0, {**inputs, "decoder_input_ids": found.sequences[:, :-1]}
    with look(model) as told, torch.no_grad():
        model(**again)
    for site in (site for site in told.sites if "encoder" not in site):
        torch.testing.assert_close(
            sight[site].beam_weights(beams), told[site].weights()[:, :, start:], atol=3e-5, rtol=0
        )


def test_memory_is_linear_in_the_tokens() -> None:
    """What is kept of a generation of n tokens, padding included: twice as much for twice as many."""

    def kept(count: int) -> int:
        model = model_of("llama")
        with look(model) as sight:
            model.generate(**prompts(padded=True), min_new_tokens=count, max_new_tokens=count, num_beams=2)
        tensors = {}
        for site in map(sight.__getitem__, sight.sites):
            keys = [site.keys._store, *(turn.keys for turn in site.keys._reorders)]
            masks = [
                mask.tensor for each in site.calls if (mask := each.call.mask) is not None and hasattr(mask, "tensor")
            ]
            for tensor in (*keys, *masks, *(each.call.queries for each in site.calls)):
                tensors[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return sum(tensors.values())

    assert kept(120) < 2.5 * kept(60)


def test_each_generation_has_maps_of_its_own() -> None:
    model = model_of("t5")
    with look(model) as sight:
        for _ in range(2):
            generate(model)
    half = len(sight.sites) // 2
    assert sight.sites[half:] == [f"{site}#2" for site in sight.sites[:half]]
    assert [sight[site].shape for site in sight.sites[half:]] == [sight[site].shape for site in sight.sites[:half]]


def test_a_layer_that_is_used_again_and_again() -> None:
    """Each use has a map: equal layers are not steps of one another."""

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.TransformerEncoderLayer(12, 3, 7, dropout=0.0, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(self.layer(x))

    model = Twice()
    with look(model) as sight:
        model(torch.randn(2, 5, 12))
    assert sight.sites == ["layer.self_attn", "layer.self_attn#2"]
