"""Models as ONNX files, which onnxruntime and serving engines run without PyTorch."""

import importlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from foveate.attention import Memory
from foveate.attention.biases import as_bias
from foveate.attention.masks import as_mask
from foveate.attention.scores import ScaledDot, Score
from foveate.attention.selection import Selection, Soft
from foveate.errors import UserError
from foveate.files import written

TOLERANCE = 1e-4
"""The greatest difference of two logits, as a share of the greatest logit where that is above 1."""

OPSET = 20

SCALED_DOT, SOFT = ScaledDot(), Soft()


class PositionRange(NamedTuple):
    """A range of positions whose end may be a symbol, which no `range` takes."""

    start: int
    stop: int


class TensorsOnly(nn.Module):
    """A model whose inputs are named and whose outputs are tensors: its logits, or those that it returns."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, tuple(names)
        self.eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        found = self.model(**dict(zip(self.names, inputs, strict=True)))
        return found if isinstance(found, tuple) else (found.logits,)


@dataclass
class Sample:
    """Inputs of a model by name, and which of their dimensions may have other sizes."""

    inputs: Mapping[str, Tensor]
    free: Mapping[str, Mapping[int, str]]
    """By input: the names of the dimensions that differ from call to call."""


def export_onnx(
    model: nn.Module,
    sample: Sample,
    others: Sequence[Mapping[str, Tensor]],
    path: Path,
    outputs: Sequence[str] = ("logits",),
) -> float:
    """Write a model to a file, and run it there on the `others`, inputs of other sizes. `outputs` are the names of its
    logits, or of the tensors that it returns.

    Returns the greatest difference from the outputs of PyTorch. Raises UserError where the packages are missing, where
    the model cannot be written, or where a difference is above the tolerance.
    """
    runtime = _packages()
    names = list(sample.inputs)
    wrapped = TensorsOnly(model, names)
    dynamic = torch.export.Dim.DYNAMIC
    shapes = tuple(dict.fromkeys(sample.free.get(name, {}), dynamic) for name in names)
    with warnings.catch_warnings(), _quiet(), _exportable_attention(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(
                wrapped, tuple(sample.inputs.values()), dynamic_shapes=(shapes,), strict=False
            )
            found = torch.onnx.export(
                program, dynamo=True, input_names=names, output_names=[*outputs], opset_version=OPSET, verbose=False
            )
        except Exception as error:  # torch's exporter raises nothing more precise
            line = " ".join(str(error).split())[:200]
            raise UserError(f"this model cannot be written as ONNX: {line}") from None
    with written(path) as temporary:
        found.save(str(temporary))  # type: ignore[union-attr]
    return _check(runtime, wrapped, [sample.inputs, *others], path)


def _check(runtime: Any, model: nn.Module, inputs: Sequence[Mapping[str, Tensor]], path: Path) -> float:
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    greatest = 0.0
    for given in inputs:
        known = {one.name for one in session.get_inputs()}
        answers = session.run(None, {name: value.numpy() for name, value in given.items() if name in known})
        with torch.no_grad():
            expected = model(*given.values())
        for own, other in zip(answers, expected, strict=True):
            limit = max(1.0, float(other.abs().max()))
            greatest = max(greatest, float((torch.from_numpy(own) - other).abs().max()) / limit)
    if not greatest <= TOLERANCE:
        raise UserError(f"onnxruntime's outputs of {path} differ from PyTorch's by {greatest:.1e}: do not use it")
    return greatest


def _packages() -> Any:
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"ONNX needs the package {error.name}: pip install 'foveate[onnx]'") from None
    return onnxruntime


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's reports of packages that it could also use."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _exportable_attention() -> Iterator[None]:
    """Attention without a choice of kernels, which would depend on the sizes of the sample."""
    modules: list[Any] = [importlib.import_module(f"foveate.nn.{name}") for name in ("attention", "pooling")]
    before: list[Callable[..., Tensor]] = [module.attend for module in modules]
    for module in modules:
        module.attend = _attend
    try:
        yield
    finally:
        for module, function in zip(modules, before, strict=True):
            module.attend = function


def _attend(
    q: Tensor,
    k: Tensor | Memory,
    v: Tensor | None = None,
    score: Score = SCALED_DOT,
    mask: Any = None,
    bias: Any = None,
    select: Selection = SOFT,
    dropout: float = 0.0,
) -> Tensor:
    """As the eager kernel. Raises UserError for weights other than those of the softmax."""
    if not isinstance(select, Soft) or select.sinks is not None:
        raise UserError(f"attention by {type(select).__name__} is not written as ONNX: the softmax alone is")
    if isinstance(k, Memory):
        keys, values, score = k.keys, k.values, k.score
    else:
        keys, values = score.keys(k), cast(Tensor, v)
    queries = score.queries(q)
    rows, columns = (cast(range, PositionRange(0, side.shape[-2])) for side in (queries, keys))
    scores = score.block(queries, keys)
    if bias is not None:
        scores = scores + as_bias(bias).block(queries, rows, columns)
    if mask is not None:
        allowed = as_mask(mask).block(rows, columns, scores.ndim - 2, scores.device)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        # A query that may look nowhere gets zeros: one of padding whose window holds no text.
        return scores.softmax(-1).masked_fill(~allowed, 0) @ values
    return scores.softmax(-1) @ values
