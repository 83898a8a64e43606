"""Whisper against transformers: the same sounds, logits, gradients and texts from the same weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from foveate import create
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.forms.word_times import median_filter, warp
from foveate.interop.keys import whisper
from foveate.interop.public_folder import read_folder, write_folder

CLOSE = {"atol": 2e-5, "rtol": 0}

SIZES = {
    "d_model": 12,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 11,
    "encoder_layers": 2,
    "decoder_layers": 3,
}

CONFIG = transformers.WhisperConfig(
    **SIZES,
    num_mel_bins=7,
    vocab_size=53,
    max_source_positions=13,
    max_target_positions=19,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module, nn.Module]:
    """A folder, its model in transformers, and ours."""
    torch.manual_seed(3)
    theirs = transformers.WhisperForConditionalGeneration(CONFIG).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.uniform_(-0.4, 0.4)
    folder = tmp_path_factory.mktemp("whisper")
    theirs.save_pretrained(folder)
    return folder, theirs, read_folder(folder).model


def test_logits_and_gradients(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    _, theirs, ours = pair
    sound, tokens = torch.randn(3, 26, 7), torch.randint(4, 53, (3, 5))
    found = ours(sound, torch.full((3,), 26), tokens).logits
    expected = theirs(input_features=sound.mT, decoder_input_ids=tokens).logits
    torch.testing.assert_close(found, expected, **CLOSE)
    weights = torch.randn_like(expected) / expected.numel()
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: one.grad for name, one in ours.named_parameters(remove_duplicate=False)}
    others = {name: one.grad for name, one in theirs.named_parameters(remove_duplicate=False)}
    for name, value in whisper.key_map(ours.config).to_public(gradients).items():
        torch.testing.assert_close(value, others[name], **CLOSE, msg=name)


def test_the_same_tokens_are_written(pair: tuple[Path, nn.Module, nn.Module]) -> None:
    _, theirs, ours = pair
    sound = torch.randn(3, 26, 7)
    expected = torch.full((3, 1), 1)
    with torch.no_grad():
        for _ in range(11):
            logits = theirs(input_features=sound.mT, decoder_input_ids=expected).logits
            expected = torch.cat([expected, logits[:, -1:].argmax(-1)], 1)
    state, tokens = ours.start(sound, torch.full((3,), 26)), torch.full((3,), 1)
    written = [tokens]
    with torch.no_grad():
        for _ in range(11):
            written.append(ours.step(written[-1], state).argmax(-1))
    assert torch.equal(torch.stack(written, 1), expected)


def test_written_back_with_the_same_bits(pair: tuple[Path, nn.Module, nn.Module], tmp_path: Path) -> None:
    _, theirs, ours = pair
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    write_folder(tmp_path, "whisper", ours, special)
    back = transformers.WhisperForConditionalGeneration.from_pretrained(tmp_path)
    for name, value in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name


@pytest.mark.parametrize("bands", [80, 128])
def test_the_same_spectrograms(bands: int) -> None:
    sound = Waveform(np.random.default_rng(5).normal(0, 0.1, 16_000 * 3 + 77).astype(np.float32), 16_000)
    reference = transformers.WhisperFeatureExtractor(feature_size=bands)
    expected = reference(sound.samples, sampling_rate=16_000).input_features[0]
    found = WhisperFeatures(bands)(sound)
    np.testing.assert_allclose(found.T, expected, atol=1e-4)


def test_the_same_alignments() -> None:
    from transformers.models.whisper import generation_whisper as theirs

    matrix = torch.randn(2, 11, 37)
    assert torch.equal(torch.from_numpy(median_filter(matrix.numpy(), 7)), theirs._median_filter(matrix, 7))
    for costs in (matrix[0].numpy(), matrix[1].numpy()[:1], matrix[1].numpy()[:, :3]):
        rows, columns = warp(costs)
        expected_rows, expected_columns = theirs._dynamic_time_warping(costs)
        assert rows.tolist() == expected_rows.tolist()
        assert columns.tolist() == expected_columns.tolist()


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("tiny", (384, 4, 4)),
        ("base", (512, 6, 6)),
        ("small", (768, 12, 12)),
        ("medium", (1024, 24, 24)),
        ("large", (1280, 32, 32)),
        ("turbo", (1280, 32, 4)),
    ],
)
def test_as_many_parameters_as_the_public_models(preset: str, sizes: tuple[int, int, int]) -> None:
    width, encoder, decoder = sizes
    heads = {f"{side}_attention_heads": width // 64 for side in ("encoder", "decoder")}
    inner = {f"{side}_ffn_dim": 4 * width for side in ("encoder", "decoder")}
    with torch.device("meta"):
        config = transformers.WhisperConfig(
            d_model=width, encoder_layers=encoder, decoder_layers=decoder, **heads, **inner
        )
        theirs = transformers.WhisperForConditionalGeneration(config)
    ours = create(f"whisper-{preset}", device="meta", bands=80, vocabulary=51865)
    count = sum(parameter.numel() for parameter in ours.parameters()) + ours.source_positions.numel()
    assert count == sum(parameter.numel() for parameter in theirs.parameters())
