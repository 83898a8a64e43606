"""Beam search."""

import math
from bisect import insort

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.accelerator import is_accelerator
from foveate.attention import assign_rows
from foveate.contracts import Generator, Hypothesis
from foveate.decoding.first_step import SourceState, first_step
from foveate.decoding.ranking import LONGEST, best, hypothesis, limits, log_probs, log_softmax, writable
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError
from foveate.special_tokens import SpecialTokens

WIDEST = 1_000
"""The greatest width: wider beams find nothing better and need too much memory."""

PENALTY = 4
"""Bound of length penalties: the longest output to this power is finite in single precision."""


@torch.no_grad()
def beam(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    max_length: int | Int[Tensor, "B"],
    width: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    patience: float | None = None,
    growth: float | None = None,
    threshold: float | None = None,
    early_stopping: str | None = None,
    rules: TokenRules | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each example, best first.

    At each step, the `width` best continuations of an example's open hypotheses stay open. With a `threshold`, those
    whose log-probability is lower than that of the `n_best`-th one by more than the threshold are dropped (absolute
    threshold pruning, Freitag and Al-Onaizan 2017, https://arxiv.org/abs/1702.01806). A hypothesis that ends among the
    `width` best is ranked by log-probability / length ** `length_penalty`; both include the end. With a penalty of 1,
    this is the mean log-probability of a token. A smaller penalty favours shorter outputs, a larger one longer ones.

    The search of an example ends at the first of these events:
    - No open hypothesis can overtake the `n_best` best ended ones; those that cannot are dropped earlier. Further
      tokens never raise a log-probability, so a bound of the score is the current log-probability at the greatest
      allowed length (with a negative penalty: at the least). `growth` limits that length to a multiple of the current
      one. It may miss an output that becomes likely only later.
    - `patience * width` hypotheses have ended. Most toolkits have this rule with a patience of 1 (Kasai et al. 2022,
      https://arxiv.org/abs/2204.05424). It counts all hypotheses that end. None disables it.
    - `max_length` steps are done, the end included (one number, or one for each example). If fewer than `n_best`
      hypotheses have ended, the best open ones follow with `ended=False`.

    With `early_stopping`, transformers' rules replace these: the `width` best ended hypotheses are kept, and those that
    are open at `max_length` are ranked among them. Nothing is dropped earlier. A search ends when `width` hypotheses
    have ended ("yes"), or when the best open one could not be among them at its current length ("no"; with "never" at
    `max_length` if the penalty is positive). `rules` change the log-probabilities of each step.

    A width and a patience of 1 give greedy search. Equal scores are ordered by beam, then by token id. The model should
    be in evaluation mode. Raises UserError for invalid settings.
    """
    check_beam(width, n_best, length_penalty, patience, growth, threshold)
    steps = limits(inputs, max_length).cpu()
    enough = math.inf if patience is None else max(n_best, patience * width)
    found = _Found(len(steps), n_best, length_penalty, enough)
    if early_stopping is not None:
        found = _Found(len(steps), width, length_penalty, width if early_stopping == "yes" else math.inf, mixed=True)
    growth, threshold = (math.inf if bound is None else bound for bound in (growth, threshold))
    search = _Search(steps, special, width, found, growth, threshold, early_stopping, rules)
    logits, state = first_step(model, inputs, special)
    takes_rows_of_cpu = isinstance(state, SourceState)
    while len(rows := search.advance(logits)):
        state.reorder(rows if takes_rows_of_cpu else rows.to(logits.device))
        logits = model.step(search.last_tokens.to(logits.device), state)
    return [rivals[:n_best] for rivals in found.hypotheses]


def check_width(width: int) -> None:
    """Raise UserError for a width that no beam has."""
    if width < 1:
        raise UserError(f"the width of a beam must be at least 1, not {width}")
    if width > WIDEST:
        raise UserError(f"the width of a beam can be at most {WIDEST:,}, not {width:,}")


def check_beam(
    width: int,
    n_best: int,
    length_penalty: float,
    patience: float | None,
    growth: float | None,
    threshold: float | None,
) -> None:
    """Raise UserError for invalid settings of a search."""
    check_width(width)
    if not 1 <= n_best <= width:
        raise UserError(f"n_best must be from 1 to the beam width, {width}; it is {n_best}")
    if not abs(length_penalty) <= PENALTY:
        raise UserError(f"length_penalty must be from {-PENALTY} to {PENALTY}, not {length_penalty}")
    if patience is not None and not patience > 0:
        raise UserError(f"patience must be greater than 0, not {patience}; None disables this rule")
    if growth is not None and not growth >= 1:
        raise UserError(f"growth must be at least 1, not {growth}; None bounds scores by the greatest allowed length")
    if threshold is not None and not threshold >= 0:
        raise UserError(f"threshold must be at least 0, not {threshold}; None disables pruning")


class _Found:
    """The best hypotheses of every example, best first, followed by those that did not end.

    `to_beat` is the score that a further hypothesis must exceed: -inf while there are fewer than `n_best`, inf once
    enough have ended.
    """

    def __init__(self, examples: int, n_best: int, length_penalty: float, enough: float, mixed: bool = False):
        """`mixed` hypotheses are ranked by their scores alone, whether they ended or not."""
        self.rank = _rank_mixed if mixed else _rank
        self.n_best, self.length_penalty, self.enough = n_best, float(length_penalty), enough
        self.hypotheses: list[list[Hypothesis]] = [[] for _ in range(examples)]
        self.to_beat = [-math.inf] * examples
        self._count = [0] * examples

    def add(
        self, examples: Int[Tensor, "M"], tokens: Int[Tensor, "M L"], log_prob: Float[Tensor, "M"], ended: bool
    ) -> None:
        """Add hypotheses, without start and end, to the ranking of their examples."""
        scores = self.score(log_prob, tokens.shape[1] + ended)
        rows = zip(*(values.tolist() for values in (examples, tokens, log_prob, scores)), strict=True)
        for example, written, total, score in rows:
            rivals = self.hypotheses[example]
            insort(rivals, hypothesis(written, total, score, ended), key=self.rank)
            del rivals[self.n_best :]
            self._count[example] += 1
            if self._count[example] >= self.enough:
                self.to_beat[example] = math.inf
            elif len(rivals) == self.n_best:
                self.to_beat[example] = rivals[-1].score

    def score(self, log_prob: Tensor, length: int | Tensor) -> Tensor:
        """The scores of hypotheses of `length` tokens."""
        return log_prob / length**self.length_penalty


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    return not hypothesis.ended, -hypothesis.score


def _rank_mixed(hypothesis: Hypothesis) -> tuple[bool, float]:
    return False, -hypothesis.score


class _Search:
    """The open hypotheses of the remaining examples, up to W for each, best first.

    They are kept on the CPU, which reads the best continuations once a step; the logits and the model's state may be on
    another device.

    The search starts with one for each example. Later there are as many as the width; a log-probability of -inf marks
    empty ones, which were dropped or do not exist in a tiny vocabulary. Each hypothesis has a row of the model, `rows`,
    and keeps it if possible, because moving the memory of a model takes time.
    """

    def __init__(
        self,
        steps: Int[Tensor, "B"],
        special: SpecialTokens,
        width: int,
        found: _Found,
        growth: float,
        threshold: float,
        early_stopping: str | None,
        rules: TokenRules | None,
    ):
        self.early_stopping, self.rules = early_stopping, rules
        self.special = special
        self.width, self.found, self.growth, self.threshold = width, found, min(growth, LONGEST), threshold
        self.examples = torch.arange(len(steps), device=steps.device)
        self.steps = steps
        self.written = torch.full_like(self.examples, special.start)[:, None, None]
        self.log_prob = torch.zeros(len(steps), 1, device=steps.device)
        self.rows = self.examples[:, None]
        self.among_best = torch.ones_like(self.rows, dtype=torch.bool)
        """The open hypotheses that were among the `width` best candidates, with those that ended."""

    @property
    def last_tokens(self) -> Int[Tensor, "R"]:
        """The last token of each row of the model."""
        there = self.log_prob != -math.inf
        rows, last = self.rows[there], self.written[:, :, -1][there]
        return torch.empty_like(last).index_copy_(0, rows, last)

    def advance(self, logits: Float[Tensor, "R N"]) -> Int[Tensor, "K"]:
        """Take one step. Returns the old row of each new row of the model."""
        log_prob, parents, tokens = self._candidates(logits)
        ends = tokens == self.special.end
        self._store_ended(ends, log_prob, parents)
        # At least `width` of twice as many candidates do not end, since each beam has one end.
        continuing = ends.byte().argsort(dim=1, stable=True)[:, : self.width]
        self.among_best = continuing < self.width
        self.log_prob = log_prob.masked_fill(ends, -math.inf).gather(1, continuing)
        parents = parents.gather(1, continuing)
        self.written = torch.cat([_pick(self.written, parents), tokens.gather(1, continuing)[:, :, None]], 2)
        self.rows = self.rows.gather(1, parents)
        self._prune()
        there = self.log_prob != -math.inf
        old_rows = self.rows[there]
        rows = assign_rows(old_rows)
        self.rows = torch.zeros_like(self.rows).masked_scatter_(there, rows)
        return torch.empty_like(rows).index_copy_(0, rows, old_rows)

    def _candidates(
        self, logits: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"], Int[Tensor, "B K"]]:
        """The best continuations of each example, best first: log-probability, beam continued, token added."""
        # Only the end and `width` other tokens of a beam matter.
        device = logits.device
        scores = logits if self.rules is None else self._ruled(logits)
        allowed, first = writable(scores, self.special)
        values, tokens = best(allowed, self.width + 1)
        continuations = tokens.shape[1]
        rows = self.rows.flatten().to(device)
        added = log_probs(logits, tokens + first) if self.rules is None else scores.gather(1, tokens + first)
        added = added.masked_fill(values == -math.inf, -math.inf)  # of a small vocabulary all tokens are among the best
        added, tokens = added[rows], tokens[rows]
        totals = self.log_prob.flatten().to(device)[:, None] + added
        log_prob, chosen = best(totals.reshape(len(self.examples), -1), 2 * self.width)
        tokens = tokens.reshape(len(self.examples), -1).gather(1, chosen) + first
        return _read(log_prob, chosen // continuations, tokens)

    def _ruled(self, logits: Float[Tensor, "R N"]) -> Float[Tensor, "R N"]:
        """The log-probabilities of all tokens after each row of the model, as the rules change them."""
        there, length = self.log_prob != -math.inf, self.written.shape[2]
        rows, written = self.rows[there], self.written[there]
        left = (self.steps - length + 1)[:, None].expand_as(there)[there]
        in_order = torch.empty_like(written).index_copy_(0, rows, written)
        assert self.rules is not None
        left = torch.empty_like(left).index_copy_(0, rows, left)
        return self.rules(log_softmax(logits), in_order.to(logits.device), left.to(logits.device))

    def _store_ended(
        self, ends: Bool[Tensor, "B K"], log_prob: Float[Tensor, "B K"], parents: Int[Tensor, "B K"]
    ) -> None:
        """Store the hypotheses that end among the best `width`."""
        ended = ends & (log_prob != -math.inf)
        ended[:, self.width :] = False
        if ended.any():
            examples = self.examples[ended.nonzero()[:, 0]]
            self.found.add(examples, _pick(self.written, parents)[ended][:, 1:], log_prob[ended], ended=True)

    def _prune(self) -> None:
        """Remove finished examples, and drop hypotheses that cannot win."""
        length = self.written.shape[2] - 1
        if self.early_stopping is not None:
            self._stop_early(length)
            return
        to_beat = self.log_prob.new_tensor([self.found.to_beat[example] for example in self.examples.tolist()])
        least = length + 1  # with the end
        greatest = self.steps.clamp_max(self.growth * least) if self.found.length_penalty > 0 else least
        cannot_win = to_beat[:, None] >= self.found.score(self.log_prob.T, greatest).T
        done = (self.steps <= length) | cannot_win[:, 0]
        if done.any():
            left = done[:, None] & (self.log_prob != -math.inf)
            examples = self.examples[left.nonzero()[:, 0]]
            self.found.add(examples, self.written[left][:, 1:], self.log_prob[left], ended=False)
        if self.found.enough == math.inf:  # the patience rule counts all that end
            self.log_prob = self.log_prob.masked_fill(cannot_win, -math.inf)
        n_best = self.found.n_best
        if self.log_prob.shape[1] > n_best:
            behind = self.log_prob[:, n_best:] < self.log_prob[:, n_best - 1 : n_best] - self.threshold
            self.log_prob[:, n_best:].masked_fill_(behind, -math.inf)
        self._keep(~done)

    def _stop_early(self, length: int) -> None:
        """Remove the examples that are finished by the rules of transformers."""
        to_beat = self.log_prob.new_tensor([self.found.to_beat[example] for example in self.examples.tolist()])
        farthest = self.early_stopping == "never" and self.found.length_penalty > 0
        possible = self.found.score(self.log_prob[:, 0], self.steps if farthest else length)
        last = self.steps <= length
        left = (last & (to_beat != math.inf))[:, None] & self.among_best & (self.log_prob != -math.inf)
        if left.any():
            examples = self.examples[left.nonzero()[:, 0]]
            self.found.add(examples, self.written[left][:, 1:], self.log_prob[left], ended=False)
        self._keep(~(last | (to_beat >= possible)))

    def _keep(self, stay: Bool[Tensor, "B"]) -> None:
        self.examples, self.steps, self.rows = self.examples[stay], self.steps[stay], self.rows[stay]
        self.written, self.log_prob = self.written[stay], self.log_prob[stay]


def _read(
    log_prob: Float[Tensor, "B K"], parents: Int[Tensor, "B K"], tokens: Int[Tensor, "B K"]
) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"], Int[Tensor, "B K"]]:
    """The same on the CPU, which waits for the device once."""
    if not is_accelerator(log_prob.device):
        return log_prob, parents, tokens
    bits, parents, tokens = torch.stack([log_prob.view(torch.int32), parents.int(), tokens.int()]).cpu()
    return bits.view(log_prob.dtype), parents.long(), tokens.long()


def _pick(written: Int[Tensor, "B W T"], beams: Int[Tensor, "B K"]) -> Int[Tensor, "B K T"]:
    return written.gather(1, beams[:, :, None].expand(-1, -1, written.shape[2]))
