"""`foveate bench traces`: what it counts, and which models run in parallel."""

from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import nn

from foveate.attention import attend
from foveate.errors import UserError
from foveate.experiments import compare
from foveate.experiments.traces import Traces, count_products


def test_products_are_counted() -> None:
    layer, x = nn.Linear(3, 5), torch.randn(2, 3)
    assert count_products(lambda: layer(x) + layer(x)) == 2
    assert count_products(lambda: x + x) == 0


@pytest.mark.parametrize("tokens", [8, 200])
def test_attention_is_two_products_whatever_kernel_serves_it(tokens: int) -> None:
    q = torch.randn(1, 2, tokens, 16)
    assert count_products(lambda: attend(q, q, q)) == 2


def test_only_recurrence_waits_in_training(tmp_path: Path) -> None:
    options = Traces(out=tmp_path, models=("rnn", "transformer-tiny"), lengths=(16, 24))
    rows = compare("traces", options, Console(quiet=True)).tables[0].rows
    assert [row[-1] for row in rows] == ["step by step", "in parallel"]
    with pytest.raises(UserError, match="bert-tiny does not translate"):
        compare("traces", Traces(out=tmp_path, models=("bert-tiny",)), Console(quiet=True))
