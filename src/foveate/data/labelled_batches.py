"""Batches of whole texts, with their labels to learn from or without."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import PAD, START, Batch, Tokenizer, UserError
from foveate.data.labelled import Labelled, LabelledText
from foveate.data.rows import Numbers, Rows, line_names, padded, within_budget


class LabelledBatches:
    """Batches to train a classifier on; the text is tokenised once and kept in memory as numbers.

    Texts are shuffled, sorted by length and cut into batches whose rows times longest row stay within the budget; the
    batches come in random order. It depends on the seed and the number of the epoch alone.

    Texts of more than `max_length` tokens (START not counted) are left out, counted, and told by `report`. Raises
    UserError when none is left.
    """

    def __init__(
        self,
        text: LabelledText,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        tokens: int,
        max_length: int,
        seed: int,
    ) -> None:
        """`labels` are the classes in their order; `tokens` is the budget: the most places, padding included."""
        if tokens <= max_length:
            raise UserError(
                f"a batch of {tokens:,} tokens cannot hold one text of {max_length:,} and its start: "
                f"raise the tokens in a batch or lower the longest text"
            )
        self._text, self._tokens, self._max_length, self._seed = text, tokens, max_length, seed
        fitting = list(_fitting(text, tokenizer, max_length))
        if not fitting:
            raise UserError(f"{text.name}: each text has more than {max_length:,} tokens; raise the longest text")
        numbers = {label: number for number, label in enumerate(labels)}
        self._rows = Rows([[START, *tokens] for _, tokens in fitting])
        self._labels = torch.tensor([numbers[example.label] for example, _ in fitting])
        self._lines = np.array([example.line for example, _ in fitting])

    @property
    def report(self) -> str:
        """One line for the user: how many texts are over-long."""
        every = self._text.check().kept
        left_out = every - len(self._lines)
        return f"{self._text.name}: {left_out:,} of {every:,} texts left out for more than {self._max_length:,} tokens"

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, without the first `skip`.

        inputs: `tokens` (B, S), beginning with START and filled up with PAD, and `lengths` (B,). labels (B, 1).
        """
        generator = np.random.default_rng((self._seed, number))
        lengths = self._rows.lengths
        shuffled = generator.permutation(len(lengths))
        groups = within_budget(shuffled[np.argsort(lengths[shuffled], kind="stable")], lengths, self._tokens)
        for place in islice(generator.permutation(len(groups)), skip, None):
            rows = groups[place]
            name = f"{line_names(self._lines[rows].tolist())} of {self._text.name}"
            yield Batch(_inputs(self._rows, rows), self._labels[torch.from_numpy(rows)][:, None], name)


def text_batches(texts: Sequence[Sequence[int]], tokens: int) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to decide about: the places of their texts in the list, and the inputs as of `LabelledBatches`.

    Longest first; rows times longest row stay within `tokens`, and a text longer than that comes alone.
    """
    rows = Rows([[START, *text] for text in texts])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in within_budget(longest_first, rows.lengths, tokens):
        yield group.tolist(), _inputs(rows, group)


def _inputs(rows: Rows, group: Numbers) -> dict[str, Tensor]:
    tokens, lengths = padded(rows.take(group), PAD)
    return {"tokens": tokens, "lengths": lengths}


def _fitting(text: LabelledText, tokenizer: Tokenizer, most: int) -> Iterator[tuple[Labelled, list[int]]]:
    """The examples that are short enough, with their tokens."""
    examples = list(text)
    tokens = tokenizer.encode([example.text for example in examples])
    return (pair for pair in zip(examples, tokens, strict=True) if len(pair[1]) <= most)
