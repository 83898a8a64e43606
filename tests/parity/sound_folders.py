"""A tiny folder of each kind of model of sounds that foveate reads, with random weights and odd sizes.

A new kind is one more row of SOUND_FOLDERS; `test_every_sound_folder.py` then compares it, runs it, looks at it, trains
from it and writes it back, with each of its heads.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import transformers
from folders import NAMES, scramble
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

RATE = 16_000

SIGNS = ["<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"]

CTC = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'"]

WAVES = {
    "vocab_size": len(CTC),
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 31,
    "conv_dim": (11, 13, 16),
    "conv_kernel": (17, 3, 5),
    "conv_stride": (20, 2, 4),
    "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 2,
    "classifier_proj_size": 9,
    "mask_time_length": 3,
}

LAYERS = {"feat_extract_norm": "layer", "conv_bias": True, "do_stable_layer_norm": True}


def heads_of(name: str) -> dict[str, str]:
    return {"words": f"{name}ForCTC", "label": f"{name}ForSequenceClassification", "none": f"{name}Model"}


@dataclass(frozen=True)
class SoundFolder:
    """A kind of model: its config there, and the classes of its heads."""

    config: Any
    heads: Mapping[str, str]
    """What each head predicts, with the class of transformers that has it."""
    close: float = 5e-5
    """By how much logits may differ."""

    @property
    def kind(self) -> str:
        found: str = self.config.model_type
        return found

    def write(self, head: str, place: Path) -> Any:
        """Write the folder of a model with a head; the model, in evaluation mode."""
        torch.manual_seed(5)
        config = deepcopy(self.config)
        if head == "label":
            config = type(config).from_dict({**config.to_dict(), **NAMES, "dtype": "float32"})
        model = scramble(getattr(transformers, self.heads[head])(config))
        if self.kind == "whisper":
            keep_sines(model)
        model.save_pretrained(place)
        self.extractor().save_pretrained(place)
        if head == "words":
            write_bytes(place, config) if self.kind == "whisper" else write_letters(place)
        return model.eval()

    def extractor(self) -> Any:
        """What makes the inputs of the model there."""
        if self.kind == "whisper":
            return transformers.WhisperFeatureExtractor(feature_size=self.config.num_mel_bins)
        if self.kind == "audio-spectrogram-transformer":
            sizes = {"num_mel_bins": self.config.num_mel_bins, "max_length": self.config.max_length}
            return transformers.ASTFeatureExtractor(**sizes, mean=-5.5, std=3.25)
        return transformers.Wav2Vec2FeatureExtractor(return_attention_mask=False)

    def inputs(self, samples: np.ndarray) -> dict[str, Any]:
        """The inputs of the model there for a sound."""
        found: dict[str, Any] = dict(self.extractor()(samples, sampling_rate=RATE, return_tensors="pt"))
        found.pop("attention_mask", None)
        return found


def keep_sines(model: Any) -> None:
    """Whisper's positions of the encoder are not learned."""
    from foveate.models.speech.whisper_encoder import sinusoids

    table = model.model.encoder.embed_positions.weight
    with torch.no_grad():
        table.copy_(sinusoids(*table.shape))


def write_letters(place: Path) -> None:
    """The files of a tokenizer of letters."""
    (place / "vocab.json").write_text(json.dumps({letter: number for number, letter in enumerate(CTC)}))
    transformers.Wav2Vec2CTCTokenizer(str(place / "vocab.json")).save_pretrained(place)


def byte_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SIGNS)
    return tokenizer


def write_bytes(place: Path, config: Any) -> None:
    """The files of a tokenizer of bytes, and of how a Whisper is asked to write."""
    byte_tokenizer().save(str(place / "tokenizer.json"))
    signs = {"eos_token": SIGNS[0], "bos_token": SIGNS[0], "pad_token": SIGNS[0]}
    (place / "tokenizer_config.json").write_text(json.dumps(signs))
    ends = {name: getattr(config, name) for name in ("eos_token_id", "bos_token_id", "pad_token_id")}
    more = {"decoder_start_token_id": 257, "suppress_tokens": [257, 258], "begin_suppress_tokens": [256]}
    generation = {**ends, **more, "is_multilingual": False, "max_length": 29}
    (place / "generation_config.json").write_text(json.dumps(generation))


def write_sound(path: Path, samples: int, seed: int, rate: int = RATE) -> np.ndarray:
    """A file of noise that grows and falls; its samples."""
    noise = np.random.default_rng(seed).normal(0, 0.1, samples)
    sound = (noise * (1 + np.sin(np.arange(samples) / 997))).astype(np.float32)
    soundfile.write(path, sound, rate, subtype="FLOAT")
    return sound


SOUND_FOLDERS: dict[str, SoundFolder] = {
    "wav2vec2": SoundFolder(transformers.Wav2Vec2Config(**WAVES), heads_of("Wav2Vec2")),
    "wav2vec2-layer": SoundFolder(transformers.Wav2Vec2Config(**WAVES, **LAYERS), heads_of("Wav2Vec2")),
    "hubert": SoundFolder(transformers.HubertConfig(**WAVES, feat_proj_layer_norm=False), heads_of("Hubert")),
    "hubert-layer": SoundFolder(transformers.HubertConfig(**WAVES, **LAYERS), heads_of("Hubert")),
    "audio-spectrogram-transformer": SoundFolder(
        transformers.ASTConfig(
            hidden_size=20,
            num_hidden_layers=2,
            num_attention_heads=5,
            intermediate_size=28,
            patch_size=7,
            frequency_stride=5,
            time_stride=5,
            max_length=61,
            num_mel_bins=23,
        ),
        {"label": "ASTForAudioClassification"},
    ),
    "whisper": SoundFolder(
        transformers.WhisperConfig(
            d_model=12,
            encoder_attention_heads=3,
            decoder_attention_heads=3,
            encoder_ffn_dim=11,
            decoder_ffn_dim=11,
            encoder_layers=1,
            decoder_layers=2,
            num_mel_bins=80,
            vocab_size=261,
            max_target_positions=29,
            pad_token_id=256,
            bos_token_id=256,
            eos_token_id=256,
            decoder_start_token_id=257,
        ),
        {"words": "WhisperForConditionalGeneration"},
    ),
}
"""By a name; one "model_type" may have several."""
