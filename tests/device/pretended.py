"""A pretended accelerator, to test code for GPUs without one.

Tensors say that they are on the device "accel" and hold their numbers on the CPU. As on a GPU, an operation refuses
tensors of both sides, and what makes a GPU wait for the CPU is counted:

    with pretended_device() as crossings:
        model = foveate.create("vit-tiny", classes=10).to(DEVICE)
        model(torch.randn(2, 3, 28, 28, device=DEVICE)).logits.sum().backward()
    assert not crossings

torch's registration of devices is experimental, so that this is for tests alone. It has no streams, no graphs, and none
of the kernels that only a GPU has.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.utils.backend_registration as registration
from fused_cells import CELLS
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "accel"

MOVES = ("aten._to_copy.default", "aten.copy_.default")
"""Operations that take a tensor from one side to the other."""

PACKS, UNPACKS = "aten._pack_padded_sequence.default", "aten._pad_packed_sequence.default"
"""Operations that have the sizes of batches on the CPU, also on a GPU."""

PACKED = ("aten.gru.data", "aten.lstm.data", "aten.rnn_tanh.data", "aten.rnn_relu.data")
"""Operations over packed sequences, whose sizes are on the CPU."""

MEETS = (*MOVES, "aten._has_compatible_shallow_copy_type.default", PACKS, UNPACKS, *PACKED)
"""Operations in which tensors of both sides may meet."""

READS = (
    "aten._local_scalar_dense.default",
    "aten.equal.default",
    "aten.is_nonzero.default",
    "aten.nonzero.default",
    "aten._unique2.default",
    "aten.unique_dim.default",
    "aten.unique_consecutive.default",
    "aten.masked_select.default",
    "aten.bincount.default",
    "aten.repeat_interleave.Tensor",
)
"""Operations whose result the CPU waits for: a number, or a shape that depends on numbers."""

PICKS = ("aten.index.Tensor", "aten.index_put.default", "aten.index_put_.default")
"""Operations that the CPU waits for where an index says yes or no to each place: how many places are meant depends on
numbers."""


class _Backend(registration._DummyBackendModule):  # type: ignore[name-defined, misc]
    """What torch asks an accelerator: `auto` finds this one while it is there. Random numbers are the CPU's."""

    there = False

    def is_available(self) -> bool:
        return self.there

    def device_count(self) -> int:
        return int(self.there)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return True

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)


registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Backend())  # type: ignore[attr-defined]

REAL = os.environ.get("FOVEATE_TEST_DEVICE", "")
"""A real device to test on instead, such as "cuda": nothing is counted there. `make test-device` names it."""

DEVICE = torch.device(REAL) if REAL else torch.device(NAME, 0)

KEY = "AutocastPrivateUse1"

CAST = (
    "mm",
    "bmm",
    "matmul",
    "addmm",
    "baddbmm",
    "linear",
    "scaled_dot_product_attention",
    "convolution",
    "_convolution",
    *(f"conv{dimensions}d" for dimensions in (1, 2, 3)),
    *(f"conv_transpose{name}" for name in ("1d", "2d.input", "3d.input")),
)
"""Operations that autocast computes in its type, as on a GPU."""

WHOLE = (
    *("layer_norm", "rms_norm", "group_norm", "softmax.int", "log_softmax.int", "logsumexp", "nll_loss", "nll_loss2d"),
    *("cumsum", "cumprod", "exp", "expm1", "log", "log1p", "rsqrt", "reciprocal", "softplus"),
    *("sum", "sum.dim_IntList", "prod", "norm.Scalar", "norm.ScalarOpt_dim", "linalg_vector_norm", "cosine_similarity"),
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy_with_logits"),
)
"""Operations that it computes in single precision."""

WIDEST = ("index_put", "scatter_add", "grid_sampler", "addcmul", "addcdiv", "cat", "stack", "dot")
"""Operations that it computes in the widest type of their tensors."""

_others, _casting = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
_others.fallback(torch.library.fallthrough_kernel, KEY)


def _to_type(values: Any, kind: Any) -> Any:
    """Values with the tensors of the device of up to single precision in another type."""

    def cast(part: Any) -> Any:
        return part.to(kind) if isinstance(part, OnDevice) and part.dtype in _LESS else part

    return tree_map(cast, values)


