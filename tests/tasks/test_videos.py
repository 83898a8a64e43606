"""Video models of transformers: the patches of all frames are one picture, whatever they attend to at once."""

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.overrides import TorchFunctionMode

from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.viewers import open_model
from foveate.tasks.viewers.videos import Film
from foveate.viewer.protocol import File

transformers = pytest.importorskip("transformers")

SIZES = {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 28}

FRAMES, ROWS, COLUMNS = 6, 3, 3
"""The film that each model reads: 6 steps of 3 x 3 patches."""


def videomae() -> Any:
    """Steps of two frames, of which all patches see each other."""
    return transformers.VideoMAEForVideoClassification(
        transformers.VideoMAEConfig(**SIZES, image_size=12, patch_size=4, num_frames=12, tubelet_size=2)
    )


def vivit() -> Any:
    """The same, behind a class token."""
    config = transformers.VivitConfig(**SIZES, image_size=12, num_frames=12, tubelet_size=[2, 4, 4])
    return transformers.VivitForVideoClassification(config)


def timesformer(kind: str = "divided_space_time") -> Any:
    """Attention along time, then within each frame and a class token."""
    config = transformers.TimesformerConfig(**SIZES, image_size=12, patch_size=4, num_frames=6, attention_type=kind)
    return transformers.TimesformerForVideoClassification(config)


def timesformer_joint() -> Any:
    """All patches at once, the frames innermost."""
    return timesformer("joint_space_time")


KINDS = {"videomae": videomae, "vivit": vivit, "timesformer": timesformer, "timesformer_joint": timesformer_joint}


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A kind, and its folder."""
    torch.manual_seed(5)
    model = KINDS[request.param]()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(tmp_path / "model")
    return request.param, tmp_path / "model"


def film(frames: list[np.ndarray], path: Path) -> bytes:
    """An animated PNG, which keeps colours."""
    first, *more = [PIL.Image.fromarray(frame) for frame in frames]
    first.save(path, format="PNG", save_all=True, append_images=more)
    return path.read_bytes()


def noise() -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.integers(0, 255, (12, 12, 3), np.uint8) for _ in range(12)]


def sites_of(kind: str) -> list[str]:
    """The ends of the names of the sites of one layer."""
    if kind == "timesformer":
        return ["film-film", "film-film"]
    return ["film-film"] if kind == "videomae" else ["class-film", "film-film"]


def test_the_axis_is_a_film(case: tuple[str, Path], tmp_path: Path) -> None:
    kind, folder = case
    found = open_model(folder).look(File("film.png", film(noise(), tmp_path / "film.png")), 4096)
    assert [site.rpartition(".")[2] for site in found.sight.sites] == 2 * sites_of(kind)
    for name in found.sight.sites:
        queries, keys = found.tokens[name]  # type: ignore[misc]
        assert (keys.height, keys.width) == (2 * ROWS, 3 * COLUMNS)  # type: ignore[union-attr]
        assert queries == ["[CLASS]"] or queries == keys
        weights = found.sight[name].weights()
        assert weights.shape[2:] == (1 if "class" in name else 54, 54)
        assert float(weights.sum(-1).max()) < 1 + 1e-5
    assert found.notes[1].startswith("Prediction: ")


def test_a_map_is_that_of_the_whole_model(case: tuple[str, Path], tmp_path: Path) -> None:
    """The rows of a patch, in the order in which frames, rows and columns are shown, by hand from the whole maps."""
    kind, folder = case
    found = open_model(folder).look(File("film.png", film(noise(), tmp_path / "film.png")), 4096)
    shown = found.sight[next(site for site in found.sight.sites if site.endswith("film-film"))].weights()[0]
    theirs = type(KINDS[kind]()).from_pretrained(folder, attn_implementation="eager").eval()
    last = 12 if kind in ("videomae", "vivit") else 6
    chosen = [noise()[round(step * 11 / (last - 1))] for step in range(last)]
    pixels = torch.from_numpy(np.stack(chosen)).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad(), Softmaxes() as seen:
        theirs((pixels[None] - 0.5) / 0.5)
    for position in (0, 7, 31, 53):
        line, rest = divmod(position, 27)
        row, across = divmod(rest, 9)
        frame, column = 3 * line + across // 3, across % 3
        for key in (5, 20, 40, 52):
            key_line, key_rest = divmod(key, 27)
            key_row, key_across = divmod(key_rest, 9)
            place = (frame, row, column), (3 * key_line + key_across // 3, key_row, key_across % 3)
            expected = by_hand(kind, seen.made[0], *place)
            torch.testing.assert_close(shown[:, position, key], expected, atol=5e-5, rtol=0)


class Softmaxes(TorchFunctionMode):
    """Keeps what softmaxes return: the first is that of the first layer's first attention."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[torch.Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func in (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax):
            self.made.append(found)
        return found


