"""Hand-made step decoders whose right answers can be counted out; tests get them as fixtures."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate import create
from foveate.contracts import Hypothesis
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end


class Rows:
    """A state that remembers, for each row, its example and every token fed to it."""

    def __init__(self, examples: Int[Tensor, "B"]):
        self.examples = examples
        self.history = examples.new_empty(len(examples), 0)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        self.examples, self.history = self.examples[rows], self.history[rows]


class Scripted(EncoderDecoder):
    """A decoder whose logits are any function of the example and the tokens so far; it notes the rows of each step."""

    def __init__(self, vocabulary: int):
        self.vocabulary = vocabulary
        self.rows: list[int] = []

    def logits(self, example: int, history: tuple[int, ...]) -> Float[Tensor, "N"]:
        """Random logits, always the same for the same example and history."""
        seed = hash((example, *history)) % 2**31
        return torch.randn(self.vocabulary, generator=torch.Generator().manual_seed(seed)) * 2

    def start(self, source: Int[Tensor, "B"]) -> Rows:
        return Rows(source)

    def step(self, tokens: Int[Tensor, "R"], state: Rows) -> Float[Tensor, "R N"]:
        assert len(tokens) == len(state.examples)
        self.rows.append(len(tokens))
        state.history = torch.cat([state.history, tokens[:, None]], 1)
        rows = zip(state.examples.tolist(), state.history.tolist(), strict=True)
        return torch.stack([self.logits(example, tuple(history)) for example, history in rows])

    def log_prob(self, example: int, tokens: tuple[int, ...]) -> float:
        """Of the whole output `tokens` (END included where it ends), counted out with no search at all."""
        total = 0.0
        for place, token in enumerate(tokens):
            total += float(self.logits(example, (START, *tokens[:place])).log_softmax(0)[token])
        return total


class Markov(Scripted):
    """The next token depends on the last one only: a table of probabilities; then END for certain."""

    def __init__(self, table: dict[int, dict[int, float]], vocabulary: int):
        super().__init__(vocabulary)
        self.table = table

    def logits(self, example: int, history: tuple[int, ...]) -> Float[Tensor, "N"]:
        chances = self.table.get(history[-1], {END: 1.0})
        return torch.tensor([math.log(chances[t]) if chances.get(t) else -math.inf for t in range(self.vocabulary)])


def every_output(model: Scripted, example: int, max_length: int, length_penalty: float) -> list[Hypothesis]:
    """All outputs that end within `max_length` tokens, END included, best first."""
    words = range(LEARNED.first_word, model.vocabulary)
    found = []
    for length in range(1, max_length + 1):
        for tokens in itertools.product(words, repeat=length - 1):
            log_prob = model.log_prob(example, (*tokens, END))
            found.append(Hypothesis(list(tokens), log_prob, log_prob / length**length_penalty))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def markov() -> type[Markov]:
    return Markov


@pytest.fixture
def all_outputs() -> Callable[..., list[Hypothesis]]:
    return every_output


@pytest.fixture
def endless() -> nn.Module:
    """A Transformer that has learned seven positions, and never ends by itself."""
    sizes = {"width": 8, "heads": 2, "feedforward": 8, "encoder_layers": 1, "decoder_layers": 1}
    model: Any = create("transformer-tiny", **sizes, src_vocab=9, tgt_vocab=9, positions="learned", max_length=7).eval()
    with torch.no_grad():
        model.decoder_norm.bias.fill_(9.0)
        model.output.weight.fill_(1.0)
        model.output.weight[END] = -1.0
    return model
