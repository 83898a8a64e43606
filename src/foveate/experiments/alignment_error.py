"""How well attention finds what belongs together, on messages of names: there it is known.

A message is a list of names, and its translation the list of their translations in the same order. So the tokens of the
k-th target name belong to those of the k-th source name (with the comma behind it), and to no others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.contracts import END, PAD, START, Tokenizer
from foveate.data import ParallelText
from foveate.sight import look

BATCH = 50
"""Messages that are looked at together."""


@dataclass(frozen=True)
class Message:
    """The tokens of a message and of its translation, and the number of the name that each belongs to."""

    source: list[int]
    target: list[int]
    source_names: list[int]
    target_names: list[int]


@dataclass(frozen=True)
class AlignmentQuality:
    """How well the weights of target tokens agree with what is known; shares from 0 to 1."""

    error_rate: float
    """AER (Och and Ney 2003) of one link for each target token, to the source token that it looks at most: with P the
    pairs of tokens of one name and no sure links, `1 - |A ∩ P| / |A|`. A token that looks nowhere is an error too."""
    own_name: float
    """The weight on the tokens of the own name, on average over all target tokens."""
    entropy: float
    """Of the weights of a target token, in nats, likewise."""


def messages(text: ParallelText, source: Tokenizer, target: Tokenizer) -> list[Message]:
    """Those messages whose names can be told apart."""
    found = []
    for (left, right), emoji in zip(text, text.notes, strict=True):
        if tellable(left, right, emoji):
            read, read_names = _numbered(left.split(", "), source)
            written, written_names = _numbered(right.split(", "), target)
            found.append(Message(read, written, read_names, written_names))
    return found


def tellable(left: str, right: str, emoji: str) -> bool:
    """Whether a message has several names, and none that has a comma of its own."""
    return 1 < len(emoji.split()) == len(left.split(", ")) == len(right.split(", "))


def _numbered(names: Sequence[str], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens of a list of names, and which name each belongs to. No token reaches across the space between two."""
    texts = [f"{name}," for name in names[:-1]] + [names[-1]]
    tokens = tokenizer.encode(texts)
    numbers = [number for number, each in enumerate(tokens) for _ in each]
    return [token for each in tokens for token in each], numbers


def alignment_quality(model: nn.Module, known: Sequence[Message], site: str = "decoder") -> AlignmentQuality | None:
    """Of a model that reads messages with their translations; None if it does not attend at the site.

    A row of its map is the step that writes a token. The ends of sentences count only as places where none should look.
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


def diagonal(known: Sequence[Message]) -> float:
    """The error rate of who looks straight along the diagonal and at nothing of the source: what is easily reached."""
    right = rows = 0
    for message in known:
        steepness = (len(message.source) - 1) / max(1, len(message.target) - 1)
        looks = [message.source_names[round(place * steepness)] for place in range(len(message.target))]
        right += sum(name == own for name, own in zip(looks, message.target_names, strict=True))
        rows += len(looks)
    return 1 - right / rows


def _maps(
    model: nn.Module, known: Sequence[Message], site: str
) -> Iterator[tuple[Float[Tensor, "B T S"], Bool[Tensor, "B T S"], Float[Tensor, "B T"]]]:
    """Weights, whether query and key belong to one name, and entropies, batch by batch."""
    for start in range(0, len(known), BATCH):
        some = known[start : start + BATCH]
        inputs = {
            "source": _table([[*one.source, END] for one in some], PAD),
            "source_lengths": torch.tensor([len(one.source) + 1 for one in some]),
            "target": _table([[START, *one.target] for one in some], PAD),
        }
        with torch.inference_mode(), look(model, sites=[site]) as sight:
            model(**inputs)
        if site not in sight.sites:
            return
        of_queries = _table([[*one.target_names, -1] for one in some], -1)
        of_keys = _table([[*one.source_names, -1] for one in some], -1)
        belongs = (of_queries[:, :, None] == of_keys[:, None]) & (of_queries >= 0)[:, :, None]
        seen = sight[site]
        yield seen.weights()[:, 0], belongs, seen.entropy()[:, 0]


def _table(rows: Sequence[Sequence[int]], fill: int) -> Int[Tensor, "B T"]:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