def by_hand(kind: str, maps: torch.Tensor, query: tuple[int, int, int], key: tuple[int, int, int]) -> torch.Tensor:
    """The weights (H,) of one patch on another."""
    (frame, row, column), (other, key_row, key_column) = query, key
    if kind == "timesformer":
        return maps[row * 3 + column, :, frame, other] * ((row, column) == (key_row, key_column))
    if kind == "timesformer_joint":
        return maps[0, :, 1 + (row * 3 + column) * 6 + frame, 1 + (key_row * 3 + key_column) * 6 + other]
    first = 1 if kind == "vivit" else 0
    return maps[0, :, first + frame * 9 + row * 3 + column, first + other * 9 + key_row * 3 + key_column]


def test_attention_within_frames_stays_within_them(tmp_path: Path) -> None:
    torch.manual_seed(5)
    timesformer().save_pretrained(tmp_path / "model")
    found = open_model(tmp_path / "model").look(File("film.png", film(noise(), tmp_path / "film.png")), 4096)
    spatial = found.sight[next(site for site in found.sight.sites if "temporal" not in site)].weights()[0, 0]
    frames = torch.tensor([place[0] for place in Film(FRAMES, ROWS, COLUMNS).order()])
    same = frames[:, None] == frames
    assert not spatial[~same].any()
    assert (spatial[same] > 0).all()
    assert spatial.sum(-1).max() < 1  # the class token has the rest


def test_frames_one_after_the_other(case: tuple[str, Path], tmp_path: Path) -> None:
    _, folder = case
    film(noise(), tmp_path / "film.png")
    main(["look", str(folder), str(tmp_path / "film.png"), "--out", str(tmp_path / "seen.gif")])
    with PIL.Image.open(tmp_path / "seen.gif") as moving:
        assert moving.n_frames == FRAMES + 1
    main(["look", str(folder), str(tmp_path / "film.png"), "--out", str(tmp_path / "look.html")])
    assert "Frames stand beside each other" in (tmp_path / "look.html").read_text()


def test_a_still_picture_is_no_film(case: tuple[str, Path], tmp_path: Path) -> None:
    _, folder = case
    PIL.Image.fromarray(noise()[0]).save(tmp_path / "still.png")
    with pytest.raises(UserError, match=r"still\.png does not move: this model reads films"):
        open_model(folder).look(File("still.png", (tmp_path / "still.png").read_bytes()), 4096)


def test_frames_are_a_grid_that_is_wider_than_high() -> None:
    assert [Film(count, 1, 1).across for count in (1, 2, 4, 6, 8, 16, 7)] == [1, 2, 2, 3, 4, 4, 7]
    assert Film(4, 1, 2).order() == [
        (0, 0, 0),
        (0, 0, 1),
        (1, 0, 0),
        (1, 0, 1),
        (2, 0, 0),
        (2, 0, 1),
        (3, 0, 0),
        (3, 0, 1),
    ]
    assert [place[0] for place in Film(4, 2, 1).order()] == [0, 1, 0, 1, 2, 3, 2, 3]
