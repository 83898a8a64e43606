"""Where a model drops in training: each place that its paper names, once for each pass, at the rate it was given."""

from collections import Counter
from dataclasses import is_dataclass, replace

import pytest
from torch import Tensor
from variants import Variant, variants

from foveate import models
from foveate.nn.dropout import Dropout

READER = {"reader.dropout 3 7 10": 1}

BLOCK = ["around_self.dropout 3 {0} 12", "feedforward.dropout 3 {0} 11", "around_feedforward.dropout 3 {0} 12"]


def blocks(path: str, count: int, length: int, *more: str) -> dict[str, int]:
    """What this many blocks of a Transformer drop."""
    return {f"{path}.{layer}.{place.format(length)}": 1 for layer in range(count) for place in (*BLOCK, *more)}


def swin_blocks(stage: int, count: int, outer: str, inner: str) -> dict[str, int]:
    """What the blocks of a stage of Swin drop: the shapes of their maps and of the feed-forward layers' inside."""
    places = {"around_self.dropout": outer, "feedforward.dropout": inner, "around_feedforward.dropout": outer}
    return {f"stages.{stage}.{block}.{place} 3 {shape}": 1 for block in range(count) for place, shape in places.items()}


def mvit_blocks(stage: int, count: int, outer: str, inner: str) -> dict[str, int]:
    """The same for a stage of MViTv2."""
    names = swin_blocks(stage, count, outer, inner).items()
    return {name.replace("around_self.dropout", "dropout"): dropped for name, dropped in names}


RELATIVES = ("gpt-j", "gemma2", "mistral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3")
"""Families whose stack drops what a GPT's drops."""