_LESS = (torch.float32, torch.float16, torch.bfloat16)


def _cast(name: str, choose: Callable[[Any], torch.dtype]) -> None:
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def run(*args: Any, **kwargs: Any) -> Any:
        kind = choose((args, kwargs))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)):
            return operation(*_to_type(args, kind), **_to_type(kwargs, kind))

    _casting.impl(name, run, KEY)


def _widest(values: Any) -> torch.dtype:
    kinds = {part.dtype for part in tree_flatten(values)[0] if isinstance(part, OnDevice) and part.dtype in _LESS}
    return kinds.pop() if len(kinds) == 1 else torch.float32


for _names, _choose in (
    (CAST, lambda values: torch.get_autocast_dtype(NAME)),
    (WHOLE, lambda values: torch.float32),
    (WIDEST, _widest),
):
    for _name in _names:
        _cast(_name, _choose)


class OnDevice(torch.Tensor):
    """A tensor on the device; `inner` has its numbers."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, requires_grad: bool = False) -> "OnDevice":
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined, no-any-return]
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
            requires_grad=requires_grad,
        )

    def __init__(self, inner: Tensor, requires_grad: bool = False) -> None:
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnDevice({self.inner})"

    def tolist(self) -> Any:
        _crossings["tolist"] += 1
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"a tensor on {NAME} is no array of numpy: copy it to the CPU first")

    def __getitem__(self, places: Any) -> Tensor:
        return super().__getitem__(_indices(places))

    def __setitem__(self, places: Any, value: Any) -> None:
        super().__setitem__(_indices(places), value)

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.inner.untyped_storage()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


def _indices(places: Any) -> Any:
    """Lists of numbers as tensors on the CPU, which torch takes to a device itself below Python."""
    return tuple(
        torch.tensor(one) if isinstance(one, list) else one
        for one in (places if isinstance(places, tuple) else (places,))
    )


_crossings: Counter[str] = Counter()


def _run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the numbers, and say on which side its result is."""
    name = str(function)
    flat, form = tree_flatten((args, kwargs))
    ours = [part for part in flat if isinstance(part, OnDevice)]
    others = [part for part in flat if isinstance(part, Tensor) and not isinstance(part, OnDevice) and part.dim()]
    # An index may be on the CPU: torch takes it to the device, which is a crossing too.
    if ours and others and name not in MEETS and "index" not in name:
        raise RuntimeError(f"{name}: tensors on {NAME} and on the CPU, {[tuple(part.shape) for part in others]}")
    wanted = kwargs.get("device")
    if wanted is not None:
        here = is_ours(wanted)
    elif name == "aten.copy_.default":
        here = isinstance(args[0], OnDevice)
    else:
        here = bool(ours)
    if ours and (name in READS or not here or _counts_places(name, args)):
        _crossings[name] += 1
    if here and any(isinstance(part, torch.Generator) and not isinstance(part, _Generator) for part in flat):
        raise RuntimeError(f"{name}: a tensor on {NAME} and random numbers of the CPU")
    inner = [_inner(part) for part in flat]
    args, kwargs = tree_unflatten(inner, form)
    if "pin_memory" in kwargs:
        kwargs["pin_memory"] = False
    known = {id(part.inner): part for part in ours}

    def outer(part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        return known.get(id(part), OnDevice(part) if here else part)

    found = CELLS.get(name, function)(*args, **kwargs)
    if name in (PACKS, UNPACKS):
        return outer(found[0]), found[1]
    return tree_map(outer, found)


def _counts_places(name: str, args: Any) -> bool:
    """Whether an operation counts the places that an index of booleans means; to write one number there takes none."""
    if name not in PICKS or (len(args) > 2 and not args[2].dim()):
        return False
    return any(isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1])


def _inner(part: Any) -> Any:
    if isinstance(part, OnDevice):
        return part.inner
    return torch.device("cpu") if isinstance(part, torch.device) else part


def is_ours(device: Any) -> bool:
    """Whether this is the pretended device."""
    return device is not None and not isinstance(device, Tensor) and torch.device(device).type == NAME


