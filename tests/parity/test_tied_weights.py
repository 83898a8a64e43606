"""A file whose output matrix is not the embeddings that the config ties it to: transformers' logits, or an error."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS, MASKED
from image_writers import IMAGE_WRITERS
from public_models import config_of, word_tokenizer
from safetensors.torch import load_file, save_file
from translators import TRANSLATORS

from foveate.errors import UserError
from foveate.interop.public_folder import MODEL_TYPES, layout_at, read_folder

WHISPER = transformers.WhisperConfig(
    vocab_size=53,
    d_model=20,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=80,
    decoder_ffn_dim=80,
    pad_token_id=50,
    bos_token_id=50,
    eos_token_id=50,
    decoder_start_token_id=50,
)


def with_tie(config: Any) -> Any:
    config.tie_word_embeddings = True
    return config


MODELS: dict[str, tuple[str, Any]] = {
    "gpt2": ("AutoModelForCausalLM", config_of("gpt2")),
    "openai-gpt": ("AutoModelForCausalLM", config_of("gpt1")),
    "gpt_neox": ("AutoModelForCausalLM", config_of("gpt-neox-sequential")),
    **{
        kind: ("AutoModelForCausalLM", with_tie(config_of(kind)))
        for kind in ("llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma2", "olmo2", "phi3", "gptj")
    },
    "opt": ("AutoModelForCausalLM", config_of("opt")),
    "xlnet": (
        "AutoModelForCausalLM",
        transformers.XLNetConfig(vocab_size=53, d_model=20, n_layer=2, n_head=5, d_inner=28),
    ),
    "whisper": ("WhisperForConditionalGeneration", WHISPER),
    **{
        kind: (folder.heads["words"], folder.config)
        for kind, folder in FOLDERS.items()
        if folder.heads.get("words") == MASKED["words"]
    },
    **{kind: (one.kind.__name__, one.config) for kind, one in TRANSLATORS.items() if kind in MODEL_TYPES},
    "vision-encoder-decoder": ("VisionEncoderDecoderModel", IMAGE_WRITERS["vit-gpt2"].config()),
    "blip": ("BlipForConditionalGeneration", IMAGE_WRITERS["blip"].config()),
}
"""The class of transformers, and a config with the output tied to the embeddings."""

OF_IMAGES = {"vision-encoder-decoder": "decoder_input_ids", "blip": "input_ids"}
"""What those that read an image call what they write."""

ALWAYS_TIED = ("xlnet", "whisper")
"""Our models of these families have one matrix for both."""


def folder_of(name: str, place: Path, other: bool) -> Any:
    """transformers' model of a file with two matrices, which are equal or not."""
    kind, config = MODELS[name]
    torch.manual_seed(5)
    maker = getattr(transformers, kind)
    model = maker.from_config(deepcopy(config)) if kind.startswith("Auto") else maker(deepcopy(config))
    model.save_pretrained(place)
    tensors = load_file(place / "model.safetensors")
    embeddings = model.get_input_embeddings().weight
    shared = {name for name, value in model.named_parameters(remove_duplicate=False) if value is embeddings}
    embedding = min(shared & tensors.keys())
    layer = model.get_output_embeddings() or model.text_decoder.get_output_embeddings()
    output = next(f"{name}.weight" for name, one in model.named_modules() if one is layer)
    assert output != embedding
    if name == "gpt_neox":  # whose files name it in another way
        output = "embed_out.weight"
    tensors[output] = tensors[embedding] + other * torch.randn_like(tensors[embedding])
    save_file(tensors, place / "model.safetensors", {"format": "pt"})
    if name in TRANSLATORS:
        TRANSLATORS[name].tokenizer(place)
    else:
        word_tokenizer().save(str(place / "tokenizer.json"))
    return maker.from_pretrained(place).eval()


def test_every_family_that_predicts_words_is_compared() -> None:
    layouts = {kind: layout_at(name) for kind, name in MODEL_TYPES.items()}
    words = {kind for kind, layout in layouts.items() if "words" in layout.architectures.values()}
    spelled = {kind for kind in words if layouts[kind].family == "wav2vec2"}  # by CTC, without embeddings
    assert words - spelled == MODELS.keys()


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_matrix_of_the_file_is_used(name: str, other: bool, tmp_path: Path) -> None:
    theirs = folder_of(name, tmp_path, other)
    if other and name in ALWAYS_TIED:
        with pytest.raises(UserError, match=r"'[\w.]+' differs from '[\w.]+', but a \w+ has one for both"):
            read_folder(tmp_path)
        return
    ours, tokens = read_folder(tmp_path).model, torch.randint(3, 50, (2, 7))
    if name == "whisper":
        given = {"input_features": torch.randn(1, 80, 3000), "decoder_input_ids": tokens[:1]}
        with torch.no_grad():
            expected = theirs(**given).logits
            sound = given["input_features"].transpose(1, 2).contiguous()
            found = ours(sound, torch.tensor([3000]), tokens[:1]).logits
    elif name in OF_IMAGES:
        pixels = torch.randn(2, 3, 12, 12)
        with torch.no_grad():
            expected = theirs(pixel_values=pixels, **{OF_IMAGES[name]: tokens}).logits
            found = ours(pixels, tokens).logits
    elif name in TRANSLATORS:
        with torch.no_grad():
            expected = theirs(input_ids=tokens, decoder_input_ids=tokens).logits
            found = ours(tokens, torch.tensor([7, 7]), tokens).logits
    else:
        with torch.no_grad():
            expected, found = theirs(tokens).logits, ours(tokens).logits
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)


def test_an_output_layer_without_a_matrix_is_refused(tmp_path: Path) -> None:
    folder_of("bert", tmp_path, False)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["cls.predictions.decoder.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    config = (tmp_path / "config.json").read_text()
    untied = config.replace('"tie_word_embeddings": true', '"tie_word_embeddings": false')
    assert untied != config
    (tmp_path / "config.json").write_text(untied)
    with pytest.raises(UserError, match=r"lacks the tensor 'cls\.predictions\.decoder\.weight'"):
        read_folder(tmp_path)


def test_two_biases_that_differ_are_refused(tmp_path: Path) -> None:
    folder_of("bert", tmp_path, False)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"] + 1
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"'cls\.predictions\.decoder\.bias' differs from 'cls\.predictions\.bias'"):
        read_folder(tmp_path)
