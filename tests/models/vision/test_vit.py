"""The vision Transformer: its patches, positions and sites, and what it refuses."""

import pytest
import torch

import foveate
from foveate.contracts import GridEncoder
from foveate.errors import UserError

SMALL = {"classes": 5, "channels": 1, "width": 12, "heads": 3, "feedforward": 11, "layers": 2}


def test_where_it_attends() -> None:
    """The class token and 7 x 7 patches attend to each other in each layer."""
    model = foveate.create("vit-tiny", **SMALL).eval()
    with foveate.look(model) as sight:
        model(torch.randn(2, 1, 28, 28))
    assert sight.sites == ["stack.blocks.0.self", "stack.blocks.1.self"]
    weights = sight["stack.blocks.1.self"].weights()
    assert weights.shape == (2, 3, 50, 50)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 50))


def test_attention_pooling_has_a_site_of_its_own() -> None:
    model = foveate.create("vit-tiny", **SMALL, pooling="attention").eval()
    with foveate.look(model) as sight:
        model(torch.randn(2, 1, 28, 28))
    assert sight.sites == ["stack.blocks.0.self", "stack.blocks.1.self", "pool.attention"]
    assert sight["pool.attention"].weights().shape == (2, 3, 1, 49)


@pytest.mark.parametrize("pooling", ["token", "mean"])
def test_the_feature_map_has_a_place_for_each_patch(pooling: str) -> None:
    """Without the class token, and row by row."""
    model = foveate.create("vit-tiny", **SMALL, pooling=pooling).eval()
    assert isinstance(model, GridEncoder)
    pixels = torch.randn(2, 1, 12, 20)
    grid, encoded = model.grid(pixels), model.encode(pixels)
    assert grid.shape == (2, model.grid_width, 12 // model.stride, 20 // model.stride)
    torch.testing.assert_close(grid[:, :, 2, 1], encoded[:, (pooling == "token") + 2 * 5 + 1])


def test_positions_tell_where_a_patch_is() -> None:
    """Without them the mean of the patches is the same in any order."""
    model = foveate.create("vit-tiny", **SMALL, pooling="mean").eval()
    pixels = torch.randn(2, 1, 28, 28)
    moved = pixels.roll(4, 3)
    assert not torch.allclose(model(moved).logits, model(pixels).logits, atol=1e-4)
    torch.nn.init.zeros_(model.positions)
    torch.testing.assert_close(model(moved).logits, model(pixels).logits)


def test_positions_are_interpolated_in_rows_and_columns() -> None:
    """With three times the rows and five times the columns, the middle of each such block has the learned position."""
    model = foveate.create("vit-tiny", **SMALL)
    token, places = model.interpolate_positions(model.positions, 21, 35)
    middles = places.unflatten(1, (21, 35))[:, 1::3, 2::5].flatten(1, 2)
    torch.testing.assert_close(torch.cat([token, middles], 1), model.positions)
    assert model.interpolate_positions(model.positions, 7, 7)[1].equal(model.positions[:, 1:])


def test_images_that_do_not_divide_into_patches() -> None:
    model = foveate.create("vit-tiny", **SMALL)
    with pytest.raises(UserError) as caught:
        model(torch.randn(2, 1, 28, 27))
    message = "images of 28 x 27 pixels do not divide into patches of 4 x 4: use multiples of 4, such as 28 x 28"
    assert str(caught.value) == message
    with pytest.raises(UserError, match="image_size 28 is not a multiple of patch 5"):
        foveate.create("vit-tiny", **SMALL, patch=5)


def test_a_hybrid_reads_the_places_of_a_feature_map() -> None:
    """Resnet20 makes 28 x 28 pixels 7 x 7 places; images of other sizes have any number of them."""
    model = foveate.create("vit-hybrid-tiny", **SMALL).eval()
    with foveate.look(model) as sight:
        model(torch.randn(2, 1, 28, 28))
    assert sight["stack.blocks.0.self"].weights().shape == (2, 3, 50, 50)
    pixels = torch.randn(2, 1, 23, 33)
    assert model.grid(pixels).shape == (2, 12, 6, 9)
    places = model.embed(pixels).flatten(2).mT
    token, learned = model.interpolate_positions(model.positions, 6, 9)
    expected = model.stack(torch.cat([(model.class_token + token).expand(2, -1, -1), places + learned], 1))
    torch.testing.assert_close(model.encode(pixels), expected)


def test_without_positions_patches_in_any_order_are_the_same_image() -> None:
    model = foveate.create("vit-tiny", **SMALL, positions="none").eval()
    waves = foveate.create("vit-tiny", **SMALL, positions="sinusoidal").eval()
    waves.load_state_dict(model.state_dict())
    pixels = torch.randn(2, 1, 28, 28)
    moved = pixels.roll(4, 3)
    torch.testing.assert_close(model(moved).logits, model(pixels).logits)
    assert not torch.allclose(waves(moved).logits, waves(pixels).logits, atol=1e-4)
