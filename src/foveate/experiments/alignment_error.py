"""The alignment error rate of attention, on messages of names, whose alignment is known.

A message is a list of names, and its translation the list of their translations in the same order. So the tokens of the
k-th target name are aligned with those of the k-th source name (with the comma after it), and with no others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.contracts import Tokenizer
from foveate.data.text.parallel_corpus import ParallelText
from foveate.sight import look
from foveate.special_tokens import LEARNED

BATCH = 50
"""Messages in a batch."""


@dataclass(frozen=True)
class TokenizedMessage:
    """The tokens of a message and of its translation, and the index of the name of each token."""

    source: list[int]
    target: list[int]
    source_names: list[int]
    target_names: list[int]


@dataclass(frozen=True)
class AlignmentQuality:
    """The agreement of the weights of target tokens with the known alignment; shares from 0 to 1."""

    error_rate: float
    """AER (Och and Ney 2003) of one link for each target token, to the source token with the greatest weight: with the
    pairs P of tokens of one name and no sure links, `1 - |A ∩ P| / |A|`. A token without weights counts as an error."""
    own_name: float
    """The mean weight of target tokens on the tokens of their own name."""
    entropy: float
    """The mean entropy of the weights of target tokens, in nats."""


def messages(text: ParallelText, source: Tokenizer, target: Tokenizer) -> list[TokenizedMessage]:
    """The messages whose names can be distinguished."""
    known = []
    for (left, right), emoji in zip(text, text.notes, strict=True):
        if is_alignable(left, right, emoji):
            read, read_names = _tokens_of_names(left.split(", "), source)
            written, written_names = _tokens_of_names(right.split(", "), target)
            known.append(TokenizedMessage(read, written, read_names, written_names))
    return known


def is_alignable(left: str, right: str, emoji: str) -> bool:
    """Returns whether a message has several names, and none contains a comma."""
    return 1 < len(emoji.split()) == len(left.split(", ")) == len(right.split(", "))


def _tokens_of_names(names: Sequence[str], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens of a list of names, and the index of the name of each. No token spans two names."""
    texts = [f"{name}," for name in names[:-1]] + [names[-1]]
    tokens = tokenizer.encode(texts)
    numbers = [number for number, sentence in enumerate(tokens) for _ in sentence]
    return [token for sentence in tokens for token in sentence], numbers


def alignment_quality(
    model: nn.Module, known: Sequence[TokenizedMessage], site: str = "decoder"
) -> AlignmentQuality | None:
    """The alignment quality of a model at a site, with forced translations; None if the model does not attend there.

    A row of the map is the step that predicts a token. Ends of sentences belong to no name.
    """
    rows, right, own, entropy = 0, 0.0, 0.0, 0.0
    for weights, belongs, entropies in _maps(model, known, site):
        best = torch.zeros_like(belongs).scatter(
            -1, weights.argmax(-1, keepdim=True), weights.amax(-1, keepdim=True) > 0
        )
        written = belongs.any(-1)
        rows += int(written.sum())
        right += int((best & belongs).sum())
        own += float((weights * belongs).sum())
        entropy += float((entropies * written).sum())
    return AlignmentQuality(1 - right / rows, own / rows, entropy / rows) if rows else None


def diagonal(known: Sequence[TokenizedMessage]) -> float:
    """The error rate of a diagonal alignment, which does not depend on the text: a baseline."""
    right = rows = 0
    for message in known:
        steepness = (len(message.source) - 1) / max(1, len(message.target) - 1)
        looks = [message.source_names[round(position * steepness)] for position in range(len(message.target))]
        right += sum(name == own for name, own in zip(looks, message.target_names, strict=True))
        rows += len(looks)
    return 1 - right / rows


def _maps(
    model: nn.Module, known: Sequence[TokenizedMessage], site: str
) -> Iterator[tuple[Float[Tensor, "B T S"], Bool[Tensor, "B T S"], Float[Tensor, "B T"]]]:
    """Weights, whether query and key belong to one name, and entropies, batch by batch."""
    for start in range(0, len(known), BATCH):
        some = known[start : start + BATCH]
        inputs = {
            "source": _table([[*message.source, LEARNED.end] for message in some], LEARNED.pad),
            "source_lengths": torch.tensor([len(message.source) + 1 for message in some]),
            "target": _table([[LEARNED.start, *message.target] for message in some], LEARNED.pad),
        }
        with torch.inference_mode(), look(model, sites=[site]) as sight:
            model(**inputs)
        if site not in sight.sites:
            return
        of_queries = _table([[*message.target_names, -1] for message in some], -1)
        of_keys = _table([[*message.source_names, -1] for message in some], -1)
        belongs = (of_queries[:, :, None] == of_keys[:, None]) & (of_queries >= 0)[:, :, None]
        attended = sight[site]
        yield attended.weights()[:, 0], belongs, attended.entropy()[:, 0]


def _table(rows: Sequence[Sequence[int]], fill: int) -> Int[Tensor, "B T"]:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
