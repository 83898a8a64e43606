"""A product of weights with what they read, by whatever function: which of its dimensions are heads, queries and keys.

Each dimension of weights, values and output has a letter, as in an einsum. A letter of weights and values that the
output lacks is summed over: the keys. One of weights and output alone is a query; of all three, an example or a head.
"""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.sight.adapters.softmax_functions import EINSUMS, MATMULS
from foveate.sight.given_weights import MadeProduct

HEAD_COUNTS = ("num_heads", "n_heads", "n_head", "heads", "num_attention_heads", "nhead", "nheads", "head_num")
"""What modules call the number of their heads."""


@dataclass
class WeightedSum:
    """Weights, values and their product, with the letters of their dimensions."""

    weights: Tensor
    values: Tensor
    output: Tensor
    letters: tuple[str, str, str]

    def arranged(self, heads: int | None) -> MadeProduct | None:
        """The same in the dimensions of a site, for a module of so many heads, if it says how many; None if there are
        no keys or if what is left has another meaning."""
        weights, values, output = self.letters
        keys = [one for one in weights if one in values and one not in output]
        queries = [one for one in weights if one in output and one not in values]
        shared = [one for one in weights if one in output and one in values]
        features = [one for one in output if one not in weights]
        known = {*keys, *queries, *shared, *features}
        if not keys or not {*weights, *values, *output} <= known:
            return None
        sizes = self._sizes()
        shared = [*shared[:1], *(one for one in shared[1:] if sizes[one] > 1)]
        if len(queries) > 1 and heads is not None and sizes[queries[0]] == heads:
            shared, queries = [*shared, queries[0]], queries[1:]
        own = not queries and len(shared) > 1  # each query has values of its own
        if own:
            head = next((one for one in shared[1:] if sizes[one] == heads), None)
            queries = [one for one in shared[1:] if one != head]
            shared = [shared[0], *filter(None, [head])]
        examples, head_letters = self._split(shared, sizes, heads)
        groups = (examples, head_letters, queries, keys)
        read = queries if own else []
        return MadeProduct(
            self._flat(self.weights, weights, groups, sizes),
            self._flat(self.values, values, (examples, head_letters, read, keys, features), sizes),
            self._flat(self.output, output, (examples, head_letters, queries, features), sizes),
        ).with_heads(heads)

    def is_mean(self) -> bool:
        """Whether the weights of each query are shares: none is negative, and over the keys they sum to one, or to
        zero where a query sees no key. What a query without any key to choose from has is no sign of it."""
        _, values, output = self.letters
        keys = [place for place, letter in enumerate(self.letters[0]) if letter in values and letter not in output]
        if not keys or all(self.weights.shape[place] == 1 for place in keys) or not self.weights.is_floating_point():
            return False
        with torch._C.DisableTorchFunction(), torch.no_grad():
            sums = self.weights.float().sum(keys)
            off = 1e-3 + 4 * torch.finfo(self.weights.dtype).eps
            whole = ((sums - 1).abs() <= off) | (sums == 0)
            return bool(whole.all()) and bool((sums > 0).any()) and bool((self.weights >= 0).all())

    def reads_last(self) -> bool:
        """Whether the sum is over the last dimension of the weights, of values with features of their own."""
        weights, values, output = self.letters
        last = weights[-1:]
        features = any(letter in output and letter not in weights for letter in values)
        return bool(last) and last in values and last not in output and features

    def restored(self, output: Float[Tensor, "B H T V"], heads: int | None) -> Tensor:
        """An output in the dimensions of the product's own."""
        numbers = torch.arange(self.output.numel(), dtype=torch.double, device=output.device)
        places = replace(self, output=numbers.view(self.output.shape)).arranged(heads)
        assert places is not None
        return output.flatten()[places.output.flatten().argsort()].view(self.output.shape)

    def _sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for tensor, letters in zip((self.weights, self.values, self.output), self.letters, strict=True):
            for letter, size in zip(letters, tensor.shape, strict=True):
                found[letter] = max(size, found.get(letter, 0))
        return found

    @staticmethod
    def _split(shared: list[str], sizes: dict[str, int], heads: int | None) -> tuple[list[str], list[str]]:
        """The letters of examples and those of heads: one of heads is as large as there are, or else the last one."""
        if len(shared) < 2:
            return shared, []
        head = next((one for one in reversed(shared) if sizes[one] == heads), shared[-1])
        return [one for one in shared if one != head], [head]

    @staticmethod
    def _flat(tensor: Tensor, letters: str, groups: Sequence[Sequence[str]], sizes: dict[str, int]) -> Tensor:
        """The tensor with one dimension for each group of letters."""
        wanted = [letter for group in groups for letter in group]
        rest = [letter for letter in letters if letter not in wanted]  # of size 1
        present = [letter for letter in wanted if letter in letters]
        moved = tensor.permute([letters.index(letter) for letter in (*rest, *present)]).flatten(0, len(rest))
        moved = moved if rest else tensor.permute([letters.index(letter) for letter in present])
        for place, letter in enumerate(wanted):
            moved = moved if letter in letters else moved.unsqueeze(place)
        full = moved.expand(
            *(sizes[letter] if letter in letters else size for letter, size in zip(wanted, moved.shape, strict=True))
        )
        for place, group in enumerate(groups):
            full = full.flatten(place, place + len(group) - 1) if group else full.unsqueeze(place)
        return full


