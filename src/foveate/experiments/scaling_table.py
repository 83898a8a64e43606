"""The scaling table: sizes, data and training of language models as published, and as counted here.

Compute that was published comes from each paper, for BERT, RoBERTa and GPT-3 from Brown et al. 2020, appendix D
(https://arxiv.org/abs/2005.14165). Tokens are those that were seen in training: steps times batch times length.
"""

from dataclasses import dataclass, field
from typing import Any

from foveate import models
from foveate.experiments.size import measure_preset

PETAFLOP_DAY = 1e15 * 86_400


@dataclass(frozen=True)
class PublishedModel:
    """A row of the table. What is not public is None or "undisclosed"."""

    name: str
    preset: str | None
    parameters: str
    data: str
    training: str
    tokens: float | None = None
    """Tokens seen in training; of a translator those of one side."""
    flops: float | None = None
    """Floating-point operations of the training, as published."""
    devices: int = 0
    hours: float = 0.0
    """Hours of the training on these devices."""
    price: float = 0.0
    """Dollars of a device for an hour."""
    length: int = 512
    """Tokens of a sequence in training."""
    sizes: dict[str, int] = field(default_factory=dict)


TABLE = (
    PublishedModel(
        *("Transformer-Base", "transformer-base", "65 M", "4.5 M sentence pairs", "8 P100, 12 hours"),
        *(100_000 * 25_000, 3.3e18, 8, 12.0),
        length=32,
        sizes={"src_vocab": 37_000, "tgt_vocab": 37_000},
    ),
    PublishedModel(
        *("Transformer-Large", "transformer-large", "213 M", "4.5 M sentence pairs", "8 P100, 3.5 days"),
        *(300_000 * 25_000, 2.3e19, 8, 84.0),
        length=32,
        sizes={"src_vocab": 37_000, "tgt_vocab": 37_000},
    ),
    PublishedModel(*("BERT-Base", "bert-base", "110 M", "13 GB", "", 250e9, 1.64e20), sizes={"vocabulary": 30_522}),
    PublishedModel(*("BERT-Large", "bert-large", "340 M", "13 GB", "", 250e9, 5.33e20), sizes={"vocabulary": 30_522}),
    PublishedModel(
        *("XLNet-Large", "xlnet-large", "~340 M", "126 GB", "512 TPUv3, 2.5 days", 500_000 * 8192 * 512.0, None),
        *(512, 60.0),
        sizes={"vocabulary": 32_000},
    ),
    PublishedModel(
        *("RoBERTa", "roberta-large", "355 M", "160 GB", "1,024 V100, 1 day", 2000e9, 4.26e21, 1024, 24.0),
        sizes={"vocabulary": 50_265},
    ),
    PublishedModel(
        *("GPT-1", "gpt1", "117 M", "4.5 GB, 7,000 books", "30 days on 8 P600", None, PETAFLOP_DAY, 8, 720.0),
        sizes={"vocabulary": 40_478},
    ),
    PublishedModel(
        *("GPT-2", "gpt2-xl", "1.5 B", "40 GB, 8 M documents", "", None, 1.5e21),
        length=1024,
        sizes={"vocabulary": 50_257},
    ),
    PublishedModel(
        *("Megatron-LM", "megatron-8.3b", "8.3 B", "174 GB", "512 V100, 9 days", 300_000 * 512 * 1024.0, None, 512),
        hours=216.0,
        length=1024,
        sizes={"vocabulary": 51_200},
    ),
    PublishedModel(
        *("Turing-NLG", "turing-nlg-17b", "17 B", "undisclosed", "256 V100", 300_000 * 512 * 1024.0, None),
        length=1024,
        sizes={"vocabulary": 51_200},
    ),
    PublishedModel(
        *("GPT-3", "gpt3-175b", "175 B", "694 GB, 499 B tokens", "3,640 petaFLOP/s-days", 300e9, 3640 * PETAFLOP_DAY),
        length=2048,
        sizes={"vocabulary": 50_257},
    ),
    PublishedModel("GPT-3.5", None, "175 B", "undisclosed", "undisclosed; text prediction and RLHF"),
    PublishedModel("GPT-4", None, "1.7 T, an estimate", "undisclosed", "undisclosed; text prediction and RLHF"),
    PublishedModel(
        *("Gopher", "gopher-280b", "280 B", "10.55 TB", "4,096 TPUv3, 38 days", 300e9, 6.31e23, 4096, 920.0, 1.0),
        length=2048,
        sizes={"vocabulary": 32_000},
    ),
)


@dataclass(frozen=True)
class TrainingCompute:
    """The counted size and compute of a row."""

    layout: str
    """Layers / width / heads."""
    parameters: int
    flops_per_token: float
    """Of training."""
    total_flops: float | None
    """For the tokens that were seen; None where they are not public."""

    @property
    def petaflop_days(self) -> float | None:
        return None if self.total_flops is None else self.total_flops / PETAFLOP_DAY


def count(row: PublishedModel) -> TrainingCompute | None:
    """Count the row's preset on its shapes; None for a model whose sizes are not public."""
    if row.preset is None:
        return None
    model: Any = models.create(row.preset, device="meta", **row.sizes)
    size, config = measure_preset(row.preset, row.sizes, 1, row.length, model), model.config
    layers = getattr(config, "layers", None)
    depth = f"{layers}" if layers else f"{config.encoder_layers}+{config.decoder_layers}"
    per_token = size.training_flops / size.tokens
    total = None if row.tokens is None else per_token * row.tokens
    return TrainingCompute(f"{depth} / {config.width:,} / {config.heads}", size.parameters, per_token, total)
