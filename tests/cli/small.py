"""What the tests of the command line share: the flags of a small translator, and what training one gives."""

from pathlib import Path
from typing import NamedTuple

FLAGS = [
    *("--model", "rnn-attentive", "--architecture.width", "48", "--architecture.embedding", "32"),
    *("--architecture.dropout", "0", "--vocabulary", "120", "--batch", "512", "--validation-examples", "30"),
    *("--learning-rate", "0.01", "--warmup", "10", "--label-smoothing", "0", "--average", "1", "--threads", "1"),
]
"""Of a translator that learns its words in 200 steps."""


class Trained(NamedTuple):
    folder: Path
    data: Path
    out: str
    err: str
