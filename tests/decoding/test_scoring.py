"""The log-probability of known outputs, at once and step by step."""

import pytest
import torch

from foveate.contracts import IGNORE, Batch, Output, label_batch
from foveate.decoding import greedy, score, step_scores
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

START, END = LEARNED.start, LEARNED.end

SOURCES = torch.tensor([11, 5, 7])
LABELS = torch.tensor([[4, 5, END, IGNORE], [3, END, IGNORE, IGNORE], [6, 6, 5, END]])


class Forced:
    """The teacher-forced side of a scripted decoder."""

    def __init__(self, scripted):
        self.scripted = scripted

    def __call__(self, source, target) -> Output:
        rows = [
            torch.stack([self.scripted.logits(example, tuple(history[: place + 1])) for place in range(len(history))])
            for example, history in zip(source.tolist(), target.tolist(), strict=True)
        ]
        return Output(torch.stack(rows))


def batch(labels=LABELS) -> Batch:
    target = torch.cat([torch.full((3, 1), START), LABELS[:, :-1].clamp(min=0)], 1)
    return label_batch({"source": SOURCES, "target": target}, labels, "three lines")


def test_both_equal_the_sum_over_the_labels_that_count(scripted) -> None:
    model = scripted(vocabulary=7)
    outputs = [(4, 5, END), (3, END), (6, 6, 5, END)]
    expected = torch.tensor([model.log_prob(s, o) for s, o in zip(SOURCES.tolist(), outputs, strict=True)])
    torch.testing.assert_close(score(Forced(model), batch()), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(step_scores(model, batch(), LEARNED), expected, rtol=0, atol=1e-5)


def test_a_decoded_output_scores_what_the_search_said(scripted) -> None:
    model = scripted(vocabulary=7)
    for source, found in zip(SOURCES, greedy(model, {"source": SOURCES}, LEARNED, 17), strict=True):
        labels = torch.tensor([[*found.tokens, END] if found.ended else found.tokens])
        alone = label_batch({"source": source[None]}, labels, "one line")
        assert step_scores(model, alone, LEARNED).item() == pytest.approx(found.log_prob, abs=1e-5)


def test_labels_of_another_length_are_refused(scripted) -> None:
    with pytest.raises(UserError, match=r"logits of shape \(3, 4, 7\) for labels of shape \(3, 3\)"):
        score(Forced(scripted(vocabulary=7)), batch(LABELS[:, :3]))
