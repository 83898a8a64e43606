"""Beam search: at each step only the likeliest few beginnings of every output are kept."""

import math
from bisect import insort

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.attention import assign_rows
from foveate.contracts import END, START, Hypothesis, StepDecoder
from foveate.decoding.ranking import LONGEST, best, hypothesis, limits, log_probs
from foveate.errors import UserError

WIDEST = 1_000
"""A wider beam finds nothing that a narrower one does not, and soon takes more memory than there is."""

PENALTY = 4
"""A bound on length penalties: the longest output to that power is still a number of single precision."""


@torch.no_grad()
def beam(
    model: StepDecoder,
    inputs: dict[str, Tensor],
    max_length: int | Int[Tensor, "B"],
    width: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    patience: float | None = None,
    growth: float | None = None,
    threshold: float | None = None,
) -> list[list[Hypothesis]]:
    """For each example the `n_best` best hypotheses found, best first.

    At each step the `width` best continuations of an example's open hypotheses stay open; with a `threshold` only those
    whose log-probability is at most so much below that of the `n_best`-th of them (Freitag and Al-Onaizan 2017,
    https://arxiv.org/abs/1702.01806: absolute threshold pruning). One that ends among the `width` best is set aside and
    ranked by log-probability / length ** `length_penalty`, where both count END. With a penalty of 1 that is the mean
    log-probability of a token; less favours shorter outputs, more favours longer ones.

    An example leaves the batch as soon as
    - no open hypothesis can overtake the `n_best` best of those that ended; each that cannot leaves before that. This
      loses nothing, whatever the penalty: more tokens never raise a log-probability, so the best score within reach is
      the present log-probability at the greatest length allowed (with a negative penalty: at the least). `growth` looks
      less far, to that many times the present length: it may miss an output that becomes likely only then; or
    - `patience * width` of its hypotheses have ended, although a longer one might still win: the rule of most toolkits,
      with their patience of 1 (Kasai et al. 2022, https://arxiv.org/abs/2204.05424), which also counts what could not
      win. None switches this rule off; or
    - it has taken `max_length` steps (END takes one; one number, or one for each example). Only where fewer than
      `n_best` hypotheses have ended, the best open ones follow them, with `ended=False`.

    With a width and a patience of 1 this is greedy search. Equal scores are ordered by beam, then by token id. The
    model should be in evaluation mode. Raises UserError on a width, n_best, patience, growth, threshold or limit that
    makes no sense.
    """
    check_beam(width, n_best, length_penalty, patience, growth, threshold)
    steps = limits(inputs, max_length)
    enough = math.inf if patience is None else max(n_best, patience * width)
    found = _Found(len(steps), n_best, length_penalty, enough)
    search = _Search(steps, width, found, *(math.inf if bound is None else bound for bound in (growth, threshold)))
    state = model.start(**inputs)
    while len(rows := search.advance(model.step(search.last_tokens, state))):
        state.reorder(rows)
    return found.hypotheses


def check_beam(
    width: int,
    n_best: int,
    length_penalty: float,
    patience: float | None,
    growth: float | None,
    threshold: float | None,
) -> None:
    """Raise UserError for what no search can be asked for."""
    if width < 1:
        raise UserError(f"the width of a beam must be at least 1, not {width}")
    if width > WIDEST:
        raise UserError(f"the width of a beam can be at most {WIDEST:,}, not {width:,}")
    if not 1 <= n_best <= width:
        raise UserError(f"n_best must be from 1 to the beam width, {width}; it is {n_best}")
    if not abs(length_penalty) <= PENALTY:
        raise UserError(f"length_penalty must be from {-PENALTY} to {PENALTY}, not {length_penalty}")
    if patience is not None and not patience > 0:
        raise UserError(f"patience must be greater than 0, not {patience}; None waits until no open hypothesis can win")
    if growth is not None and not growth >= 1:
        raise UserError(f"growth must be at least 1, not {growth}; None looks as far as the longest output allowed")
    if threshold is not None and not threshold >= 0:
        raise UserError(f"threshold must be at least 0, not {threshold}; None keeps what is unlikely open too")


class _Found:
    """The best hypotheses of every example, best first, those that did not end last.

    `to_beat` is the score that another one of the example must beat to count: -inf as long as any is welcome, inf once
    enough have ended.
    """

    def __init__(self, examples: int, n_best: int, length_penalty: float, enough: float):
        self.n_best, self.length_penalty, self.enough = n_best, float(length_penalty), enough
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(examples)]
        self.to_beat = [-math.inf] * examples
        self._count = [0] * examples

    def add(
        self, examples: Int[Tensor, "M"], tokens: Int[Tensor, "M L"], log_prob: Float[Tensor, "M"], ended: bool
    ) -> None:
        """Rank hypotheses, given without START and END, among the others of their examples."""
        scores = self.score(log_prob, tokens.shape[1] + ended)
        rows = zip(*(values.tolist() for values in (examples, tokens, log_prob, scores)), strict=True)
        for example, written, total, score in rows:
            rivals = self.hypotheses[example]
            insort(rivals, hypothesis(written, total, score, ended), key=_rank)
            del rivals[self.n_best :]
            self._count[example] += 1
            if self._count[example] >= self.enough:
                self.to_beat[example] = math.inf
            elif len(rivals) == self.n_best:
                self.to_beat[example] = rivals[-1].score

    def score(self, log_prob: Tensor, length: int | Tensor) -> Tensor:
        """What ranks hypotheses whose log-probability counts `length` tokens."""
        return log_prob / length**self.length_penalty


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    return not hypothesis.ended, -hypothesis.score


