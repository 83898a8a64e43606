"""The map of a joint sequence, cut into parts: each is a block of the whole map."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import attend
from foveate.errors import UserError
from foveate.sight import Sight

PARTS = {"text": 3, "image": 8, "extra": 0}
EXAMPLES, HEADS = 2, 5


class Attention(nn.Module):
    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return attend(queries, keys, keys)


@pytest.fixture(scope="module")
def whole() -> Sight:
    model = nn.ModuleDict({"joint": Attention(), "other": Attention()})
    model.forward = lambda x, y: model["other"](model["joint"](x, x), y)
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(EXAMPLES, HEADS, count, 7, generator=generator) for count in (11, 6))
    with foveate.look(model) as sight:
        model(x, y)
    return sight


def test_each_part_is_a_block_of_the_map(whole: Sight) -> None:
    sight = whole.part({"joint": PARTS})
    assert sight.sites == [*(f"joint.{a}-{b}" for a in ("text", "image") for b in ("text", "image")), "other"]
    weights = whole["joint"].weights()
    blocks = {"text": slice(0, 3), "image": slice(3, 11)}
    for row, rows in blocks.items():
        for column, columns in blocks.items():
            site, block = sight[f"joint.{row}-{column}"], weights[..., rows, columns]
            assert site.shape == block.shape
            torch.testing.assert_close(site.weights(), block)
            torch.testing.assert_close(site.weights(1, [1, 0], slice(1, 3)), block[:, 1:2, [1, 0], 1:3])
            torch.testing.assert_close(site.received(), block.sum(-2))
            counted = torch.stack([block[0, :, :2].sum(-2), block[1, :, :1].sum(-2)])
            torch.testing.assert_close(site.received([2, 1]), counted)
            torch.testing.assert_close(site.share(), block.sum(-1))
            torch.testing.assert_close(site.max(), block.amax(-1))
            within = block / block.sum(-1, keepdim=True)
            torch.testing.assert_close(site.entropy(), -(within * within.log()).sum(-1))
            torch.testing.assert_close(site.top(9).weights[..., :3], block.topk(3).values)
            assert site.top(9).keys.shape == (EXAMPLES, HEADS, block.shape[2], 9)
            torch.testing.assert_close(site.pooled(), block)
            torch.testing.assert_close(site.pooled(1, 1)[..., 0, 0], block.sum(-1).mean(-1))


def test_the_page_shows_parts(whole: Sight, tmp_path) -> None:
    whole.part({"joint": PARTS}).save(tmp_path / "look.html", {"joint.image-text": (list("abcdefgh"), list("xyz"))})
    assert (tmp_path / "look.html").stat().st_size > 10_000


def test_keys_alone_are_cut(whole: Sight) -> None:
    sight = whole.part({"other": ({"image": 11}, {"text": 2, "image": 4})})
    assert sight.sites == ["joint", "other.image-text", "other.image-image"]
    total = sight["other.image-text"].share() + sight["other.image-image"].share()
    torch.testing.assert_close(total, torch.ones_like(total))


def test_parts_that_do_not_fit(whole: Sight) -> None:
    with pytest.raises(UserError, match="joint has 11 queries, but its parts are 3 of text, 7 of image"):
        whole.part({"joint": {"text": 3, "image": 7}})
    with pytest.raises(UserError, match="which matches none of the sites: joint, other"):
        whole.part({"attn": PARTS})
    with pytest.raises(UserError, match="whose positions have no common distance"):
        whole.part({"joint": PARTS})["joint.text-image"].distance()
