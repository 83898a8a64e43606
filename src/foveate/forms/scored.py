"""Answers with a score, such as a log-probability: what a change of the model can raise or lower.

B batch    R rows of an input    T places of an output    N classes, tokens
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import IGNORE, Output
from foveate.errors import UserError, quoted, unknown


class ScoredForm:
    """A form whose answers have a score. By default it is their log-probability in nats: the sum over the places of the
    output, each of which has a label."""

    score_name: str = "log-probability"
    """What the score is."""
    mean_of_places: bool = False
    """Whether the score is a mean over the places: an image has as many as it has pixels."""

    def scored_labels(self, output: Output, answer: Any) -> Int[Tensor, "R T"]:
        """The number that an answer has at each place of the output for `teach`; IGNORE where it has none."""
        raise NotImplementedError

    def named(self, text: str, answer: Any) -> Any:
        """The answer that a user names in place of the model's own. Raises UserError for one that cannot be."""
        raise UserError("no other answer of this model can be named: leave out --target")

    def scored_answer(self, labels: Int[Tensor, "R T"], answer: Any) -> str:
        """What is scored, as a text."""
        return str(answer.title or answer.line)

    def log_probs(self, logits: Float[Tensor, "B ... N"]) -> Float[Tensor, "B T N"]:
        """The score of each label at each place."""
        return (logits if logits.ndim == 3 else logits[:, None]).log_softmax(-1)

    def score(self, output: Output, labels: Int[Tensor, "R T"], copies: int = 1) -> Float[Tensor, "B"]:
        """The score of the labels by the output for this many copies of the input."""
        labels = labels.to(output.logits.device)
        counts = labels != IGNORE
        scores = self.log_probs(output.logits.float())[:, : labels.shape[1]]
        chosen = scores.gather(-1, labels.clamp(min=0).repeat(copies, 1)[..., None])[..., 0]
        sums = (chosen * counts.repeat(copies, 1)).reshape(copies, -1).sum(1)
        return sums / counts.sum() if self.mean_of_places else sums


class MostLikely(ScoredForm):
    """A form whose answer is the most probable label of each place, such as that of each pixel."""

    mean_of_places = True
    score_name = "mean log-probability"

    def scored_labels(self, output: Output, answer: Any) -> Int[Tensor, "R T"]:
        return output.logits.argmax(-1)


class NextToken(ScoredForm):
    """A form that goes on with a text: what is scored is the next token."""

    tokenizer: Any

    def scored_labels(self, output: Output, answer: Any) -> Int[Tensor, "1 T"]:
        labels = torch.full(output.logits.shape[:2], IGNORE)
        labels[0, -1] = answer if isinstance(answer, int) else int(output.logits[0, -1].argmax())
        return labels

    def named(self, text: str, answer: Any) -> Any:
        (tokens,) = self.tokenizer.encode([text])
        if len(tokens) != 1:
            pieces = ", ".join(map(quoted, self.tokenizer.decode([[token] for token in tokens])))
            raise UserError(f"the next token is one, but {quoted(text)} is {len(tokens)} tokens: {pieces or 'none'}")
        return int(tokens[0])

    def scored_answer(self, labels: Int[Tensor, "1 T"], answer: Any) -> str:
        return str(self.tokenizer.decode([[int(labels[0, -1])]])[0]) or self.tokenizer.pieces([int(labels[0, -1])])[0]


def ctc_score(
    log_probs: Float[Tensor, "B T N"], lengths: Int[Tensor, "B"], labels: Int[Tensor, "1 L"], blank: int
) -> Float[Tensor, "B"]:
    """The log-probability of the labels by all ways to align them (connectionist temporal classification)."""
    count = len(log_probs)
    sizes = torch.full((count,), labels.shape[1], device=lengths.device)
    targets = labels.to(log_probs.device).expand(count, -1)
    return -F.ctc_loss(log_probs.transpose(0, 1), targets, lengths, sizes, blank, reduction="none")


def label_numbers(known: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The numbers of labels. Raises UserError for one that there is not."""
    numbers = {label: number for number, label in enumerate(known)}
    for label in wanted:
        if label not in numbers:
            raise unknown("label", label, known)
    return [numbers[label] for label in wanted]
