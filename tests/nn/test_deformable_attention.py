"""Deformable attention against transformers' module (Zhu et al. 2021)."""

import pytest
import torch
from transformers import DeformableDetrConfig
from transformers.models.deformable_detr.modeling_deformable_detr import DeformableDetrMultiscaleDeformableAttention

from foveate import look
from foveate.interop.keys.deformable_detr import POINTS
from foveate.nn import DeformableAttention, FeatureMaps

GRIDS = (5, 7), (3, 4)


@pytest.mark.parametrize("coordinates", [2, 4], ids=["points", "boxes"])
def test_as_transformers(coordinates: int) -> None:
    """Outputs and gradients in double precision, with padding."""
    torch.manual_seed(3)
    layer = DeformableAttention(width=12, heads=3, levels=2, points=2).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    other = DeformableDetrMultiscaleDeformableAttention(DeformableDetrConfig(d_model=12, num_feature_levels=2), 3, 2)
    parts = ((name.split("."), value) for name, value in layer.state_dict().items())
    other.double().load_state_dict({f"{POINTS[part]}.{leaf}": value for (part, leaf), value in parts})
    grids = [torch.randn(2, 12, *grid, dtype=torch.float64) for grid in GRIDS]
    maps = FeatureMaps.of(grids, torch.randn(2, 3, 40, 56), torch.tensor([[40, 56], [29, 33]]))
    x, positions = torch.randn(2, 2, 11, 12, dtype=torch.float64)
    around = torch.rand(2, 11, coordinates, dtype=torch.float64)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    with look(layer) as sight:
        found = layer(ours, maps, maps.places, around, positions)
    expected, _ = other(
        theirs,
        attention_mask=maps.inside,
        encoder_hidden_states=maps.places,
        position_embeddings=positions,
        reference_points=maps.around(around),
        spatial_shapes=torch.tensor(GRIDS),
        spatial_shapes_list=[*GRIDS],
    )
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    for output in (found, expected):
        output.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-10, rtol=0)
    assert sight[sight.sites[0]].shape == (2, 3, 11, 47)
