"""Attention between the places of a feature map: against the paper's equations, and seen from outside."""

import torch

import foveate
from foveate.nn import FeatureMapAttention


def equations(layer: FeatureMapAttention, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Equations 1 to 3 of Zhang et al. 2019, place by place: the weights beta and the output y."""
    g, f, h, v = (part.weight[:, :, 0, 0] for part in (layer.query, layer.key, layer.value, layer.output))
    places = [x[:, row, column] for row in range(x.shape[1]) for column in range(x.shape[2])]
    beta, y = [], []
    for own in places:
        s = torch.stack([(f @ other) @ (g @ own) for other in places])
        beta.append(s.exp() / s.exp().sum())
        o = v @ sum(weight * (h @ other) for weight, other in zip(beta[-1], places, strict=True))
        y.append(layer.scale * o + own)
    return torch.stack(beta), torch.stack(y, 1).view(x.shape)


def test_by_the_equations() -> None:
    layer = FeatureMapAttention(17)
    assert layer.query.weight.shape == (2, 17, 1, 1)
    torch.nn.init.constant_(layer.scale, 0.7)
    x = torch.randn(2, 17, 3, 5)
    with foveate.look(layer) as sight:
        found = layer(x)
    for image in range(2):
        beta, expected = equations(layer, x[image])
        torch.testing.assert_close(found[image], expected)
        torch.testing.assert_close(sight[sight.sites[0]].weights()[image, 0], beta)


def test_it_starts_as_the_identity_and_learns_its_scale_first() -> None:
    layer, x = FeatureMapAttention(11, inner=3), torch.randn(2, 11, 7, 5)
    assert torch.equal(layer(x), x)
    (layer(x) * torch.randn_like(x)).sum().backward()
    assert layer.scale.grad.abs() > 0
    assert not layer.query.weight.grad.any()
