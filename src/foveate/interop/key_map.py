"""A reversible table between the tensors of our models and those of public checkpoints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

Row = TypeVar("Row")


@runtime_checkable
class Transform(Protocol):
    """Makes one public tensor of one or several of ours, and the other way round."""

    def join(self, parts: Sequence[Tensor]) -> Tensor: ...

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]: ...


class Same:
    """One tensor, as it is."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0]

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole]


@dataclass(frozen=True)
class Joined:
    """Several tensors below each other, such as the projections of queries, keys and values."""

    rows: tuple[int, ...] | None = None
    """How many each has; by default equally many."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(parts))

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return whole.chunk(parts) if self.rows is None else whole.split(self.rows)


class JoinedTransposed(Joined):
    """Likewise, transposed: what layers with weights (inputs, outputs) hold, such as transformers' `Conv1D`."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return _transposed(super().join(parts))

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return super().split(_transposed(whole), parts)


class WithFirstAxis:
    """One tensor with a first axis of length 1 more."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None]

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.flatten(0, 1)]


@dataclass(frozen=True)
class Reshaped:
    """One tensor, which files have in another shape, such as (1, 1, 1, -1); ours is a vector by default."""

    public: tuple[int, ...]
    ours: tuple[int, ...] = (-1,)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].reshape(self.public)

    def split(self, whole: Tensor, parts: int) -> Sequence[Tensor]:
        return [whole.reshape(self.ours)]


@dataclass(frozen=True)
class JoinedByHead:
    """The rows of queries, keys and values for each head in turn, as in GPT-NeoX."""

    heads: int

    def join(self, parts: Sequence[Float[Tensor, "HD *C"]]) -> Float[Tensor, "HPD *C"]:
        return torch.stack([part.unflatten(0, (self.heads, -1)) for part in parts], 1).flatten(0, 2)

    def split(self, whole: Float[Tensor, "HPD *C"], parts: int) -> Sequence[Float[Tensor, "HD *C"]]:
        return [part.flatten(0, 1) for part in whole.unflatten(0, (self.heads, parts, -1)).unbind(1)]


@dataclass(frozen=True)
class Interleaved:
    """Rows of each head's queries or keys: of the first `width`, those that turn together are neighbours there, and
    half of the width apart in ours, as in GPT-J."""

    heads: int
    width: int

    def join(self, parts: Sequence[Float[Tensor, "HD *C"]]) -> Float[Tensor, "HD *C"]:
        return self._ordered(parts[0], (2, -1))

    def split(self, whole: Float[Tensor, "HD *C"], parts: int) -> Sequence[Float[Tensor, "HD *C"]]:
        return [self._ordered(whole, (-1, 2))]

    def _ordered(self, rows: Tensor, sizes: tuple[int, int]) -> Tensor:
        of_heads = rows.unflatten(0, (self.heads, -1))
        turned = of_heads[:, : self.width].unflatten(1, sizes).transpose(1, 2).flatten(1, 2)
        return torch.cat([turned, of_heads[:, self.width :]], 1).flatten(0, 1)


def _transposed(tensor: Tensor) -> Tensor:
    return tensor.T.contiguous() if tensor.ndim == 2 else tensor


@dataclass(frozen=True)
class Entry:
    """One row of a table. A name is that of a tensor, or that of a module, which stands for all its tensors."""

    ours: tuple[str, ...]
    public: str
    transform: Transform = field(default_factory=Same)


@dataclass(frozen=True)
class KeyMap:
    """A family's table; `to_public` and `to_ours` are inverse to each other."""

    entries: tuple[Entry, ...]
    tied: Mapping[str, str] = field(default_factory=dict)
    """Public tensors that are the same as another one, and are not in files."""
    ignored: tuple[str, ...] = ()
    """Patterns of public tensors that files may have and models need not, such as "*.position_ids"."""
    prefix: str = ""
    """What the names of the body's tensors begin with; files of the body alone lack it."""
    divided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The public tensors that are one of ours, joined along the second axis, by its name in the entries."""

    @classmethod
    def of(
        cls,
        names: Mapping[str, str],
        tied: Mapping[str, str] | None = None,
        ignored: tuple[str, ...] = (),
        prefix: str = "",
    ) -> "KeyMap":
        """The table where all tensors are equal: our names, each with the public one."""
        return cls(tuple(Entry((ours,), public) for ours, public in names.items()), tied or {}, ignored, prefix)

    @property
    def names(self) -> dict[str, str]:
        """Our name of each tensor or module, with the public one."""
        return {part: entry.public for entry in self.entries for part in entry.ours}

    def to_public(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A state of ours under the public names, with tied tensors. KeyError for a tensor without an entry."""
        entries = {name: (entry, place) for entry in self.entries for place, name in enumerate(entry.ours)}
        found = {}
        for name in state:
            (entry, place), leaf = _look_up(entries, name)
            if place == 0:
                found[entry.public + leaf] = entry.transform.join([state[part + leaf] for part in entry.ours])
        for name, parts in self.divided.items():
            found |= dict(zip(parts, found.pop(name).chunk(len(parts), 1), strict=True))
        return found

    def to_ours(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A public state under our names. KeyError for a tensor without an entry; ignored ones are left out."""
        entries = {entry.public: entry for entry in self.entries}
        found: dict[str, Tensor] = {}
        whole = self.complete(state)
        for name, divided in self.divided.items():
            whole[name] = torch.cat([whole.pop(part) for part in divided], 1)
        for name, tensor in whole.items():
            if name in self.tied and not _has(entries, name):
                continue  # a copy that our models do not have
            entry, leaf = _look_up(entries, name)
            parts = entry.transform.split(tensor, len(entry.ours))
            found |= {part + leaf: value for part, value in zip(entry.ours, parts, strict=True)}
        return found

    def complete(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A public state as a file has it, with the prefix and tied tensors, without ignored ones."""
        whole = any(name.startswith(self.prefix) for name in state)
        found = {}
        for name, tensor in state.items():
            if not any(fnmatchcase(name, pattern) for pattern in self.ignored):
                found[name if whole or name in self._outside else self.prefix + name] = tensor
        pairs = [*self.tied.items(), *((name, copy) for copy, name in self.tied.items())]
        return found | {name: found[other] for name, other in pairs if other in found and name not in found}

    def untied(self, state: Mapping[str, Tensor]) -> list[str]:
        """The tied tensors that a complete state has with other numbers than the ones that they are tied to."""
        pairs = ((copy, name) for copy, name in self.tied.items() if copy in state and name in state)
        return [copy for copy, name in pairs if not torch.equal(state[copy], state[name])]

    @property
    def _outside(self) -> set[str]:
        """Public tensors that are not part of the body."""
        return {entry.public + leaf for entry in self.entries for leaf in ("", ".weight", ".bias")} | set(self.tied)

    def renamed(self, names: Iterable[str]) -> dict[str, str]:
        """The public name of each of our tensors."""
        found = {}
        for name in names:
            public, leaf = _look_up(self.names, name)
            found[name] = public + leaf
        return found


def _has(table: Mapping[str, Row], name: str) -> bool:
    return name in table or name.rpartition(".")[0] in table


def _look_up(table: Mapping[str, Row], name: str) -> tuple[Row, str]:
    """The row of a tensor, by its own name or by that of its module, and what of the name is left."""
    if name in table:
        return table[name], ""
    module, dot, leaf = name.rpartition(".")
    return table[module], dot + leaf
