"""Hugging Face folders as our models: transformers' logits, with a cache and in batches, and the same files back."""

from pathlib import Path

import pytest
import torch
from public_models import CONFIGS, compare_gradients, folder_of
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import foveate
from foveate.decoding import Decoding, generate
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_folder, write_folder
from foveate.models.text import CAUSAL

CLOSE = {"atol": 2e-5, "rtol": 0}


@pytest.fixture(scope="module", params=list(CONFIGS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module, nn.Module]:
    """A folder, its model in transformers, and ours."""
    folder, theirs = folder_of(request.param, tmp_path_factory.mktemp(request.param))
    return folder, theirs, read_folder(folder).model


def test_every_kind_of_causal_language_model_is_here() -> None:
    families = {kind: layout_at(module).family for kind, module in MODEL_TYPES.items()}
    assert {config.model_type for config in CONFIGS.values()} == {
        kind for kind, family in families.items() if family in CAUSAL
    }
    assert {*families.values()} >= {*CAUSAL}


def test_logits(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    _, theirs, ours = pair
    tokens = torch.randint(53, (3, 31))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens).logits, theirs(tokens).logits, **CLOSE)


def test_weights(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    """Those that a look computes again are transformers' own, soft caps and windows included."""
    _, theirs, ours = pair
    tokens, kernel = torch.randint(53, (2, 17)), theirs.config._attn_implementation
    theirs.set_attn_implementation("eager")
    with torch.no_grad(), foveate.look(ours) as sight:
        ours(tokens)
        attentions = theirs(tokens, output_attentions=True).attentions
    theirs.set_attn_implementation(kernel)
    assert len(sight.sites) == len(attentions)
    for name, expected in zip(sight.sites, attentions, strict=True):
        torch.testing.assert_close(sight[name].weights(), expected, **CLOSE)


@pytest.mark.parametrize("side", ["right", "left"])
def test_loss_and_gradients(pair: tuple[Path, nn.Module, nn.Module], side: str) -> None:
    """Of the next tokens of three padded texts; theirs one by one, for some families place padded rows otherwise."""
    folder, theirs, ours = pair
    tokens, lengths = torch.randint(53, (3, 11)), torch.tensor([11, 7, 4])
    starts = 11 - lengths if side == "left" else torch.zeros_like(lengths)
    ours.zero_grad()
    theirs.zero_grad()
    logits, losses = ours(tokens, lengths, side).logits, []
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        text = tokens[row : row + 1, start : start + length]
        found = functional.cross_entropy(logits[row, start : start + length - 1], text[0, 1:])
        losses.append((found, theirs(text, labels=text).loss))
    for found, expected in losses:
        torch.testing.assert_close(found, expected, **CLOSE)
    for loss in map(sum, zip(*losses, strict=True)):
        loss.backward()
    compare_gradients(folder, ours, theirs)


def test_a_cache_and_padding_change_nothing(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    """Prompts of different lengths in one batch, padded on the left, then a token at a time."""
    _, theirs, ours = pair
    tokens, lengths = torch.randint(53, (3, 13)), torch.tensor([7, 2, 5])
    padded = torch.zeros(3, 7, dtype=torch.long)
    for row, length in enumerate(lengths.tolist()):
        padded[row, 7 - length :] = tokens[row, :length]
    with torch.no_grad():
        whole = theirs(tokens).logits
        logits, state = ours.prefill(padded, lengths, padding_side="left")
        for step in range(6):
            places = lengths - 1 + step
            torch.testing.assert_close(logits, whole[torch.arange(3), places], **CLOSE)
            logits = ours.step(tokens[torch.arange(3), places + 1], state)


def test_batched_outputs_are_single_ones_of_transformers(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    _, theirs, ours = pair
    prompts = [torch.randint(51, (length,)).tolist() for length in (7, 2, 5)]
    settings = {"max_new_tokens": 11, "do_sample": False, "pad_token_id": 0, "eos_token_id": 52}
    for penalty in (1.0, 1.3):
        written = generate(ours, prompts, Decoding("greedy", max_new_tokens=11, repetition_penalty=penalty), {52})
        for prompt, output in zip(prompts, written, strict=True):
            given = torch.tensor([prompt])
            one = theirs.generate(given, attention_mask=torch.ones_like(given), repetition_penalty=penalty, **settings)
            expected = one[0, len(prompt) :].tolist()
            assert output.tokens == (expected[: expected.index(52)] if 52 in expected else expected)


def test_written_back_with_the_same_bits(pair: tuple[Path, nn.Module, nn.Module], tmp_path: Path) -> None:
    folder, theirs, ours = pair
    found = read_folder(folder)
    write_folder(tmp_path, found.family, ours, {"bos_token_id": 51, "eos_token_id": 52})
    before, after = (load_file(each / "model.safetensors") for each in (folder, tmp_path))
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(value, after[name]), name
    again = type(theirs).from_pretrained(tmp_path).eval()
    tokens = torch.randint(53, (2, 17))
    with torch.no_grad():
        assert torch.equal(again(tokens).logits, theirs(tokens).logits)
    assert read_folder(tmp_path).model.config == ours.config


def test_shards_half_precision_and_files_of_the_body_alone(tmp_path: Path) -> None:
    folder, theirs = folder_of("gpt2", tmp_path / "shards", max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    tokens = torch.randint(53, (2, 11))
    with torch.no_grad():
        expected = theirs(tokens).logits
        torch.testing.assert_close(read_folder(folder).model(tokens).logits, expected, **CLOSE)
        theirs.transformer.save_pretrained(tmp_path / "body")
        torch.testing.assert_close(read_folder(tmp_path / "body").model(tokens).logits, expected, **CLOSE)
        theirs.bfloat16().save_pretrained(tmp_path / "half")
        model = read_folder(tmp_path / "half").model
        torch.testing.assert_close(model(tokens).logits, theirs.float()(tokens).logits, **CLOSE)
