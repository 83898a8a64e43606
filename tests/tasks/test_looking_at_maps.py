"""Looking at models that attend within windows: one map of the whole picture for each layer."""

import torch

import foveate
from foveate.forms.grids import look_at_maps

PATCHES = torch.arange(14 * 14).view(14, 14)


def test_windows_are_merged() -> None:
    """A place sees its window: 3 x 3 places, and in every second layer those of windows shifted by one."""
    sizes = {"classes": 5, "channels": 1, "width": 12, "head_width": 4, "window": 3}
    model = foveate.create("swin-nano", **sizes).eval()
    pixels = torch.randn(1, 1, 28, 28)
    sight = look_at_maps(model, lambda: model(pixels))
    for block, corner in enumerate((PATCHES[3:6, 9:12], PATCHES[4:7, 7:10])):
        weights = sight[f"stages.0.{block}.self.attention"].weights()
        assert weights.shape == (1, 3, 196, 196)
        row = weights[0, :, 5 * 14 + 9]
        assert torch.equal(row[0].nonzero().flatten(), corner.flatten())
        torch.testing.assert_close(row.sum(-1), torch.ones(3))
    assert not model.stages[0][0].self._forward_pre_hooks


def test_a_model_without_windows_is_looked_at_as_it_is() -> None:
    model = foveate.create("mvitv2-nano", classes=5, channels=1, width=12, head_width=6).eval()
    pixels = torch.randn(1, 1, 28, 28)
    sight = look_at_maps(model, lambda: model(pixels), ["stages.1.*"])
    assert {name: sight[name].shape for name in sight.sites} == {
        "stages.1.0.self": (1, 4, 49, 196),
        "stages.1.1.self": (1, 4, 49, 49),
    }
