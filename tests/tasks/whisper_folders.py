"""Small folders of Whisper in the layout of Hugging Face, with random weights."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>"]

NAMES = [*SPECIAL, "<|notimestamps|>"]


def write_model(folder: Path, multilingual: bool) -> Path:
    """Random weights and a vocabulary of bytes and a few words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, "Ġthe", "Ġlamp", "er"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(NAMES)
    tokenizer.save(str(folder / "tokenizer.json"))
    numbers = {name: tokenizer.token_to_id(name) for name in NAMES}
    end = numbers["<|endoftext|>"]
    config = transformers.WhisperConfig(
        d_model=12,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=11,
        decoder_ffn_dim=11,
        encoder_layers=1,
        decoder_layers=2,
        vocab_size=len(vocabulary) + len(NAMES),
        max_target_positions=23,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=numbers["<|startoftranscript|>"],
    )
    torch.manual_seed(3)
    model = transformers.WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.5, 0.5)
    model.save_pretrained(folder)
    special = [numbers[name] for name in NAMES if name != "<|endoftext|>"]
    generation = {"suppress_tokens": special, "begin_suppress_tokens": [end], "is_multilingual": multilingual}
    if multilingual:
        generation["lang_to_id"] = {name: numbers[name] for name in ("<|en|>", "<|fr|>")}
        generation["alignment_heads"] = [[0, 1], [1, 2]]
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder
