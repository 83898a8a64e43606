"""Attention to points of feature maps: of foveate's own models, of transformers, and written out by hand."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from image_folders import models, scramble
from torch import Tensor, nn

import foveate
from foveate import UserError
from foveate.attention.points import finest, on_finest_grid
from foveate.nn import DeformableAttention
from foveate.nn.feature_maps import FeatureMaps
from foveate.sight import Knock, Scale, change, look

GRIDS = ((5, 7), (3, 4), (2, 2))
PLACES = sum(rows * columns for rows, columns in GRIDS)
WIDTH, HEADS, POINTS, QUERIES = 22, 2, 3, 11


class ByHand(nn.Module):
    """Attention to points as research code writes it, which lays out its samples in one of several ways."""

    def __init__(self, layout: str, points: tuple[int, ...] = (POINTS,) * len(GRIDS)) -> None:
        super().__init__()
        self.num_heads, self.layout, self.points = HEADS, layout, points
        self.logits, self.value = nn.Linear(WIDTH, HEADS * sum(points)), nn.Linear(WIDTH, WIDTH)
        self.offsets = nn.Linear(WIDTH, HEADS * sum(points) * 2)
        self.options: dict[str, Any] = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False}

    def places(self, x: Tensor) -> Tensor:
        """(B, T, H, N, 2), some of them outside of the maps."""
        return self.offsets(x).unflatten(-1, (HEADS, -1, 2)) * 0.6 + 0.5

    def weights(self, x: Tensor) -> Tensor:
        return self.logits(x).unflatten(-1, (HEADS, -1)).softmax(-1)

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        values = self.value(source).unflatten(-1, (HEADS, -1))
        weights = self.weights(x).transpose(1, 2).flatten(0, 1)[:, None]
        grid = (2 * self.places(x) - 1).transpose(1, 2).flatten(0, 1)
        found = []
        own = values.split([rows * columns for rows, columns in GRIDS], 1)
        for part, points, size in zip(own, grid.split(self.points, 2), GRIDS, strict=True):
            level = part.permute(0, 2, 3, 1).reshape(-1, part.shape[-1], *size)
            found.append(F.grid_sample(level, points, **self.options))
        samples = torch.stack(found, -2).flatten(-2) if self.layout == "stack" else torch.cat(found, -1)
        return (samples * weights).sum(-1).view(len(x), -1, x.shape[1]).transpose(1, 2)


def inputs(examples: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(examples, count, WIDTH, generator=generator) for count in (QUERIES, PLACES))  # type: ignore[return-value]


@pytest.fixture(params=["stack", "cat"])
def by_hand(request: pytest.FixtureRequest) -> ByHand:
    torch.manual_seed(5)
    return ByHand(request.param).eval()


def test_points_of_own_code_are_those_of_the_model(by_hand: ByHand) -> None:
    x, source = inputs()
    with torch.no_grad(), look(by_hand) as sight:
        by_hand(x, source)
    (site,) = sight
    points = site.points()
    assert site.grids == GRIDS
    assert site.shape == (2, HEADS, QUERIES, PLACES)
    torch.testing.assert_close(points.weights, by_hand.weights(x).transpose(1, 2))
    torch.testing.assert_close(points.places, by_hand.places(x).transpose(1, 2))
    assert points.maps.tolist() == [0] * POINTS + [1] * POINTS + [2] * POINTS
    chosen = site.points(heads=[1], queries=[4, 2])
    torch.testing.assert_close(chosen.places, points.places[:, [1]][:, :, [4, 2]])


def test_weights_of_places_make_the_output(by_hand: ByHand) -> None:
    """The map of a site of points, times the values, is what the model computed."""
    x, source = inputs()
    with torch.no_grad(), look(by_hand) as sight:
        output = by_hand(x, source)
        values = by_hand.value(source).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    (site,) = sight
    torch.testing.assert_close((site.weights() @ values).transpose(1, 2).flatten(2), output, atol=1e-5, rtol=1e-5)
    assert site.output_error() < 1e-5


def test_maps_with_different_numbers_of_points() -> None:
    torch.manual_seed(5)
    model, (x, source) = ByHand("cat", (2, 4, 1)).eval(), inputs()
    with torch.no_grad(), look(model) as sight:
        model(x, source)
    points = sight[""].points()
    assert points.maps.bincount().tolist() == [4, 4, 4]
    real = points.weights[0, 0, 0] > 0
    assert real.tolist() == [True, True, False, False, True, True, True, True, True, False, False, False]
    torch.testing.assert_close(points.weights[..., real], model.weights(x).transpose(1, 2))
    torch.testing.assert_close(points.places[..., real, :], model.places(x).transpose(1, 2))


@pytest.mark.parametrize("options", [{"mode": "nearest"}, {"padding_mode": "border"}, {"align_corners": True}])
def test_other_samples_stay_maps_of_points(by_hand: ByHand, options: dict[str, Any]) -> None:
    """Places that were read in another way would be shown wrongly: the record has the points as keys."""
    by_hand.options |= options
    x, source = inputs()
    with torch.no_grad(), look(by_hand) as sight:
        by_hand(x, source)
    (site,) = sight
    assert site.grids is None
    assert site.shape == (2, HEADS, QUERIES, 3 * POINTS)
    torch.testing.assert_close(site.weights(), by_hand.weights(x).transpose(1, 2))
    with pytest.raises(UserError, match="looks at no points of feature maps"):
        site.points()


def test_points_of_the_coarsest_map_first_are_summed_on_the_finest() -> None:
    weights = torch.zeros(1, 4 + 24)
    weights[0, 3] = 1  # the last place of 2 x 2
    found = on_finest_grid(weights, ((2, 2), (4, 6)))
    assert finest(((2, 2), (4, 6))) == (4, 6)
    assert found.view(4, 6).nonzero().tolist() == [[row, column] for row in (2, 3) for column in (3, 4, 5)]
    torch.testing.assert_close(found.sum(), torch.tensor(1.0))


def test_a_sum_over_the_image_has_all_weight_inside(by_hand: ByHand) -> None:
    x, source = inputs()
    with torch.no_grad(), look(by_hand) as sight:
        by_hand(x, source)
    (site,) = sight
    (summed,) = sight.sum_points()
    assert summed.shape == (2, HEADS, QUERIES, 5 * 7)
    torch.testing.assert_close(summed.weights().sum(-1), site.weights().sum(-1))
    torch.testing.assert_close(summed.weights(heads=[1], keys=[3, 20]), summed.weights()[:, [1]][..., [3, 20]])
    assert summed.points().places.shape == site.points().places.shape
    (again,) = sight.sum_points().sum_points()
    assert again.shape == summed.shape


def test_own_layers_have_points_too() -> None:
    torch.manual_seed(2)
    layer = DeformableAttention(WIDTH, HEADS, len(GRIDS), POINTS).eval()
    nn.init.normal_(layer.offsets.weight, std=0.3)
    nn.init.normal_(layer.logits.weight)
    x, source = inputs()
    maps = FeatureMaps.of([torch.zeros(2, WIDTH, *size) for size in GRIDS], torch.zeros(2, 3, 20, 28), None)
    around = torch.full((2, QUERIES, 2), 0.5)
    with torch.no_grad(), look(layer) as sight:
        layer(x, maps, source, around, torch.zeros(1, QUERIES, WIDTH))
    (site,) = sight
    wanted = layer.logits(x).unflatten(-1, (HEADS, -1)).softmax(-1).transpose(1, 2)
    torch.testing.assert_close(site.points().weights, wanted)


def detectors() -> Iterator[Any]:
    """Models of transformers with attention to points."""
    made = models()
    for name in ("detr-deformable", "detr-deformable-two-stages", "detr-real-time"):
        yield pytest.param(made[name], id=name)
    yield pytest.param(d_fine, id="d-fine")
    yield pytest.param(mask2former, id="mask2former")


def d_fine() -> tuple[Any, Any]:
    t = pytest.importorskip("transformers")
    stages = {"stage_in_channels": [12, 16, 32, 48], "stage_mid_channels": [8, 8, 12, 16], "stem_channels": [3, 8, 12]}
    blocks = {"stage_num_blocks": [1] * 4, "stage_numb_of_layers": [2] * 4, "hidden_sizes": [16, 32, 48, 64]}
    out = {"stage_out_channels": [16, 32, 48, 64], "out_features": ["stage2", "stage3", "stage4"]}
    config = t.DFineConfig(
        backbone_config=t.HGNetV2Config(**stages, **blocks, **out),
        encoder_in_channels=[32, 48, 64],
        decoder_in_channels=[32] * 3,
        decoder_n_points=[3, 6, 2],
        hidden_expansion=1.0,
        num_queries=9,
        num_labels=5,
        **dict.fromkeys(("encoder_hidden_dim", "d_model"), 32),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 30),
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
        encoder_layers=1,
        decoder_layers=2,
    )
    return t.DFineForObjectDetection(config), None


def mask2former() -> tuple[Any, Any]:
    t = pytest.importorskip("transformers")
    stages = [f"stage{number}" for number in range(1, 5)]
    config = t.Mask2FormerConfig(
        backbone_config=t.SwinConfig(
            embed_dim=12, depths=[1] * 4, num_heads=[2] * 4, window_size=2, image_size=64, out_features=stages
        ),
        num_attention_heads=4,
        num_queries=7,
        num_labels=5,
        **dict.fromkeys(("feature_size", "mask_feature_size", "hidden_dim"), 32),
        **dict.fromkeys(("dim_feedforward", "encoder_feedforward_dim"), 30),
        encoder_layers=2,
        decoder_layers=3,
    )
    return t.Mask2FormerForUniversalSegmentation(config), None


class Arguments:
    """Weights of points as the library's own modules return them."""

    def __init__(self, model: nn.Module) -> None:
        self.seen: dict[str, Tensor] = {}
        for name, module in model.named_modules():
            if "MultiscaleDeformableAttention" in type(module).__name__:
                module.register_forward_hook(self.note(name))

    def note(self, name: str) -> Any:
        def hook(module: nn.Module, given: Any, output: Any) -> None:
            self.seen[name] = output[1]

        return hook


