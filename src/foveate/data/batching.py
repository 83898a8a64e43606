"""Batches of sentences of about one length, within a budget of tokens, so that little is spent on padding."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from foveate.contracts import END, IGNORE, PAD, START, Batch, Tokenizer, UserError
from foveate.data.text import Pair, ParallelText

Numbers = np.ndarray


class Rows:
    """Token sequences of any lengths, end to end in one array: a tenth of the memory of Python lists."""

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        self._ends = np.cumsum(self.lengths)
        self._tokens = np.fromiter(chain.from_iterable(sequences), np.int32, self.lengths.sum())

    def take(self, rows: Numbers) -> list[Numbers]:
        """Each of the rows, as a view of the one array."""
        ends = self._ends[rows]
        return [self._tokens[begin:end] for begin, end in zip(ends - self.lengths[rows], ends, strict=True)]


@dataclass
class Pool:
    """Tokenised pairs among which sentences of one length are sought: source and END; START, target and END."""

    lines: Numbers
    source: Rows
    target: Rows

    @property
    def lengths(self) -> Numbers:
        """Places that each pair takes in a batch, on its longer side."""
        return np.maximum(self.source.lengths, self.target.lengths - 1)


class PairBatches:
    """Batches to train a translator on.

    The text is read in pools. The pairs of a pool are shuffled, sorted by length, cut into batches whose rows times
    longest row (on either side) stay within the budget, and the batches come in random order. A text of one pool is
    tokenised once and kept; a longer one streams, pool after pool, at each epoch. The order depends on the seed and the
    number of the epoch alone.

    Pairs with more than `max_length` tokens on a side (START and END not counted) are left out, counted, and told by
    `report`. Raises UserError when none is left.
    """

    def __init__(
        self,
        text: ParallelText,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        tokens: int,
        max_length: int,
        seed: int,
        pool: int = 100_000,
    ) -> None:
        """`tokens` is the budget: the most places, padding included, of one side of a batch."""
        if tokens <= max_length:
            raise UserError(
                f"a batch of {tokens:,} tokens cannot hold one sentence of {max_length:,} and its end: "
                f"raise the tokens in a batch or lower the longest sentence"
            )
        self.text = text
        self.tokens = tokens
        self.max_length = max_length
        self._tokenizers = source_tokenizer, target_tokenizer
        self._seed = seed
        self._pool_size = pool
        self._read = self._too_long = 0
        first = next(self._stream())
        self._only_pool = first if self._read < pool else None

    @property
    def report(self) -> str:
        """One line for the user: how many of the pairs read so far (all of them, after an epoch) are over-long."""
        counted = f"{self.text.name}: {self._too_long:,} of {self._read:,} pairs"
        return f"{counted} left out for more than {self.max_length:,} tokens on a side"

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, without the first `skip` (which are counted off and never built).

        inputs: `source` (B, S), ending with END, and `target` (B, T), beginning with START, both filled up with PAD;
        `source_lengths` and `target_lengths` (B,). labels (B, T): the target one place on, with END, then IGNORE.
        """
        for pool, rows in islice(self._plan(number), skip, None):
            yield self._batch(pool, rows)

    def padding(self, number: int = 0) -> float:
        """The share of places that are padding, over both sides of an epoch."""
        places = padded = 0
        for pool, rows in self._plan(number):
            for side in (pool.source.lengths[rows], pool.target.lengths[rows] - 1):
                places += len(rows) * int(side.max())
                padded += len(rows) * int(side.max()) - int(side.sum())
        return padded / places

    def _plan(self, number: int) -> Iterator[tuple[Pool, Numbers]]:
        pools = self._stream() if self._only_pool is None else [self._only_pool]
        for index, pool in enumerate(pools):
            generator = np.random.default_rng((self._seed, number, index))
            groups = _within_budget(_by_length(pool, generator), pool.lengths, self.tokens)
            for place in generator.permutation(len(groups)):
                yield pool, groups[place]

    def _stream(self) -> Iterator[Pool]:
        pairs, read, too_long = self.text.pairs(), 0, 0
        while chunk := list(islice(pairs, self._pool_size)):
            pool = self._tokenise(chunk)
            read += len(chunk)
            too_long += len(chunk) - len(pool.lines)
            if read > self._read:
                self._read, self._too_long = read, too_long
            if len(pool.lines):
                yield pool
        if read == too_long:
            self.text.check()  # knows better what is wrong when there was nothing to read
            raise UserError(
                f"{self.text.name}: each of the {read:,} pairs has more than {self.max_length:,} tokens on a side; "
                f"raise the longest sentence"
            )

    def _tokenise(self, pairs: Sequence[Pair]) -> Pool:
        source_tokenizer, target_tokenizer = self._tokenizers
        sources = source_tokenizer.encode([pair.source for pair in pairs])
        targets = target_tokenizer.encode([pair.target for pair in pairs])
        fitting = [
            (pair.line, [*source, END], [START, *target, END])
            for pair, source, target in zip(pairs, sources, targets, strict=True)
            if len(source) <= self.max_length and len(target) <= self.max_length
        ]
        lines = np.array([line for line, _, _ in fitting], np.int64)
        return Pool(lines, Rows([source for _, source, _ in fitting]), Rows([target for _, _, target in fitting]))

    def _batch(self, pool: Pool, rows: Numbers) -> Batch:
        source, source_lengths = _padded(pool.source.take(rows), PAD)
        targets = pool.target.take(rows)
        target, target_lengths = _padded([target[:-1] for target in targets], PAD)
        labels, _ = _padded([target[1:] for target in targets], IGNORE)
        inputs = {
            "source": source,
            "source_lengths": source_lengths,
            "target": target,
            "target_lengths": target_lengths,
        }
        return Batch(inputs, labels, f"{_line_names(pool.lines[rows].tolist())} of {self.text.name}")