def weighted_sum(func: Callable[..., Any], args: Sequence[Any], weights: Tensor, output: Tensor) -> WeightedSum | None:
    """The product that a function computes from these weights and other operands; None if it is none that is known."""
    if output.layout is not torch.strided or output.is_nested:
        return None
    if func in EINSUMS:
        return _of_einsum(args, weights, output)
    if func not in MATMULS:
        return None
    one, other = args[:2] if func is not Tensor.__rmatmul__ else args[1::-1]
    return _of_matmul(one, other, weights, output)


def spread_sum(weights: Tensor, values: Tensor, output: Tensor, dims: Sequence[int]) -> WeightedSum | None:
    """The sum over some dimensions of an elementwise product, in which operands of fewer dimensions broadcast."""
    rank = max(weights.ndim, values.ndim)
    if rank > len(string.ascii_letters):
        return None
    dims = [dim % rank for dim in dims]
    weights, values = (side[(None,) * (rank - side.ndim)] for side in (weights, values))
    sizes = [max(pair) for pair in zip(weights.shape, values.shape, strict=True)]
    sides, named = [], []
    for side in (weights, values):
        absent = [place for place in range(rank) if side.shape[place] == 1 and (sizes[place] > 1 or place in dims)]
        sides.append(side.squeeze(absent))
        named.append("".join(letter for place, letter in enumerate(string.ascii_letters[:rank]) if place not in absent))
    kept = [place for place in range(rank) if place not in dims]
    of_output = "".join(string.ascii_letters[place] for place in kept)
    output = output.reshape([sizes[place] for place in kept])
    return WeightedSum(sides[0], sides[1], output, (named[0], named[1], of_output))


def _of_matmul(one: Tensor, other: Tensor, weights: Tensor, output: Tensor) -> WeightedSum | None:
    rank = max(one.ndim, other.ndim, 2) - 2
    if rank > len(string.ascii_lowercase) or not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return None
    leading = string.ascii_lowercase[:rank]
    of_one, of_other = leading + ("TS" if one.ndim > 1 else "S"), leading + ("SV" if other.ndim > 1 else "S")
    of_output = leading + "T" * (one.ndim > 1) + "V" * (other.ndim > 1)
    one, other = (side[(None,) * (len(letters) - side.ndim)] for side, letters in ((one, of_one), (other, of_other)))
    first = weights.data_ptr() == one.data_ptr() and weights.numel() == one.numel()
    if first:
        return WeightedSum(one, other, output, (of_one, of_other, of_output))
    return WeightedSum(other, one, output, (of_other, of_one, of_output))


def _of_einsum(args: Sequence[Any], weights: Tensor, output: Tensor) -> WeightedSum | None:
    equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not isinstance(equation, str) or len(operands) != 2:
        return None
    terms, arrow, target = equation.replace(" ", "").partition("->")
    sides = terms.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    rest = max(side.ndim - len(term.replace("...", "")) for side, term in zip(operands, sides, strict=True))
    named = []
    for side, term in zip(operands, sides, strict=True):
        count = side.ndim - len(term.replace("...", ""))
        named.append(term.replace("...", "".join(free[rest - count : rest])))
    if not arrow:
        both = "".join(named)
        target = "..." + "".join(sorted(letter for letter in {*both} if both.count(letter) == 1 and letter not in free))
    target = target.replace("...", "".join(free[:rest]))
    if any(len({*letters}) != len(letters) for letters in (*named, target)):
        return None
    at = 0 if operands[0] is weights else 1
    return WeightedSum(operands[at], operands[1 - at], output, (named[at], named[1 - at], target))


def head_count(module: nn.Module) -> int | None:
    """The number of heads that a module says it has, itself or in its config."""
    for holder in (module, getattr(module, "config", None)):
        for name in HEAD_COUNTS:
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
    return None
