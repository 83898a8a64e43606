"""Weights times the size of what they weigh: a large weight on a value near 0 gives almost nothing.

Kobayashi et al. 2020, "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms"
(https://arxiv.org/abs/2004.10102).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from foveate.attention.autocast import without_autocast
from foveate.attention.call import Call
from foveate.errors import UserError
from foveate.sight.derived import FactoredSite
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.site import Site
from foveate.sight.untraced import MAX_NAMED

Projection = Float[Tensor, "W C"]
"""What a layer multiplies the outputs of its heads with, which stand one behind the other: W = H * V."""


Finish = Callable[[Tensor], Tensor]
"""Computes the output of a layer (B, T, C) from the outputs of its heads (B, H, T, V)."""


class NormSite(FactoredSite):
    """Each weight times the norm of its projected value: how much the key gives to the output, (B, H, T, S)."""

    shows = "values"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        if any(recorded.norms is None for recorded in site.calls):
            raise UserError(f"{site.name}: the sizes of values are measured by look(model, values=True)")

    def factor(
        self, recorded: RecordedCall, heads: Sequence[int], queries: Sequence[int], keys: Sequence[int]
    ) -> Float[Tensor, "B h 1 s"]:
        assert recorded.norms is not None
        return recorded.norms[:, list(heads)][:, :, None, list(keys)]


def notes_of(sites: Iterable[Site]) -> list[str]:
    """A line that names the sites whose projection was not found."""
    missing = [site.name for site in sites if not all(recorded.projected for recorded in site.calls)]
    if not missing:
        return []
    names = ", ".join(missing[:MAX_NAMED]) + (", ..." if len(missing) > MAX_NAMED else "")
    return [f"{names}: values are measured before the output projection, which was not found"]


class ProjectionSearch(TorchFunctionMode):
    """Finds the matrix that the outputs of a call's heads are multiplied with, to measure its projected values."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: tuple[Tensor, Callable[[Projection], None]] | None = None

    def measure(
        self, recorded: RecordedCall, call: Call, output: Float[Tensor, "... T V"], finish: Finish | None
    ) -> None:
        """Measure the values of a call: as they are until the matrix is known, which `finish` multiplies with."""
        heads = call.leading[1:].numel()

        def project(projection: Projection) -> None:
            recorded.norms, recorded.projected = value_norms(call, projection), True

        if finish is not None:
            project(matrix_of(finish, heads, call.values))
        else:
            recorded.norms = value_norms(call)
            rows = output.detach().reshape(-1, heads, *output.shape[-2:]).transpose(1, 2)
            self._awaited = rows.flatten(-2), project

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._awaited is not None and func in _PRODUCTS:
            self._compare(*_PRODUCTS[func](*args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))

    def _compare(self, given: Any, projection: Any) -> None:
        """Take the projection if what is given to it are the awaited outputs."""
        assert self._awaited is not None
        joined, project = self._awaited
        if projection.ndim != 2 or given.shape[-1] != joined.shape[-1] or given.numel() != joined.numel():
            return
        with torch._C.DisableTorchFunction(), torch.no_grad(), without_autocast(joined.device):
            if torch.equal(given.detach().reshape(joined.shape), joined.to(given.dtype)):
                self._awaited = None
                project(projection.detach())


_PRODUCTS: dict[Callable[..., Any], Callable[..., tuple[Any, Any]]] = {
    F.linear: lambda input, weight, bias=None: (input, weight.mT),
    torch.addmm: lambda input, mat1, mat2, **_: (mat1, mat2),
    torch.matmul: lambda input, other, **_: (input, other),
    torch.Tensor.matmul: lambda input, other, **_: (input, other),
    torch.Tensor.__matmul__: lambda input, other, **_: (input, other),
}
"""By function: what is multiplied, (..., W), and the matrix (W, C)."""


def matrix_of(finish: Finish, heads: int, values: Tensor) -> Projection:
    """The matrix of an affine function of the outputs of all heads: what it makes of unit vectors, less its bias."""
    units = torch.eye(heads * values.shape[-1], dtype=values.dtype, device=values.device)
    rows = units.unflatten(-1, (heads, -1)).transpose(0, 1)[None]
    return (finish(rows) - finish(torch.zeros_like(rows)))[0]


def value_norms(call: Call, projection: Projection | None = None) -> Float[Tensor, "B H S"]:
    """The norm of each key's value for each head, after its projection if there is one."""
    heads, values = call.leading[1:].numel(), call.values.detach()
    kept = values.expand(*call.leading, *values.shape[-2:]).reshape(-1, heads, *values.shape[-2:]).float()
    if projection is None:
        return kept.norm(dim=-1)
    parts = projection.float().unflatten(0, (heads, -1))
    return torch.stack([(kept[:, head] @ parts[head]).norm(dim=-1) for head in range(heads)], 1)
