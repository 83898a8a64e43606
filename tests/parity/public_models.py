"""Tiny models of transformers in folders, and the same models as ours."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import transformers
from llama_relatives import RELATIVES
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor, nn

from foveate.interop.public_folder import layout_of

WORDS = ["the", "keeper", "lit", "of", "lamp", "and", "climbed", "up", "stairs", ",", "counting", "each", "dawn"]

SIZES = {"vocab_size": 53, "bos_token_id": 51, "eos_token_id": 52}

CONFIGS = {
    "gpt2": transformers.GPT2Config(
        **SIZES, n_embd=20, n_head=5, n_inner=28, n_layer=3, n_positions=37, activation_function="gelu_new"
    ),
    "gpt2-untied": transformers.GPT2Config(
        **SIZES, n_embd=20, n_head=5, n_layer=2, n_positions=37, tie_word_embeddings=False, activation_function="gelu"
    ),
    "gpt1": transformers.OpenAIGPTConfig(**SIZES, n_embd=20, n_head=5, n_layer=3, n_positions=37),
    "gpt-neox": transformers.GPTNeoXConfig(
        **SIZES,
        hidden_size=40,
        num_attention_heads=5,
        intermediate_size=28,
        num_hidden_layers=3,
        max_position_embeddings=37,
        rotary_pct=0.25,
        hidden_act="gelu",
    ),
    "gpt-neox-sequential": transformers.GPTNeoXConfig(
        **SIZES,
        hidden_size=40,
        num_attention_heads=5,
        intermediate_size=28,
        num_hidden_layers=2,
        max_position_embeddings=37,
        rotary_pct=1.0,
        use_parallel_residual=False,
        tie_word_embeddings=True,
    ),
    "llama": transformers.LlamaConfig(
        **SIZES,
        hidden_size=48,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=29,
        num_hidden_layers=3,
        max_position_embeddings=37,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    ),
    "llama-wide-heads": transformers.LlamaConfig(
        **SIZES,
        hidden_size=30,
        num_attention_heads=5,
        num_key_value_heads=5,
        head_dim=14,
        intermediate_size=29,
        num_hidden_layers=2,
        max_position_embeddings=37,
        attention_bias=True,
        mlp_bias=True,
    ),
    **RELATIVES,
}


def config_of(name: str) -> Any:
    """A config of its own: transformers writes the type of a model's numbers into the config that it was made from."""
    return deepcopy(CONFIGS[name])


def reference(name: str) -> nn.Module:
    """A model of transformers with random weights, none of them at its initial value."""
    torch.manual_seed(11)
    model = transformers.AutoModelForCausalLM.from_config(config_of(name)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.3, 0.3)
    return model


def word_tokenizer(start: bool = False, mask: str | None = None) -> Tokenizer:
    """A tokenizer of a few words and 36 letters and signs, which can begin each text with a start token, and have a
    mask token instead of the letter "9"."""
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)] + [*"012345678", mask or "9"]
    vocabulary = {word: number for number, word in enumerate([*WORDS, *letters, ".", ":"][:51])}
    tokenizer = Tokenizer(models.WordLevel({**vocabulary, "<s>": 51, "</s>": 52}, unk_token="z"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>", "</s>", *([mask] if mask else [])])
    if start:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 51)])
    return tokenizer


def folder_of(name: str, place: Path, **saving: object) -> tuple[Path, nn.Module]:
    """The folder of a reference model with a tokenizer, and the model."""
    model = reference(name)
    model.save_pretrained(place, **saving)
    word_tokenizer().save(str(place / "tokenizer.json"))
    return place, model


def compare_gradients(folder: Path, ours: nn.Module, theirs: nn.Module) -> None:
    """Assert that each parameter of the two models of a folder has the same gradient; one that none reaches, zeros."""
    gradients = {name: _gradient(parameter) for name, parameter in ours.named_parameters(remove_duplicate=False)}
    others = dict(theirs.named_parameters(remove_duplicate=False))
    others["embed_out.weight"] = others.get("lm_head.weight")  # what GPT-NeoX calls it in files
    for name, value in layout_of(folder).key_map(ours.config).to_public(gradients).items():
        torch.testing.assert_close(value, _gradient(others[name]), atol=2e-5, rtol=0, msg=name)


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
