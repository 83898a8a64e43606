"""Depthwise convolutions: the same numbers and gradients as torch's, by other sums."""

import pytest
import torch
from torch import Tensor, nn

from foveate.nn import DepthwiseConv2d
from foveate.nn import depthwise as module
from foveate.nn.depthwise import depthwise


def gradients(layer: nn.Module, x: Tensor, weights: Tensor) -> list[Tensor]:
    layer.zero_grad()
    x = x.clone().requires_grad_()
    (layer(x) * weights).sum().backward()
    found = [x.grad, *(parameter.grad for parameter in layer.parameters())]
    return [part for part in found if part is not None]


def pair(width: int, kernel: int) -> tuple[nn.Module, nn.Module]:
    ours = DepthwiseConv2d(width, kernel).double()
    theirs = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize(
    ("size", "kernel"), [((37, 5, 3, 11), 3), ((23, 3, 7, 5), 7), ((13, 2, 1, 2), 5), ((11, 3, 2, 13), 7)]
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_as_torch(size: tuple[int, int, int, int], kernel: int, layout: torch.memory_format) -> None:
    torch.manual_seed(1)
    ours, theirs = pair(size[1], kernel)
    x, weights = (torch.randn(size, dtype=torch.float64).contiguous(memory_format=layout) for _ in range(2))
    torch.testing.assert_close(ours(x), theirs(x))
    assert type(ours(x).grad_fn).__name__ == "_DepthwiseBackward"
    for found, expected in zip(gradients(ours, x, weights), gradients(theirs, x, weights), strict=True):
        torch.testing.assert_close(found, expected)


def test_only_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few images of large maps take oneDNN's way, and so does a fixed layer."""
    monkeypatch.setattr(module, "gradient_of_weights", lambda *_: pytest.fail("computed by products of places"))
    torch.manual_seed(2)
    for size in ((2, 3, 5, 5), (97, 3, 17, 19)):
        ours, theirs = pair(3, 5)
        x, weights = torch.randn(size, dtype=torch.float64), torch.randn(size, dtype=torch.float64)
        torch.testing.assert_close(gradients(ours, x, weights), gradients(theirs, x, weights))
    many = torch.randn(31, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    ours.requires_grad_(False)
    ours(many).sum().backward()
    assert many.grad is not None


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (5, 2, 0), (5, 1, 1), (3, 1, 0)])
@pytest.mark.parametrize("half", [False, True])
def test_strides_and_paddings(kernel: int, stride: int, padding: int, half: bool) -> None:
    torch.manual_seed(4)
    precision = torch.bfloat16 if half else torch.float64
    x, weight = torch.randn(3, 5, 11, 7, dtype=precision), torch.randn(5, 1, kernel, kernel, dtype=precision)
    found = []
    for way in (depthwise, torch.nn.functional.conv2d):
        inputs, weights = x.clone().requires_grad_(), weight.clone().requires_grad_()
        groups = {} if way is depthwise else {"groups": 5}
        output = way(inputs, weights, None, stride, padding, **groups)
        output.backward(torch.ones_like(output))
        assert inputs.grad is not None
        assert weights.grad is not None
        found.append([output.detach(), inputs.grad, weights.grad])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == precision
        near = {"rtol": 0.03, "atol": 0.03 * float(theirs.abs().max())} if half else {}
        torch.testing.assert_close(ours, theirs, **near)


def test_in_bfloat16() -> None:
    """Autocast as it does for torch's layer: outputs in bfloat16, gradients of weights in float32."""
    torch.manual_seed(3)
    ours, theirs = (layer.float() for layer in pair(3, 5))
    x, weights = torch.randn(43, 3, 4, 5), torch.randn(43, 3, 4, 5)
    found = []
    for layer in (ours, theirs):
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
            found.append(gradients(layer, x, weights))
    assert found[0][1].dtype == torch.float32
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0.03, atol=0.03 * float(other.abs().max()))
