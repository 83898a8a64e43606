"""Folders as Hugging Face's library saves them, of tiny random models; and a picture and a sound to look at."""

import io
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from foveate.tasks.viewers import open_model
from foveate.viewer.protocol import File, LookResult

STORY = ["the old keeper lit the lamp", "she wrote what she had seen", "naïve café"]

SIZES: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 14, "intermediate_size": 11}

STACKS: dict[str, Any] = {
    "d_model": 14,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 11,
    "decoder_ffn_dim": 13,
    "decoder_start_token_id": 1,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


@cache
def byte_tokenizer() -> Any:
    """Pieces of words, with the space before a word in its first one; all bytes are known."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=350, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(STORY, trainer)
    return _wrapped(tokenizer)


@cache
def word_tokenizer() -> Any:
    """Pieces of words, of which the later ones begin with ##, between [CLS] and [SEP]."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "keep", "##er", "##s", "lamp", ",", "lit"]
    tokenizer = Tokenizer(models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", pad_token="[PAD]"
    )


def _wrapped(tokenizer: Tokenizer) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )


def _parts(name: str) -> tuple[Any, Any, Any]:
    """A model, its tokenizer and its processor."""
    count = len(byte_tokenizer())
    if name == "gpt2":
        sizes = {"n_layer": 3, "n_head": 2, "n_embd": 14, "n_positions": 83}
        config = transformers.GPT2Config(vocab_size=count, bos_token_id=1, eos_token_id=2, **sizes)
        return transformers.GPT2LMHeadModel(config), byte_tokenizer(), None
    if name == "llama":
        sizes = {**SIZES, "hidden_size": 12, "num_key_value_heads": 1, "max_position_embeddings": 61}
        config = transformers.LlamaConfig(vocab_size=count, bos_token_id=1, eos_token_id=2, **sizes)
        return transformers.LlamaForCausalLM(config), byte_tokenizer(), None
    if name == "bert":
        config = transformers.BertConfig(vocab_size=12, max_position_embeddings=31, **SIZES)
        return transformers.BertForMaskedLM(config), word_tokenizer(), None
    if name == "bert-classifier":
        labels = {"id2label": dict(enumerate("abcd")), "label2id": {label: place for place, label in enumerate("abcd")}}
        config = transformers.BertConfig(vocab_size=12, max_position_embeddings=31, **labels, **SIZES)
        return transformers.BertForSequenceClassification(config), word_tokenizer(), None
    if name == "roberta":  # its positions begin behind its padding
        config = transformers.RobertaConfig(vocab_size=count, max_position_embeddings=23, pad_token_id=0, **SIZES)
        return transformers.RobertaModel(config, add_pooling_layer=False), byte_tokenizer(), None
    if name == "canine":  # it has no table of tokens
        return transformers.CanineModel(transformers.CanineConfig(num_hash_buckets=17, **SIZES)), None, None
    if name == "t5":
        sizes = {"d_model": 14, "d_kv": 7, "d_ff": 11, "num_layers": 2, "num_heads": 3}
        config = transformers.T5Config(vocab_size=count, decoder_start_token_id=0, eos_token_id=2, **sizes)
        return transformers.T5ForConditionalGeneration(config), byte_tokenizer(), None
    if name == "bart-classifier":
        config = transformers.BartConfig(vocab_size=count, max_position_embeddings=37, **STACKS)
        return transformers.BartForSequenceClassification(config), byte_tokenizer(), None
    if name in ("vit", "vit-bare"):
        config = transformers.ViTConfig(image_size=24, patch_size=8, **SIZES)
        processor = transformers.AutoImageProcessor if name == "vit" else None
        return transformers.ViTModel(config), None, processor and _image_processor()
    if name == "swin":
        config = transformers.SwinConfig(
            image_size=32, patch_size=4, embed_dim=6, depths=[2, 1], num_heads=[2, 3], window_size=4
        )
        return transformers.SwinModel(config), None, None
    if name.startswith("sam-"):
        sizes = {"hidden_size": 14, "num_attention_heads": 2, "mlp_dim": 11, "output_channels": 5}
        options = {"image_size": int(name.removeprefix("sam-")), "patch_size": 8, "window_size": 4}
        config = transformers.SamVisionConfig(num_hidden_layers=2, global_attn_indexes=[1], **sizes, **options)
        return transformers.SamVisionModel(config), None, None
    if name == "sam2":  # halves its patches three times
        widths = {
            "hidden_size": 8,
            "embed_dim_per_stage": [8, 16, 24, 32],
            "num_attention_heads_per_stage": [1, 2, 2, 4],
        }
        sizes = {"blocks_per_stage": [1, 2, 1, 1], "window_size_per_stage": [8, 4, 4, 2], "global_attention_blocks": []}
        backbone = transformers.Sam2HieraDetConfig(image_size=[64, 64], **widths, **sizes)
        fpn = {"backbone_channel_list": [32, 24, 16, 8], "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]}
        config = transformers.Sam2VisionConfig(backbone_config=backbone, fpn_hidden_size=12, **fpn)
        return transformers.Sam2VisionModel(config), None, None
    if name == "detr":  # its decoder has queries of its own, as many as the picture has patches
        backbone = transformers.ResNetConfig(
            embedding_size=3, hidden_sizes=[5] * 4, depths=[1] * 4, out_features=["stage4"]
        )
        options = {"backbone_config": backbone, "use_timm_backbone": False, "num_queries": 15, "d_model": 28}
        config = transformers.DetrConfig(**{**STACKS, **options})
        return transformers.DetrForObjectDetection(config), None, _image_processor(96, 160)
    return _of_sound(name)


def _of_sound(name: str) -> tuple[Any, Any, Any]:
    """The same of a model that is given a spectrogram."""
    if name.startswith("whisper"):
        sizes = {"num_mel_bins": 80, "max_source_positions": 50, "max_target_positions": 29}
        config = transformers.WhisperConfig(vocab_size=len(byte_tokenizer()), **sizes, **STACKS)
        kinds = {
            "whisper": transformers.WhisperForConditionalGeneration,
            "whisper-bare": transformers.WhisperModel,
            "whisper-classifier": transformers.WhisperForAudioClassification,
        }
        return kinds[name](config), byte_tokenizer(), transformers.WhisperFeatureExtractor(chunk_length=1)
    if name == "parakeet":  # its frames come first
        sizes = {**SIZES, "subsampling_conv_channels": 5, "num_mel_bins": 80, "conv_kernel_size": 3}
        encoder = transformers.ParakeetEncoderConfig(**sizes)
        return transformers.ParakeetEncoder(encoder), None, transformers.ParakeetFeatureExtractor()
    if name == "wav2vec2-bert":  # two frames are given as one
        sizes = {**SIZES, "feature_projection_input_dim": 160, "conv_depthwise_kernel_size": 3}
        config = transformers.Wav2Vec2BertConfig(**sizes)
        return transformers.Wav2Vec2BertModel(config), None, transformers.SeamlessM4TFeatureExtractor()
    raise KeyError(name)


def _image_processor(height: int = 24, width: int = 24) -> Any:
    kind = getattr(transformers, "ViTImageProcessorPil", None) or transformers.ViTImageProcessor
    return kind(size={"height": height, "width": width}, image_mean=[0.4] * 3, image_std=[0.2] * 3)


def make(name: str, root: Path) -> Path:
    """The folder of a model, made unless it is there."""
    folder = root / name
    if not folder.exists():
        torch.manual_seed(5)
        transformers.logging.disable_progress_bar()
        for part in _parts(name):
            if part is not None:
                part.save_pretrained(folder)
    return folder


def picture(width: int = 60, height: int = 48, kind: str = "png") -> File:
    """A red square on green."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 1] = 200
    pixels[: height // 3, : width // 3] = (250, 10, 20)
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, kind)
    return File(f"square.{kind}", file.getvalue())


def sound(seconds: float = 0.5, rate: int = 8000, width: int = 2, channels: int = 1) -> File:
    """A tone of 440 Hz."""
    wave_form = np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate) * 0.5
    full = (wave_form * 2 ** (8 * width - 1)).astype("<i4")
    data = (full + 128).astype(np.uint8)[:, None] if width == 1 else full[:, None].view(np.uint8)[:, :width]
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(channels)
        written.setsampwidth(width)
        written.setframerate(rate)
        written.writeframes(np.repeat(data[:, None], channels, 1).tobytes())
    return File("tone.wav", file.getvalue())


def looked(folder: Path, given: Any, **options: Any) -> LookResult:
    """What is seen of a folder's model while it reads an input."""
    return open_model(folder).look(given, options.pop("most", 4096), **options)
