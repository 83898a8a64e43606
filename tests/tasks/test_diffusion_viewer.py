"""`foveate look` at text-to-image pipelines of diffusers."""

import json
import shutil
from pathlib import Path

import PIL.Image
import pytest
import torch
from diffusion_models import SIDE, TOKENS, save_pipelines

from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.viewers import open_model
from foveate.tasks.viewers.diffusion import PipelineViewer
from foveate.tasks.viewers.diffusion_words import join_pieces, mean_word_maps
from foveate.tasks.viewers.joint import grid_size, parts_of
from foveate.viewer.sides import Image

CAPTION = "red apple left of dogs"
WORDS = ["red", "apple", "left", "of", "do", "·g", "·s"]

WITHOUT_T5 = 256
"""Empty positions after the tokens where Stable Diffusion 3 has no T5."""


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return save_pipelines(tmp_path_factory.mktemp("pipelines"))


def viewer(folder: Path) -> PipelineViewer:
    found = open_model(folder)
    assert isinstance(found, PipelineViewer)
    found.steps = 3
    return found


@pytest.mark.parametrize("name", ["unet", "joint"])
def test_words_over_places(pipelines: dict[str, Path], name: str) -> None:
    seen = viewer(pipelines[name]).look(CAPTION, 4096)
    count = TOKENS if name == "unet" else TOKENS + WITHOUT_T5
    over = [site for site in seen.sight.sites if seen.sight[site].shape[3] == count != seen.sight[site].shape[2]]
    assert over
    for site in over:
        places, words = seen.tokens[site]
        assert isinstance(places, Image)
        assert words[1 : 1 + len(WORDS)] == WORDS
    panels = [panel for panel in seen.document().sites if not panel.rollout]
    assert [panel.queries.count for panel in panels] == [seen.sight[site].shape[2] for site in seen.sight.sites]
    assert "Step 2 of 3, seed 0." in seen.notes


def test_only_the_caption_is_read(pipelines: dict[str, Path]) -> None:
    """Of guided steps, the half without the caption is left out: another caption changes the map of its places."""
    site = "mid_block.attentions.0.transformer_blocks.0.attn2"
    first, again, other = (
        viewer(pipelines["unet"]).look(caption, 4096, [site]).sight for caption in (CAPTION, CAPTION, "dog of red")
    )
    assert first[site].shape[0] == 1
    assert torch.equal(first[site].weights(), again[site].weights())
    assert not torch.allclose(first[site].weights(), other[site].weights(), atol=1e-4)


def test_the_command_draws_the_words(pipelines: dict[str, Path], tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("foveate.tasks.viewers.diffusion.STEPS", 3)
    page, strip = tmp_path / "look.html", tmp_path / "words.png"
    main(["look", str(pipelines["joint"]), CAPTION, "--out", str(page), "--picture", str(strip)])
    assert "head" in capsys.readouterr().out
    assert page.stat().st_size > 10_000
    with PIL.Image.open(strip) as picture:
        assert picture.width > 400


def test_pieces_of_a_word_are_joined() -> None:
    maps = torch.arange(5.0).reshape(5, 1, 1).expand(5, 2, 2)
    words, found = join_pieces(["<s>", "ap", "·ple", "dog", "</s>"], maps)
    assert words == ["apple", "dog"]
    assert found[:, 0, 0].tolist() == [3.0, 3.0]


def test_word_maps_are_means_over_sites(pipelines: dict[str, Path]) -> None:
    sight = viewer(pipelines["joint"]).look(CAPTION, 4096).sight
    sites = [sight[site] for site in sight.sites if site.endswith("image-text")]
    expected = torch.stack([site.weights()[0].mean(0) for site in sites]).mean(0).mean(0)
    torch.testing.assert_close(
        mean_word_maps([sight], sites[0].shape[3], 1.0).mean((1, 2)), expected, atol=1e-4, rtol=1e-3
    )
    assert sites[0].shape[2] == SIDE * SIDE


def test_sizes_of_grids() -> None:
    assert grid_size(4096, 1.0) == (64, 64)
    assert grid_size(24, 1.5) == (4, 6)
    assert grid_size(333, 1.0) is None
    assert parts_of(77 + 4096, 77, 1.0, True) == {"extra": 0, "text": 77, "image": 4096}
    assert parts_of(8 + 77 + 4096, 77, 1.0, True) == {"extra": 8, "text": 77, "image": 4096}
    assert list(parts_of(77 + 4096, 77, 1.0, False) or ()) == ["image", "text", "extra"]
    assert parts_of(4096, 77, 1.0, True) is None
    assert parts_of(77, 77, 1.0, True) is None


def test_mistakes(pipelines: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the text is empty"):
        viewer(pipelines["unet"]).look(" ", 4096)
    with pytest.raises(UserError, match="the image has 16 places, but the limit is 9"):
        viewer(pipelines["unet"]).look(CAPTION, 9)
    folder = tmp_path / "code"
    shutil.copytree(pipelines["unet"], folder)
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps({**index, "unet": ["my_code", "Model"]}))
    with pytest.raises(UserError, match="its unet is code of the folder or of my_code, which is never run"):
        open_model(folder)
    (folder / "model_index.json").write_text(json.dumps(index))
    (folder / "unet" / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(UserError, match="cannot open"):
        open_model(folder)