class _Search:
    """The hypotheses still open, up to W to an example, the best first, of the examples still searched.

    At first there is one for each example; later as many as the width, and a log-probability of -inf marks those that
    are not there: a tiny vocabulary leaves them out, or they are not worth going on with. The model has a row for each
    that is there, and what goes on keeps its row where it can, for a model's memory takes time to move. `rows` tells
    which row each hypothesis has.
    """

    def __init__(self, steps: Int[Tensor, "B"], width: int, found: _Found, growth: float, threshold: float):
        self.width, self.found, self.growth, self.threshold = width, found, min(growth, LONGEST), threshold
        self.examples = torch.arange(len(steps), device=steps.device)
        self.steps = steps
        self.written = torch.full_like(self.examples, START)[:, None, None]
        self.log_prob = torch.zeros(len(steps), 1, device=steps.device)
        self.rows = self.examples[:, None]

    @property
    def last_tokens(self) -> Int[Tensor, "R"]:
        """The last token of each of the model's rows."""
        there = self.log_prob != -math.inf
        rows, last = self.rows[there], self.written[:, :, -1][there]
        return torch.empty_like(last).index_copy_(0, rows, last)

    def advance(self, logits: Float[Tensor, "R N"]) -> Int[Tensor, "K"]:
        """Take one step; which of the model's rows each of its rows goes on from."""
        log_prob, parents, tokens = self._candidates(logits)
        ends = tokens == END
        self._set_aside(ends, log_prob, parents)
        # at least `width` of twice as many candidates go on: a beam ends in but one way
        going_on = ends.byte().argsort(dim=1, stable=True)[:, : self.width]
        self.log_prob = log_prob.masked_fill(ends, -math.inf).gather(1, going_on)
        parents = parents.gather(1, going_on)
        self.written = torch.cat([_pick(self.written, parents), tokens.gather(1, going_on)[:, :, None]], 2)
        self.rows = self.rows.gather(1, parents)
        self._part()
        there = self.log_prob != -math.inf
        came_from = self.rows[there]
        rows = assign_rows(came_from)
        self.rows = torch.zeros_like(self.rows).masked_scatter_(there, rows)
        return torch.empty_like(rows).index_copy_(0, rows, came_from)

    def _candidates(
        self, logits: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"], Int[Tensor, "B K"]]:
        """The best continuations of each example, best first: log-probability, beam continued, token added."""
        # PAD and START come before END and are never written; of each beam only END and `width` others can matter
        _, tokens = best(logits[:, END:], self.width + 1)
        continuations = tokens.shape[1]
        rows = self.rows.flatten()
        added, tokens = log_probs(logits, tokens + END)[rows], tokens[rows]
        totals = self.log_prob.flatten()[:, None] + added
        log_prob, chosen = best(totals.reshape(len(self.examples), -1), 2 * self.width)
        tokens = tokens.reshape(len(self.examples), -1).gather(1, chosen) + END
        return log_prob, chosen // continuations, tokens

    def _set_aside(
        self, ends: Bool[Tensor, "B K"], log_prob: Float[Tensor, "B K"], parents: Int[Tensor, "B K"]
    ) -> None:
        """Note the hypotheses that end, those among the best `width` only."""
        ended = ends & (log_prob != -math.inf)
        ended[:, self.width :] = False
        if ended.any():
            examples = self.examples[ended.nonzero()[:, 0]]
            self.found.add(examples, _pick(self.written, parents)[ended][:, 1:], log_prob[ended], ended=True)

    def _part(self) -> None:
        """Let the examples that are done leave, and of the others the hypotheses that are not worth going on with."""
        length = self.written.shape[2] - 1
        to_beat = self.log_prob.new_tensor([self.found.to_beat[example] for example in self.examples.tolist()])
        least = length + 1  # END counts
        greatest = self.steps.clamp_max(self.growth * least) if self.found.length_penalty > 0 else least
        hopeless = to_beat[:, None] >= self.found.score(self.log_prob.T, greatest).T
        done = (self.steps <= length) | hopeless[:, 0]
        if done.any():
            left = done[:, None] & (self.log_prob != -math.inf)
            examples = self.examples[left.nonzero()[:, 0]]
            self.found.add(examples, self.written[left][:, 1:], self.log_prob[left], ended=False)
        if self.found.enough == math.inf:  # else some count that cannot win
            self.log_prob = self.log_prob.masked_fill(hopeless, -math.inf)
        n_best = self.found.n_best
        if self.log_prob.shape[1] > n_best:
            behind = self.log_prob[:, n_best:] < self.log_prob[:, n_best - 1 : n_best] - self.threshold
            self.log_prob[:, n_best:].masked_fill_(behind, -math.inf)
        stay = ~done
        self.examples, self.steps, self.rows = self.examples[stay], self.steps[stay], self.rows[stay]
        self.written, self.log_prob = self.written[stay], self.log_prob[stay]


def _pick(written: Int[Tensor, "B W T"], beams: Int[Tensor, "B K"]) -> Int[Tensor, "B K T"]:
    return written.gather(1, beams[:, :, None].expand(-1, -1, written.shape[2]))
