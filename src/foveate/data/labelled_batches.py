"""Batches of whole texts, with their labels to learn from or without."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import PAD, START, Batch, Tokenizer, label_batch
from foveate.data.bert_tokenizer import BertTokenizer
from foveate.data.labelled import LabelledText
from foveate.data.rows import Numbers, Rows, line_names, padded, tokenised, within_budget
from foveate.data.shuffled_batches import ShuffledBatches
from foveate.errors import UserError


class LabelledBatches(ShuffledBatches):
    """Batches to train a classifier on; the text is tokenised once and kept in memory as numbers.

    inputs: `tokens` (B, S), beginning with START (or what the tokenizer has instead, and after the text) and filled up
    with PAD, and `lengths` (B,). labels (B, 1).

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
        self._text, self._max_length = text, max_length
        numbers = {label: number for number, label in enumerate(labels)}
        texts = ((example.text, (example.line, numbers[example.label])) for example in text)
        self._rows, known, _ = tokenised(texts, tokenizer, max_length, *surroundings(tokenizer))
        if not known:
            raise UserError(f"{text.name}: each text has more than {max_length:,} tokens; raise the longest text")
        super().__init__(self._rows.lengths, tokens, seed)
        self._lines, of_label = np.array(known).T
        self._labels = torch.from_numpy(of_label.copy())

    @property
    def report(self) -> str:
        """One line for the user: how many texts are over-long."""
        every = self._text.check().kept
        left_out = every - len(self._lines)
        return f"{self._text.name}: {left_out:,} of {every:,} texts left out for more than {self._max_length:,} tokens"

    def _batch(self, texts: Numbers) -> Batch:
        name = f"{line_names(self._lines[texts].tolist())} of {self._text.name}"
        return label_batch(_inputs(self._rows, texts), self._labels[torch.from_numpy(texts)][:, None], name)


def surroundings(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and after a text that is read as a whole."""
    return (tokenizer.begin, tokenizer.end) if isinstance(tokenizer, BertTokenizer) else ((START,), ())


def text_batches(
    texts: Sequence[Sequence[int]], tokens: int, begin: Sequence[int] = (START,), end: Sequence[int] = ()
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to decide about: the places of their texts in the list, and the inputs as of `LabelledBatches`.

    Longest first; rows times longest row stay within `tokens`, and a text longer than that comes alone.
    """
    rows = Rows([[*begin, *text, *end] for text in texts])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in within_budget(longest_first, rows.lengths, tokens):
        yield group.tolist(), _inputs(rows, group)


def _inputs(rows: Rows, group: Numbers) -> dict[str, Tensor]:
    tokens, lengths = padded(rows.take(group), PAD)
    return {"tokens": tokens, "lengths": lengths}
