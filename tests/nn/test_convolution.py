"""The gated convolution: against torch's convolution, and by hand."""

import torch
import torch.nn.functional as F

from foveate.nn import GatedConvolution


def test_as_torch_convolves() -> None:
    layer, x = GatedConvolution(5, kernel=3), torch.randn(2, 11, 5)
    # torch has the taps last: (output, input, tap)
    weight = layer.linear.weight.view(10, 3, 5).mT
    expected = F.glu(F.conv1d(x.mT, weight, layer.linear.bias), 1).mT
    torch.testing.assert_close(layer(x), expected)
    assert layer(x).shape == (2, 9, 5)


def test_by_hand() -> None:
    """The last position minus the first, half of it let through."""
    layer = GatedConvolution(1, kernel=2)
    with torch.no_grad():
        layer.linear.weight.copy_(torch.tensor([[-1.0, 1.0], [0.0, 0.0]]))
        layer.linear.bias.zero_()
    assert layer(torch.tensor([[[1.0], [4.0], [2.0]]])).tolist() == [[[1.5], [-1.0]]]


def test_one_step_is_the_end_of_many() -> None:
    layer, x = GatedConvolution(5, kernel=4), torch.randn(3, 7, 5)
    torch.testing.assert_close(layer(x[:, -4:]), layer(x)[:, -1:])
