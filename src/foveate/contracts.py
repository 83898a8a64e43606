"""What the parts of foveate agree on, so that each works with all others and knows none of them.

The shape legend, used in every annotation of the library:

    B  batch            H  heads           C  model width
    T  queries, target  D  key width       N  vocabulary
    S  keys, source     V  value width
"""

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints, runtime_checkable

import dacite
import torch
import tyro
from jaxtyping import Float, Int
from torch import Tensor

PAD, START, END, UNKNOWN = 0, 1, 2, 3
"""Token ids that every tokenizer of foveate reserves, in this order."""

IGNORE = -100
"""The label of a place that counts in no loss and no mean: `torch.nn.functional.cross_entropy`'s own default."""


FromData = Annotated[int, tyro.conf.Suppress]
"""The type of a model's field that the data decides, such as a vocabulary's size: not for a user to set by a flag."""

Config = TypeVar("Config")


MOST = 2**53
"""No count that a user gives is larger: more would overflow what a computer counts with."""

_OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "size calculation overflowed")
"""How torch says it, on a CPU, on a GPU, and where the size is no number any more."""


class UserError(ValueError):
    """A mistake in what the user gave, told in one clear line; the command line prints it and exits with status 2."""


QUOTED = 60
"""So much of a text is shown where it is wrong."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextError(UserError):
    """A mistake in one of several texts."""

    def __init__(self, place: int, message: str) -> None:
        """`place` is the number of the text, from 0."""
        super().__init__(message)
        self.place = place


def quoted(text: str) -> str:
    """A text as an error shows it: no longer than reads well."""
    return f"'{text}'" if len(text) <= QUOTED else f"'{text[:QUOTED]}…'"


def printable(text: str) -> str:
    """A text in which no control character, such as one that a terminal obeys, is more than its escape."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a `name` that is none of the `known` ones, with the nearest of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    return UserError(f"unknown {kind} '{name}'; {hint}")


def at_least(least: int, name: str, value: float) -> None:
    """Raise UserError for a `value` below `least`, one that is no number, and a count that none can be."""
    if not value >= least:
        raise UserError(f"{name} is {value}, but must be at least {least}")
    if isinstance(value, int) and value > MOST:
        raise UserError(f"{name} is {value:,}, but can be at most {MOST:,}")


def out_of_memory(error: Exception) -> bool:
    """Whether this is what an error means: torch raises the same kind for most that goes wrong."""
    return isinstance(error, MemoryError) or any(reason in str(error) for reason in _OUT_OF_MEMORY)