def source_batches(sentences: Sequence[Sequence[int]], tokens: int) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to translate: the places of their sentences in the list, and `source` (B, S) with `source_lengths` (B,).

    Longest first, so that what does not fit into memory shows at once; rows times longest row stay within `tokens`,
    and a sentence longer than that comes alone.
    """
    rows = Rows([[*sentence, END] for sentence in sentences])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in _within_budget(longest_first, rows.lengths, tokens):
        source, lengths = _padded(rows.take(group), PAD)
        yield group.tolist(), {"source": source, "source_lengths": lengths}


def _by_length(pool: Pool, generator: np.random.Generator) -> Numbers:
    """Rows by the length of the longer side, then by how much longer it is; in random order where both agree.

    The second key rises and falls in turn, so that a batch that reaches from one length to the next finds the other
    side equally long on both sides of the step.
    """
    shuffled = generator.permutation(len(pool.lines))
    longer = pool.lengths[shuffled]
    excess = (pool.source.lengths - pool.target.lengths)[shuffled]
    return shuffled[np.lexsort((np.where(longer % 2 == 0, excess, -excess), longer))]


def _within_budget(order: Numbers, lengths: Numbers, budget: int) -> list[Numbers]:
    """The ordered rows, cut where one row more would make rows times longest row exceed the budget."""
    cuts, begin, longest = [], 0, 0
    for place, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        if (place + 1 - begin) * longest > budget and place > begin:
            cuts.append(place)
            begin, longest = place, length
    return np.split(order, cuts) if len(order) else []


def _padded(rows: Sequence[Numbers], fill: int) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B"]]:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    table = np.full((len(rows), lengths.max()), fill, np.int64)
    table[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(rows)
    return torch.from_numpy(table), torch.from_numpy(lengths)


def _line_names(lines: Iterable[int], shown: int = 3) -> str:
    """Like "line 17", "lines 17 and 243", "lines 17, 243, 5 and 61 more"."""
    *names, last = [str(line) for line in lines]
    if not names:
        return f"line {last}"
    if len(names) > shown:
        names, last = names[:shown], f"{len(names) + 1 - shown} more"
    return f"lines {', '.join(names)} and {last}"
