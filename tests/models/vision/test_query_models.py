"""Models whose queries are named: those of points and those of classes. What they do beyond what every model does."""

import pytest
import torch

from foveate import create
from foveate.errors import UserError

SMALL = {"width": 12, "heads": 3, "feedforward": 11}

PIXELS, SIZES = (
    torch.randn(2, 3, 64, 80, generator=torch.Generator().manual_seed(3)),
    torch.tensor([[32, 48], [64, 80]]),
)


def with_local_grid(model: torch.nn.Module) -> torch.nn.Module:
    """The model on a feature map of means of 16 x 16 pixels, in which places do not see their surroundings."""
    width = model.backbone.grid_width
    model.backbone.grid = lambda images: torch.nn.functional.avg_pool2d(images, 16).repeat(1, width, 1, 1)[:, :width]
    return model.double().eval()


def changed_padding() -> torch.Tensor:
    other = PIXELS.clone()
    other[0, :, 32:], other[0, :, :, 48:] = 7.0, 7.0
    return other.double()


def test_points_are_shares_of_the_image_and_not_of_its_padding() -> None:
    model = with_local_grid(create("pose-tiny", points=5, **SMALL))
    found, changed = model(PIXELS.double(), SIZES), model(changed_padding(), SIZES)
    alone = model(PIXELS[:1, :, :32, :48].double())
    for name in ("points", "spread", "logits"):
        torch.testing.assert_close(getattr(found, name), getattr(changed, name))
        torch.testing.assert_close(getattr(found, name)[:1], getattr(alone, name))
    assert ((found.points > 0) & (found.points < 1)).all()


def test_a_point_moves_with_what_its_query_looks_at() -> None:
    """A query that looks at one place alone gives the centre of that place, and has no spread."""
    model = with_local_grid(create("pose-tiny", points=2, **SMALL))
    locate = model.decoder.cross
    torch.nn.init.zeros_(locate.query.weight)
    locate.query.bias.data[:] = 0
    found = model(PIXELS.double())
    torch.testing.assert_close(found.points, torch.full((2, 2, 2), 0.5).double())
    keys, query = torch.zeros(1, 4, 12).double(), torch.zeros(1, 1, 12).double()
    keys[0, 2, 0] = query[0, 0, 0] = 1
    locate.query.weight.data = 1e4 * torch.eye(12).double()
    locate.key.weight.data = torch.eye(12).double()
    places = torch.tensor([[[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]]).double()
    points, spread = locate(query, keys, places, torch.ones(1, 1, 1, 4, dtype=torch.bool))
    assert points.tolist() == [[[0.25, 0.75]]]
    assert spread.item() == pytest.approx(1e-3)


def test_classes_do_not_look_at_padding() -> None:
    model = with_local_grid(create("segmenter-tiny", classes=3, **SMALL))
    given = (PIXELS.double(), changed_padding())
    found, changed = (model(pixels, SIZES).logits.unflatten(1, (64, 80)) for pixels in given)
    torch.testing.assert_close(found[0, :24, :40], changed[0, :24, :40])
    torch.testing.assert_close(found[1], changed[1])
    alone = model(PIXELS[:1, :, :32, :48].double()).logits.unflatten(1, (32, 48))
    torch.testing.assert_close(found[:1, :24, :40], alone[:, :24, :40])


@pytest.mark.parametrize("preset", ["pose-tiny", "segmenter-tiny"])
def test_widths_that_no_waves_fit(preset: str) -> None:
    sizes = {"points": 2} if preset == "pose-tiny" else {"classes": 2}
    with pytest.raises(UserError, match="width is 6, but must be a multiple of 4"):
        create(preset, **sizes, width=6, heads=2)