def strict_json(value: Any) -> str:
    """A tree of plain values in one line of JSON, which has no infinity and no NaN: null stands for them."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_dict(kind: type[Config], values: Any, where: str) -> Config:
    """The dataclass `kind` (a tree of them) filled from a table of plain values; `where` names their origin in errors.

    Raises UserError on a field that does not exist, is missing or has another type, and on what is no table.
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: {values!r} stands where a table of fields must be")
    try:
        return dacite.from_dict(kind, _tuples(values), dacite.Config(strict=True, type_hooks=HOOKS))
    except dacite.UnexpectedDataError as error:
        raise _unknown_field(min(error.keys), kind, where) from None
    except dacite.WrongTypeError as error:
        needed = _told(error.field_type)
        raise UserError(f"{where}: {error.field_path} is {error.value!r}, but must be {needed}") from None
    except dacite.DaciteError as error:
        raise UserError(f"{where}: {error}") from None
    except UserError:
        raise
    except OverflowError:
        raise UserError(f"{where}: a number is larger than any that can be meant") from None
    except (TypeError, ValueError):  # dacite makes a tuple of what it finds, without looking
        raise UserError(f"{where}: a table stands where a list or a single value must be") from None


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _paths(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


HOOKS: dict[type[Any], Callable[[Any], Any]] = {float: _number, Path: _path, tuple[Path, ...]: _paths}
"""JSON and TOML know no tuples and no paths, and write 1 for 1.0; one file needs no list."""


def _told(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _unknown_field(name: str, kind: Any, where: str) -> UserError:
    """The error for a field that does not exist, with the nearest by their own names: what table each is in, is easily
    forgotten."""
    known = _field_names(kind)
    own = {field: field.split(".")[-1] for field in known}
    names = set(own.values())
    near = [name] if name in names else difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.5)
    meant = sorted((field for field in known if own[field] in near), key=lambda field: near.index(own[field]))
    if not meant:
        return unknown(f"field in {where}", name, known)
    return UserError(f"unknown field in {where} '{name}'; did you mean {' or '.join(meant[:3])}?")


def _field_names(kind: Any) -> list[str]:
    """The fields of a dataclass and of the dataclasses in it, like "width" and "training.steps"."""
    names = []
    for name, part in get_type_hints(kind).items():
        names += [name, *(f"{name}.{inner}" for inner in (_field_names(part) if is_dataclass(part) else ()))]
    return names


@dataclass
class Choices:
    """The places that hard attention took, one at each step: what is needed to learn from their consequences."""

    log_prob: Float[Tensor, "B T"]
    """How probable each was, with gradients."""
    entropy: Float[Tensor, "B T"]
    """Of the probabilities that it was drawn by, in nats, with gradients."""
    baseline: Float[Tensor, "B T"]
    """The reward that the model expected before it chose, with gradients that reach this expectation alone."""
    lasting: bool
    """Whether a choice also changes the steps after its own, so that their labels belong to its reward."""


@dataclass
class Output:
    """What a model computes: no loss, no decision. `choices` are those of hard attention, None where nothing chose."""

    logits: Float[Tensor, "B T N"]
    choices: Choices | None = None


@dataclass
class Batch:
    """Examples to train on: `model(**inputs)` gives an `Output` to compare with the `labels`."""

    inputs: dict[str, Tensor]
    labels: Int[Tensor, "B T"]
    name: str
    """Which examples these are, for a message to the user: "lines 17, 243 and 58 of train.en"."""

    @property
    def tokens(self) -> int:
        """How many labels count."""
        return int((self.labels != IGNORE).sum())

    @property
    def examples(self) -> int:
        """How many parts `rows` can tell apart."""
        return len(self.labels)

    def rows(self, chosen: slice) -> "Batch":
        """Some of the examples alone: their rows of the labels and of each input, which are the first dimension.

        An input without dimensions belongs to all. A kind of batch whose examples are not rows says itself what its
        `examples` and their `rows` are. Raises ValueError where rows and labels are not equally many.
        """
        for name, value in self.inputs.items():
            if value.ndim and len(value) != len(self.labels):
                raise ValueError(
                    f"a batch with {len(self.labels)} rows of labels and {len(value)} of '{name}' cannot be parted"
                )
        inputs = {name: value[chosen] if value.ndim else value for name, value in self.inputs.items()}
        return Batch(inputs, self.labels[chosen], self.name)

    def to(self, device: torch.device | str) -> "Batch":
        moved = {key: value.to(device, non_blocking=True) for key, value in self.inputs.items()}
        return Batch(moved, self.labels.to(device, non_blocking=True), self.name)


@dataclass
class Hypothesis:
    """One decoded sequence: its token ids without START and END, its log-probability (END included when it ended),
    and the score that ranks it among its rivals."""

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool = True


@runtime_checkable
class State(Protocol):
    """What a decoder remembers between two steps, one row for each hypothesis."""

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Keep the given rows, in the given order; a row may be named often or never."""


@runtime_checkable
class StepDecoder(Protocol):
    """A model that writes one token after the other."""

    def start(self, **inputs: Tensor) -> State:
        """Read the input (the source); the state before the first step, one row for each example."""

    def step(self, tokens: Int[Tensor, "R"], state: State) -> Float[Tensor, "R N"]:
        """Feed one token (START at first) to every row; the logits of the next token. Changes the state in place."""


@runtime_checkable
class Tokenizer(Protocol):
    """Text to token ids and back. Ids never hold START or END unless a caller puts them there."""

    def __len__(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]: ...

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """What to write beside a picture for each token: a word's first piece plain, a later one with a leading '·'."""

    def save(self, path: Path) -> None: ...


@runtime_checkable
class Picture(Protocol):
    """What `foveate.sight` draws: a Figure of matplotlib, whose name would cost a third of a second to import."""

    canvas: Any

    def savefig(self, fname: Any, **options: Any) -> None: ...