class _Generator(torch.Generator):
    """A generator of the device, whose numbers are those of the CPU."""

    def __new__(cls, device: Any = "cpu") -> torch.Generator:
        return super().__new__(cls, "cpu") if is_ours(device) else _CPUGenerator(device)


_CPUGenerator = torch.Generator


class _NoGradients:
    """Stands for torch's inference mode, whose tensors cannot be wrapped: without gradients, or with."""

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(not self.mode)

    def __exit__(self, *error: object) -> None:
        torch._C._set_grad_enabled(self.before)


class _Factories(TorchDispatchMode):
    """Makes new tensors on the device where that is asked for."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class _Upload(torch.autograd.Function):
    """Takes a tensor to the device, and its gradient back."""

    @staticmethod
    def forward(context: Any, tensor: Tensor) -> Tensor:  # type: ignore[override]
        return OnDevice(tensor.detach().clone())

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient.inner if isinstance(gradient, OnDevice) else gradient


RECURRENT = ("gru", "rnn_tanh", "rnn_relu")
"""Operations over whole sequences whose last argument says that examples come first."""


class _Moves(TorchFunctionMode):
    """Takes tensors to the device where torch itself would do so below Python."""

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(function, "__name__", "") in RECURRENT and isinstance(args[2], list | tuple) and args[8]:
            # torch exchanges two dimensions of the output in place, which no tensor of Python's can follow.
            output, *states = function(args[0].transpose(0, 1), *args[1:8], False)
            return output.transpose(0, 1), *states
        if function in (torch.tensor, torch.as_tensor) and is_ours(kwargs.get("device")):
            kwargs.pop("device")
            return _Upload.apply(function(*args, **kwargs))
        if function is torch.Tensor.new_tensor and isinstance(args[0], OnDevice):
            return _Upload.apply(torch.tensor(args[1], dtype=kwargs.get("dtype", args[0].dtype)))
        if function is torch.Tensor.to and not isinstance(args[0], OnDevice):
            given = [*args[1:], *kwargs.values()]
            device = next((part.device for part in given if isinstance(part, Tensor)), None)
            device = device or next((part for part in given if isinstance(part, str | torch.device)), None)
            if is_ours(device):
                dtype = next((part for part in given if isinstance(part, torch.dtype)), args[0].dtype)
                return _Upload.apply(args[0].to(dtype))
        return function(*args, **kwargs)


def on_cpu(tensor: Tensor) -> Tensor:
    """A tensor of the device, or of the CPU, without its gradient; not counted."""
    return tensor.detach().inner if isinstance(tensor, OnDevice) else tensor.detach().cpu()


_apply = nn.Module._apply


def _is_like(one: Tensor, other: Tensor) -> bool:
    return type(one) is type(other) and one.dtype == other.dtype


def _apply_with_ties(module: nn.Module, function: Any, recurse: bool = True) -> nn.Module:
    """Stands for how modules move: parameters that are one stay one, though each is replaced here, and an optimizer
    still knows those of a module that is there already."""
    tensors = [*module.parameters(), *module.buffers()]
    if tensors and all(isinstance(one, OnDevice) and _is_like(function(one), one) for one in tensors):
        return module
    holders: dict[int, list[tuple[nn.Module, str]]] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                holders.setdefault(id(parameter), []).append((part, name))
    _apply(module, function, recurse)
    for (first, name), *others in holders.values():
        for part, other in others:
            part._parameters[other] = first._parameters[name]
    return module


@contextmanager
def pretended_device() -> Iterator[Counter[str]]:
    """The device, in the block; gives what crossed to the CPU, by the name of the operation: of a real one nothing."""
    _crossings.clear()
    if REAL:
        yield _crossings
        return
    _Backend.there = True
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with (
            patch.object(torch, "Generator", _Generator),
            patch.object(torch._C, "_InferenceMode", _NoGradients),
            patch.object(nn.Module, "_apply", _apply_with_ties),
            _Factories(),
            _Moves(),
        ):
            yield _crossings
    finally:
        _Backend.there = False
        torch.__future__.set_overwrite_module_params_on_conversion(False)