@pytest.mark.parametrize("make", [*detectors()])
def test_points_of_transformers(make: Any) -> None:
    model = scramble(make()[0])
    pixels = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(1))
    arguments = Arguments(model)
    with torch.no_grad():
        plain = model(pixel_values=pixels)
        with look(model) as sight:
            watched = model(pixel_values=pixels)
    for one, other in zip(plain.values(), watched.values(), strict=True):
        if isinstance(one, Tensor):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    sites = [site for site in sight if site.grids is not None]
    assert sorted(site.name for site in sites) == sorted(arguments.seen)
    for site in sites:
        points = site.points()
        wanted = arguments.seen[site.name].flatten(3).transpose(1, 2)  # (B, T, H, ...) to (B, H, T, N)
        torch.testing.assert_close(points.weights[..., points.weights[0, 0, 0] > 0], wanted, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(points.weights.sum(-1), torch.ones_like(points.weights[..., 0]))


def test_a_head_of_points_can_be_knocked_out(by_hand: ByHand) -> None:
    x, source = inputs()
    with torch.no_grad():
        plain = by_hand(x, source).unflatten(-1, (HEADS, -1))
        with change(by_hand, {"*": Knock(heads=[1])}):
            changed = by_hand(x, source).unflatten(-1, (HEADS, -1))
    torch.testing.assert_close(changed[:, :, 0], plain[:, :, 0])
    assert not changed[:, :, 1].any()
    assert plain[:, :, 1].abs().max() > 0.01


def test_gradients_flow_through_changed_points(by_hand: ByHand) -> None:
    """Estimates of the effects of earlier layers need those of what is sampled, of the places and of the weights."""
    given = tuple(part.requires_grad_() for part in inputs())
    factors = torch.tensor([1.0, 0.5])[:, None]
    plain = by_hand(*given).unflatten(-1, (HEADS, -1)) * factors
    with change(by_hand, {"*": Scale(0.5, heads=[1])}):
        changed = by_hand(*given).unflatten(-1, (HEADS, -1))
    wanted, found = (torch.autograd.grad(one.square().sum(), given) for one in (plain, changed))
    for own, other in zip(found, wanted, strict=True):
        assert other.any()
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


def test_gradients_and_norms_of_points(by_hand: ByHand) -> None:
    """The gradient of a place's weight is that of the output times its value."""
    x, source = inputs()
    with look(by_hand, values=True, gradients=True) as sight:
        output = by_hand(x, source)
    target = output[..., 3].sum()
    (site,), (gradients,) = sight, sight.gradients(target, signed=True)
    values = by_hand.value(source).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    torch.testing.assert_close(gradients.weights()[:, 0], site.weights()[:, 0] * values[:, 0, None, :, 3])
    assert not gradients.weights()[:, 1].any()
    (norms,) = sight.norms()
    torch.testing.assert_close(norms.weights(), site.weights() * values.norm(dim=-1)[:, :, None])
    (summed,) = sight.norms().sum_points()
    torch.testing.assert_close(summed.weights().sum(-1), norms.weights().sum(-1))
    assert not summed.has_points


def test_a_page_of_a_look_has_the_points(by_hand: ByHand, tmp_path: Any) -> None:
    x, source = inputs()
    with torch.no_grad(), foveate.look(by_hand) as sight:
        by_hand(x, source)
    sight.save(tmp_path / "points.html", example=1)
    from foveate.viewer.page import read

    (panel,) = read(tmp_path / "points.html").sites
    assert panel.points is not None
    assert panel.keys.count == 35
    points = sight[""].points()
    torch.testing.assert_close(torch.from_numpy(panel.points.places), points.places[1], atol=2e-5, rtol=0)
    torch.testing.assert_close(torch.from_numpy(panel.points.weights), points.weights[1], atol=0, rtol=2e-4)
