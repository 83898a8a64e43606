"""Image models that look within windows: their maps are put back in place, whatever they pad, roll and halve."""

# ruff: noqa: E402
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

from tiny_folders import looked, picture

from foveate.sight import Windows
from foveate.tasks.viewers import open_model
from foveate.tasks.viewers.windows import has_windows

Folders = Callable[[str], Path]

PADDED = "Windows at the edges contain padding, which is not shown."


def drawn(model: nn.Module) -> None:
    """New numbers for all parameters: those of a new model are zeros where places and padding matter."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)


class Around:
    """What goes into layers, and into their parts that come behind attention."""

    def __init__(self, layers: list[Any], behind: str) -> None:
        self.before: list[Tensor] = []
        self.after: list[Tensor] = []
        for layer in layers:
            layer.register_forward_pre_hook(lambda module, given: self.before.append(given[0].clone()))
            getattr(layer, behind).register_forward_pre_hook(lambda module, given: self.after.append(given[0].clone()))


def output(weights: Tensor, values: Tensor, on_padding: Tensor, project: nn.Module) -> Tensor:
    """What attention makes of values (1, H, S, D), where what no patch gets goes to values (H, 1, D) of padding."""
    left = 1 - weights.sum(-1, keepdim=True)
    return project((weights @ values + left * on_padding).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("size", [(32, 32), (26, 44)])
@torch.no_grad()
def test_swin(folders: Folders, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    """Every patch of the picture looks where its layer's output came from, past padding and shifts."""
    monkeypatch.setattr("foveate.tasks.viewers.images._size", lambda config: size)
    viewer = open_model(folders("swin"))
    drawn(viewer.model)
    layers = [layer for stage in viewer.model.encoder.layers for layer in stage.blocks]
    around = Around(layers, "layernorm_after")
    seen = viewer.look(picture(), 4096)
    assert seen.notes == [viewer.name, *([PADDED] if size != (32, 32) else [])]
    assert [layer.shift_size for layer in layers] == [0, 2, 0]
    height, width = -(-size[0] // 4), -(-size[1] // 4)
    assert [seen.sight[name].shape[2] for name in seen.sight.sites[:2]] == [height * width] * 2
    for place, (name, layer) in enumerate(zip(seen.sight.sites, layers, strict=True)):
        weights, attention = seen.sight[name].weights(), layer.attention
        values = attention.v_proj(layer.layernorm_before(around.before[place])).unflatten(-1, (weights.shape[1], -1))
        on_padding = attention.v_proj.bias.view(weights.shape[1], 1, -1)
        found = output(weights, values.transpose(1, 2), on_padding, attention.o_proj)
        assert torch.allclose(found, around.after[place] - around.before[place], atol=1e-5)
        image, _ = seen.tokens[name]
        assert image.height * image.width == weights.shape[2]
    image, _ = seen.tokens[seen.sight.sites[1]]
    assert (image.height, image.width) == (height, width)
    panel = seen.document().sites[1]
    assert panel.windows == (Windows(height, width, (4, 4), (2, 2)),) * 2
    assert panel.keys.picture is not None


@pytest.mark.parametrize("side", [40, 56, 24])
@torch.no_grad()
def test_sam(folders: Folders, monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    """Windows of 4 x 4 in 5 x 5, 7 x 7 and 3 x 3 patches of 8 pixels: all padded, the last to a single window."""
    folder = folders(f"sam-{side}")
    viewer = open_model(folder)
    drawn(viewer.model)
    layers = list(viewer.model.vision_encoder.layers)
    around = Around(layers, "layer_norm2")
    seen = viewer.look(picture(), 4096)
    assert seen.notes == [viewer.name, PADDED]
    patches = side // 8
    for place, (name, layer) in enumerate(zip(seen.sight.sites, layers, strict=True)):
        weights, heads = seen.sight[name].weights(), layer.attn.num_attention_heads
        assert weights.shape == (1, heads, patches**2, patches**2)
        inside = layer.layer_norm1(around.before[place]).flatten(1, 2)
        values = layer.attn.qkv(inside).chunk(3, -1)[2].unflatten(-1, (heads, -1)).transpose(1, 2)
        on_padding = layer.attn.qkv.bias.chunk(3)[2].view(heads, 1, -1)
        found = output(weights, values, on_padding, layer.attn.proj)
        assert torch.allclose(found, (around.after[place] - around.before[place]).flatten(1, 2), atol=1e-5)
        image, _ = seen.tokens[name]
        assert (image.height, image.width) == (patches, patches)


@torch.no_grad()
def test_sam2(folders: Folders) -> None:
    """Where it halves the patches, a query is the largest of four, and looks at the window of all of them."""
    viewer = open_model(folders("sam2"))
    drawn(viewer.model)
    layers = list(viewer.model.backbone.blocks)
    around = Around(layers, "layer_norm2")
    seen = viewer.look(picture(), 4096)
    sizes = [(16, 16, 8), (8, 16, 8), (8, 8, 4), (4, 8, 4)]
    for place, (queries, keys, window) in enumerate(sizes):
        name, attention = seen.sight.sites[place], layers[place].attn
        heads = attention.num_attention_heads
        whole = attention.qkv(layers[place].layer_norm1(around.before[place])).chunk(3, -1)
        q, k = (part.permute(0, 3, 1, 2) for part in whole[:2])
        q = F.adaptive_max_pool2d(q, queries)
        q, k = (part.flatten(2).unflatten(1, (heads, -1)).mT for part in (q, k))
        own, other = (torch.arange(side) // (window * side // keys) for side in (queries, keys))
        own, other = (side[:, None] * keys + side for side in (own, other))
        scores = (q @ k.mT * attention.scale).masked_fill(own.view(-1, 1) != other.flatten(), -torch.inf)
        site = seen.sight[name]
        assert torch.allclose(site.weights(), scores.softmax(-1), atol=1e-5)
        (over, along) = seen.tokens[name]
        assert (over.height, along.height, site.windows[1].window) == (queries, keys, (window, window))
    assert seen.notes == [viewer.name]
    seen.document()


def test_a_sam_of_many_patches_is_not_too_large(folders: Folders) -> None:
    """Its windows make small maps of them."""
    viewer = open_model(folders("sam2"))
    assert has_windows(viewer.model)
    assert viewer.look(picture(), 255).sight.sites
    assert not has_windows(open_model(folders("vit")).model)


def test_parts_of_an_image_whose_places_nobody_says(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.tasks.viewers.windows._windowed", lambda model, path: None)
    seen = looked(folders("swin"), picture())
    first = seen.sight.sites[0]
    assert seen.sight[first].shape[0] == 4
    assert seen.tokens[first] is None
    assert (
        seen.notes[1]
        == f"{first} and similar modules attend to parts of the image separately; the first part is shown."
    )
    seen.document()
