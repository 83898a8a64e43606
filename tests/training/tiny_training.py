"""A training of a second: run as a program, it trains in the folder it is given, with the step it starts at printed."""

import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate.contracts import IGNORE, Batch, Output, label_batch
from foveate.training import CrossEntropy, Result, Training, Validation, train

VOCABULARY, WIDTH = 13, 7


class TinyModel(nn.Module):
    """Guesses the next token from this one, through dropout, a norm and a tied embedding."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Output:
        return Output(self.head(self.dropout(self.norm(self.hidden(self.embedding(tokens))))))


class TinyBatches:
    """Sums of two numbers modulo the vocabulary, in batches of uneven size with some places that do not count."""

    def __init__(self, length: int = 11) -> None:
        self.length = length

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index in range(skip, self.length):
            yield self.batch(number, index)

    def batch(self, number: int, index: int) -> Batch:
        generator = torch.Generator().manual_seed(1000 * number + index)
        tokens = torch.randint(VOCABULARY, (2 + index % 3, 5), generator=generator)
        labels = (3 * tokens + 1) % VOCABULARY
        labels[0, 5 - index % 4 :] = IGNORE
        return label_batch({"tokens": tokens}, labels, f"batch {index} of epoch {number}")


def measure(model: nn.Module) -> dict[str, float]:
    """The error on an epoch that is not trained on; draws random numbers too, as a sampling decoder would."""
    torch.rand(3)
    wrong = count = 0
    for batch in TinyBatches(3).epoch(999_999):
        counted = batch.labels != IGNORE
        wrong += int(((model(**batch.inputs).logits.argmax(-1) != batch.labels) & counted).sum())
        count += batch.total_weight
    return {"error": wrong / count}


VALIDATION = Validation(measure, "error", higher_is_better=False)


def run(
    folder: Path, model: nn.Module | None = None, batches: Any = None, console: Console | None = None, **settings: Any
) -> tuple[nn.Module, Result]:
    """Train a tiny model (or the given one) with settings that make much happen in few steps."""
    chosen: dict[str, Any] = {"steps": 60, "warmup": 5, "save_every": 7, "validate_every": 14, "log_every": 3}
    chosen |= {"average": 3, "patience": None, "learning_rate": 0.02, "device": "cpu", "threads": 1} | settings
    model = model or TinyModel()
    console = console or Console(file=StringIO())
    result = train(
        model, batches or TinyBatches(), CrossEntropy(0.1), Training(**chosen), folder, VALIDATION, console=console
    )
    return model, result


if __name__ == "__main__":
    print("begins", flush=True)
    run(Path(sys.argv[1]), steps=int(sys.argv[2]))
