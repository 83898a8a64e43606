"""What DETR must do beyond computing the same as others: padding, boxes refined layer by layer, noisy boxes."""

import pytest
import torch

from foveate import create
from foveate.contracts import IGNORE
from foveate.errors import UserError
from foveate.nn import box_centres, box_corners, generalized_iou

SMALL = {"classes": 5, "width": 12, "heads": 3, "feedforward": 11, "queries": 7}


def test_padding_changes_nothing() -> None:
    """Boxes are shares of the image, not of its padding."""
    torch.manual_seed(3)
    model = create("detr-tiny", **SMALL).double().eval()
    pixels = torch.randn(2, 3, 64, 80, dtype=torch.float64)
    sizes = torch.tensor([[32, 48], [64, 80]])
    other = pixels.clone()
    other[0, :, 48:], other[0, :, :, 64:] = 7.0, 7.0  # further away than convolutions see
    model.backbone.grid = lambda images: torch.nn.functional.avg_pool2d(images, 16).repeat(1, 43, 1, 1)[:, :128]
    found, changed, alone = model(pixels, sizes), model(other, sizes), model(pixels[:1, :, :32, :48])
    torch.testing.assert_close(found.boxes, changed.boxes)
    torch.testing.assert_close(found.boxes[:1], alone.boxes)
    torch.testing.assert_close(found.logits[:1], alone.logits)


def test_a_new_refining_model_keeps_its_boxes() -> None:
    """Corrections are 0 at first, so that each layer has the boxes that the queries start from."""
    model = create("detr-refined-tiny", **SMALL).eval()
    found = model(torch.randn(2, 3, 48, 64))
    for layer in (*found.earlier, found):
        torch.testing.assert_close(layer.boxes, model.queries.boxes.sigmoid().expand(2, -1, -1))
    assert found.logits.shape == (2, 7, 5)
    assert len(found.earlier) == 2
    assert found.logits.sigmoid().mean() < 0.05


def test_places_propose_the_boxes_that_queries_start_from() -> None:
    """Those of the surest places, around these at first; nothing outside of a padded image."""
    torch.manual_seed(3)
    model = create("detr-refined-tiny", **SMALL, boxes="proposed").eval()
    found = model(torch.randn(2, 3, 48, 64), torch.tensor([[48, 64], [32, 48]]))
    proposed, first, _ = found.earlier
    assert proposed.boxes.shape == (2, 12, 4)
    assert proposed.boxes[0, :, :2].mul(24).round().int().tolist()[:5] == [[3, 4], [9, 4], [15, 4], [21, 4], [3, 12]]
    assert (proposed.logits[1, [3, 7, 8, 11]] == -30).all()
    surest = proposed.logits.amax(-1).topk(7, 1).indices
    torch.testing.assert_close(first.boxes, proposed.boxes.gather(1, surest[..., None].expand(-1, -1, 4)))
    few = model(torch.randn(2, 3, 32, 32))
    assert few.boxes.shape == (2, 4, 4)


def test_noisy_boxes_change_nothing_that_queries_find() -> None:
    """Nor does one group change what another finds, nor padding; but the queries may be seen by them."""
    torch.manual_seed(3)
    model = create("detr-refined-tiny", **SMALL).double()
    for parameter in model.box.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    pixels = torch.randn(2, 3, 48, 64, dtype=torch.float64)
    boxes = torch.rand(2, 3, 2, 4, dtype=torch.float64)
    labels = torch.tensor([[1, 4], [2, IGNORE]])[:, None].repeat(1, 3, 1)
    found, without = model(pixels, None, boxes, labels), model(pixels)
    torch.testing.assert_close(found.boxes, without.boxes)
    torch.testing.assert_close(found.logits, without.logits)
    assert without.denoised is None
    assert found.denoised.boxes.shape == (2, 6, 4)
    changed = boxes.clone()
    changed[:, 1], changed[1, :, 1] = 0.3, 0.9
    other = model(pixels, None, changed, labels)
    torch.testing.assert_close(other.boxes, found.boxes)
    same = [[True, True, False, False, True, True], [True, False, False, False, True, False]]
    difference = (other.denoised.boxes - found.denoised.boxes).abs().amax(-1)
    assert (difference < 1e-12).tolist() == same


def test_generalized_iou_by_hand() -> None:
    """Half-overlapping, apart, equal, and without area."""
    one = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [1, 2, 3, 5], [1, 1, 1, 1]])
    other = torch.tensor([[1.0, 0, 3, 2], [2, 0, 3, 1], [1, 2, 3, 5], [1, 1, 1, 1]])
    torch.testing.assert_close(generalized_iou(one, other), torch.tensor([2 / 6, -1 / 3, 1.0, 0.0]))
    torch.testing.assert_close(box_corners(box_centres(one)), one)
    assert box_centres(one)[2].tolist() == [2, 3.5, 2, 3]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"backbone": "transformer-tiny"}, "transformer-tiny"),
        ({"width": 14, "heads": 2}, "width is 14, but must be a multiple of 4"),
        ({"denoising": 3}, 'denoising needs boxes="refined" or "proposed"'),
        ({"boxes": "curved"}, "curved"),
    ],
)
def test_what_cannot_be(fields: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        create("detr-tiny", **{**SMALL, **fields})