PLACES = {
    "alexnet": {"head.dropout 3 19": 2},
    "attentive-reader": {"dropout 3 7 10": 1, "dropout 3 5 10": 1, "dropout 3 12": 1},
    "audio-transformer": {"dropout 3 18 12": 1, **blocks("blocks", 2, 18)},
    "bert": {"stack.dropout 3 7 12": 1, **blocks("stack.blocks", 2, 7)},
    "cnn": {"dropout 3 22": 1},
    "convnext": {"dropout 3 26": 1},
    "convolutional-seq2seq": {
        "dropout 3 7 10": 1,
        "dropout 3 5 10": 2,  # the embeddings, and what the output layer is given
        **{f"encoder.{layer}.dropout 3 7 12": 1 for layer in range(2)},
        **{f"decoder.{layer}.dropout 3 5 12": 1 for layer in range(3)},
    },
    "detr": {**blocks("encoder", 2, 110), **blocks("decoder", 3, 7, "around_cross.dropout 3 {0} 12")},
    "deformable-detr": {
        **blocks("encoder", 2, 539),  # the places of all feature maps
        **blocks("decoder.blocks", 3, 7, "around_cross.dropout 3 {0} 12"),
    },
    "rt-detr": {
        **{name.replace("110 11", "110 13"): dropped for name, dropped in blocks("encoder.blocks", 2, 110).items()},
        **blocks("decoder.blocks", 3, 7, "around_cross.dropout 3 {0} 12"),
    },
    "efficientnet": {"dropout 3 29": 1},
    "googlenet": {"dropout 3 202": 1},
    "gpt": {"stack.dropout 3 7 12": 1, **blocks("stack.blocks", 2, 7)},
    "gpt-neox": {"stack.dropout 3 7 12": 1, **blocks("stack.blocks", 2, 7)},
    **{name: {"stack.dropout 3 7 12": 1, **blocks("stack.blocks", 2, 7)} for name in RELATIVES},
    "deberta": {"stack.dropout 3 7 12": 1, "stack.distances.dropout 512 12": 2, **blocks("stack.blocks", 2, 7)},
    "t5": {
        "dropout 3 7 12": 2,  # what is read, and what is encoded
        "dropout 3 5 12": 2,
        **blocks("encoder", 2, 7),
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "imagegpt": {"stack.dropout 3 144 12": 1, **blocks("stack.blocks", 2, 144)},
    "las": {
        **{f"listener.dropout 3 {length} 12": 1 for length in (23, 12, 6)},
        "dropout 3 5 10": 1,
        "dropout 3 5 12": 1,
    },
    "llama": {"stack.dropout 3 7 12": 1, **blocks("stack.blocks", 2, 7)},
    "pose": {
        **blocks("encoder", 2, 110),
        **blocks("decoder.blocks", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "resnet": {"dropout 3 26": 1},
    "mvit": {
        "dropout 3 13 14 12": 1,
        **mvit_blocks(0, 1, "13 14 12", "13 14 48"),
        **mvit_blocks(1, 2, "7 7 24", "7 7 96"),
        **mvit_blocks(2, 1, "4 4 48", "4 4 192"),
        **mvit_blocks(3, 1, "2 2 96", "2 2 384"),
    },
    "ngram-bag": {"dropout 3 1 12": 1},
    "rnn-autoencoder": READER | {"writer.dropout 3 5 10": 1, "writer.dropout 3 5 12": 1},
    "rnn-captioner": {"dropout 3 5 10": 1, "dropout 3 5 12": 1},
    "rnn-encoder": {"dropout 3 7 10": 1, "dropout 3 1 12": 1},
    "rnn-language": {"dropout 3 7 12": 2},  # tied: embeddings are as wide as states
    "rnn-seq2seq": {"dropout 3 7 10": 1, "dropout 3 5 10": 1, "dropout 3 5 12": 1},
    "show-ask": {"dropout 3 7 10": 1, "dropout 3 1 12": 1, "dropout 3 30 96": 1, "dropout 3 1 31": 1},
    "smem-vqa": {"dropout 3 1 12": 1},
    "segmenter": blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    "siamese": {
        "source_encoder.dropout 3 7 10": 1,
        "source_encoder.dropout 3 5 10": 1,
        "dropout 3 12": 2,
        "compare.dropout 3 1 12": 1,
    },
    "speech-transformer": {
        "dropout 3 6 12": 1,
        "dropout 3 5 12": 1,
        **blocks("encoder", 2, 6),
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "swin": {
        "dropout 3 13 14 12": 1,
        **swin_blocks(0, 1, "13 14 12", "13 14 48"),
        **swin_blocks(1, 2, "7 7 24", "7 7 96"),
        **swin_blocks(2, 1, "4 4 48", "4 4 192"),
        **swin_blocks(3, 1, "2 2 96", "2 2 384"),
    },
    "transformer": {
        "dropout 3 7 12": 1,
        "dropout 3 5 12": 1,
        **blocks("encoder", 2, 7),
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "transformer-captioner": {
        "dropout 3 5 12": 1,
        "encoder.dropout 3 30 12": 1,
        **blocks("encoder.blocks", 2, 30),
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "transformer-encoder": {"encoder.dropout 3 7 12": 1, **blocks("encoder.blocks", 2, 7), "dropout 3 1 12": 1},
    "vgg": {"head.dropout 3 19": 2},
    "vision-encoder-decoder": {
        "dropout 3 5 12": 1,
        **{
            f"image_encoder.{name.replace(' 12', ' 15')}": dropped  # images are as wide as their own layers
            for name, dropped in {"stack.dropout 3 97 12": 1, **blocks("stack.blocks", 2, 97)}.items()
        },
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "vit": {"stack.dropout 3 97 12": 1, **blocks("stack.blocks", 2, 97)},
    "wav2vec2": {"dropout 3 7 12": 3, **blocks("blocks", 2, 7)},
    "whisper": {
        "dropout 3 12 12": 1,
        "dropout 3 5 12": 1,
        **blocks("encoder", 2, 12),
        **blocks("decoder", 3, 5, "around_cross.dropout 3 {0} 12"),
    },
    "whisper-ctc": {
        "listener.dropout 3 12 18": 1,
        "dropout 3 12 18": 1,
        **{name.replace("12 12", "12 18"): dropped for name, dropped in blocks("listener.encoder", 2, 12).items()},
    },
    "xlnet": {"dropout 3 7 12": 2, "dropout 13 12": 1, **blocks("blocks", 2, 7)},
    "zfnet": {"head.dropout 3 19": 2},
}
"""What a model of each family drops: the module, and the shape of what it is given. The examples have 3 sentences that
read 7 tokens and write 5; embeddings have 10 numbers, states 12, feed-forward layers 11."""


def of_each_family() -> list[Variant]:
    """The first preset of each family, as it is."""
    first: dict[str, Variant] = {}
    for small in variants():
        first.setdefault(models.preset(small.preset).family, small)
    return list(first.values())


@pytest.mark.parametrize("small", of_each_family(), ids=str)
def test_what_is_dropped(small: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    family = models.preset(small.preset).family
    rates: dict[str, object] = {name: 0.25 for name in ("dropout", "activation_dropout") if hasattr(small.config, name)}
    for part in ("vision", "listener"):
        if is_dataclass(sizes := getattr(small.config, part, None)):
            rates[part] = replace(sizes, dropout=0.25)
    model = models.build(family, replace(small.config, **rates)).train()
    names = {module: name for name, module in model.named_modules()}
    found: Counter[str] = Counter()
    forward = Dropout.forward

    def noted(self: Dropout, x: Tensor) -> Tensor:
        found[" ".join([names[self], *map(str, x.shape)])] += 1
        assert self.p == 0.25
        return forward(self, x)

    monkeypatch.setattr(Dropout, "forward", noted)
    model(**small.inputs)
    assert found == PLACES[family]
