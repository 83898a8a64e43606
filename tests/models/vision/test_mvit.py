"""MViTv2: how many queries and keys it pools to, and positions for other sizes."""

import torch

import foveate
from foveate.nn import PooledAttention

SMALL = {"classes": 5, "channels": 1, "width": 12, "head_width": 6}


def test_where_it_attends() -> None:
    """14 x 14 queries to 7 x 7 keys; the first block of each later stage has fewer queries than places."""
    model = foveate.create("mvitv2-nano", **SMALL).eval()
    with foveate.look(model) as sight:
        model(torch.randn(2, 1, 28, 27))
    shapes = {name: sight[name].weights().shape for name in sight.sites}
    assert shapes == {
        "stages.0.0.self": (2, 2, 196, 49),
        "stages.1.0.self": (2, 4, 49, 196),
        "stages.1.1.self": (2, 4, 49, 49),
        "stages.2.0.self": (2, 8, 16, 49),
        "stages.2.1.self": (2, 8, 16, 16),
    }


def test_without_keys_that_differ_it_finds_the_mean_and_adds_the_queries() -> None:
    """Residual pooling: what the values give alike for all, and each place's own pooled query."""
    layer = PooledAttention(6, 12, heads=2, side=5, query_stride=2, key_stride=1).eval()
    for part in (layer.key_pool.norm.weight, layer.key_pool.norm.bias, layer.position.rows, layer.position.columns):
        torch.nn.init.zeros_(part)
    x = torch.randn(3, 5, 4, 6)
    queries, values = layer.query_pool(layer.query(x)), layer.value_pool(layer.value(x))
    assert queries.shape == (3, 2, 3, 2, 6)
    assert values.shape == (3, 2, 5, 4, 6)
    expected = queries + values.mean((2, 3), keepdim=True)
    torch.testing.assert_close(layer(x), layer.output(expected.permute(0, 2, 3, 1, 4).flatten(3)))


def test_only_relative_positions_tell_where_a_patch_is() -> None:
    """Images larger than those that were learned have interpolated ones: each changes what is found."""
    model = foveate.create("mvitv2-nano", **SMALL).eval()
    pixels = torch.randn(2, 1, 35, 41)
    logits = model(pixels).logits
    for name, parameter in model.named_parameters():
        if name.endswith(("position.rows", "position.columns")):
            torch.nn.init.normal_(parameter, std=0.5)
    assert (model(pixels).logits - logits).abs().amax(1).min() > 1e-3
