"""Every translator by its presets: what a search says of an output is what the model says of it teacher-forced."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from foveate import models
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.decoding import beam, greedy, sample, score, step_scores
from foveate.special_tokens import LEARNED

PAD, START, END = LEARNED.pad, LEARNED.start, LEARNED.end

VOCABULARY = 29
SMALL = {
    "transformer": {"width": 14, "heads": 2, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 3},
    "t5": {"width": 14, "heads": 2, "head_width": 5, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 3},
    "rnn-seq2seq": {"embedding": 11, "width": 14},
    "convolutional-seq2seq": {"embedding": 11, "width": 14, "encoder_layers": 2, "decoder_layers": 3},
}
LENGTHS = torch.tensor([5, 7, 3])
SOURCE = torch.randint(4, VOCABULARY, (3, 7), generator=torch.Generator().manual_seed(1))
INPUTS = {"source": SOURCE.masked_fill(torch.arange(7) >= LENGTHS[:, None], PAD), "source_lengths": LENGTHS}


@pytest.fixture(params=[name for name, preset in models.presets().items() if preset.family in SMALL])
def translator(request: pytest.FixtureRequest) -> nn.Module:
    sizes = SMALL[models.preset(request.param).family]
    return models.create(request.param, src_vocab=VOCABULARY, tgt_vocab=VOCABULARY, **sizes).eval()


def batch(outputs: list[list[int]], rows: list[int]) -> Batch:
    """The outputs, END included where they end, as labels for these rows of the inputs."""
    labels = pad_sequence([torch.tensor(tokens) for tokens in outputs], True, IGNORE)
    target = torch.cat([torch.full((len(outputs), 1), START), labels[:, :-1].clamp(min=PAD)], 1)
    inputs = {name: value[rows] for name, value in INPUTS.items()}
    return label_batch({**inputs, "target": target}, labels, "these lines")


def test_every_family_is_here() -> None:
    presets = {preset.family: name for name, preset in models.presets().items()}
    sizes = {"src_vocab": VOCABULARY, "tgt_vocab": VOCABULARY}
    two_sided = [name for name in models.FAMILIES if models.sizes_of_data(name) == list(sizes)]
    steps = {name for name in two_sided if hasattr(models.create(presets[name], device="meta", **sizes), "step")}
    assert steps == set(SMALL)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-5)


def test_step_by_step_equals_teacher_forced(translator: nn.Module) -> None:
    examples = batch([[4, 5, 6, 7, END], [8, END], [9, 10, 11, END]], [0, 1, 2])
    assert_close(step_scores(translator, examples, LEARNED), score(translator, examples))


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_an_output_has_the_log_probability_that_the_search_says(translator: nn.Module, search: str) -> None:
    longest = torch.tensor([11, 5, 13])
    found = {
        "greedy": lambda: [[one] for one in greedy(translator, INPUTS, LEARNED, longest)],
        "beam": lambda: beam(translator, INPUTS, LEARNED, longest, width=5, n_best=3),
        "sample": lambda: sample(translator, INPUTS, LEARNED, longest, samples=3),
    }[search]()
    flat = [(row, hypothesis) for row, hypotheses in enumerate(found) for hypothesis in hypotheses]
    outputs = [[*hypothesis.tokens, END] if hypothesis.ended else hypothesis.tokens for _, hypothesis in flat]
    expected = score(translator, batch(outputs, [row for row, _ in flat]))
    assert_close(torch.tensor([hypothesis.log_prob for _, hypothesis in flat]), expected)
