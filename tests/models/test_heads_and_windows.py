"""Split heads, unequal heads and windows: fields that most Transformers have, and what they do in each of them."""

from dataclasses import dataclass, field, fields
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate import models
from foveate.attention import grid_window, intercept, window
from foveate.contracts import Generator
from foveate.errors import UserError
from foveate.interop.public_folder import layout_for
from foveate.models.text.causal_language_model import CausalLanguageModelConfig
from foveate.nn import HeadFields, MultiHeadAttention
from foveate.nn.two_stream import TwoStreamAttention, View, distance_waves

Changes = dict[str, Any]

WIDTHS = (2, 5, 4)
"""Of three heads; they do not sum up to a model's width."""

TOKENS = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 3, 11, 10]])
LENGTHS = torch.tensor([7, 7])
WORDS = {"tokens": TOKENS, "lengths": LENGTHS}
SMALL = {"width": 12, "heads": 3, "layers": 2, "feedforward": 11}
CAPTION = {"target": TOKENS}


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


SOUND = {"source": random(2, 23, 6), "source_lengths": torch.tensor([23, 23])}


@dataclass
class Case:
    """A family in small, what it is given, and where its window is."""

    preset: str
    inputs: dict[str, Tensor]
    sizes: Changes = field(default_factory=dict)
    near: tuple[str, ...] = ("*.self",)
    """The sites that have the window."""
    grid: tuple[int, int] | None = None
    """Columns of a grid of places, and tokens before it."""

    def model(self, **changes: Any) -> nn.Module:
        """With random weights, in evaluation mode."""
        torch.manual_seed(7)
        sizes = {**SMALL_OF.get(self.preset, SMALL), **self.sizes, **changes}
        made = foveate.create(self.preset, **sizes).eval()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape))
        return made


TWO_STACKS = {"width": 12, "heads": 3, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 2}
SMALL_OF = {
    **dict.fromkeys(["transformer-tiny", "speech-transformer-tiny", "captioner-transformer-tiny"], TWO_STACKS),
    **dict.fromkeys(["detr-refined-tiny", "pose-tiny"], TWO_STACKS),
    "clip-tiny": {"width": 12, "heads": 3, "layers": 2},
}
IMAGES = {"image_size": 16, "patch": 4, "channels": 2, "classes": 5}

CASES = {
    "bert": Case("bert-tiny", WORDS, {"vocabulary": 17}),
    "deberta": Case("deberta-tiny", WORDS, {"vocabulary": 17, "distances": 4, "longest": 9}),
    "gpt": Case("gpt-tiny", WORDS, {"vocabulary": 17}),
    "gpt-neox": Case("pythia-70m", WORDS, {"vocabulary": 17, "positions": "none"}),
    "llama": Case("smollm2-135m", WORDS, {"vocabulary": 17, "positions": "none", "key_value_heads": None}),
    "transformer": Case(
        "transformer-tiny",
        {"source": TOKENS, "source_lengths": LENGTHS, **CAPTION},
        {"src_vocab": 17, "tgt_vocab": 17},
    ),
    "transformer-encoder": Case("transformer-classifier", WORDS, {"vocabulary": 17, "classes": 5}),
    "xlnet": Case("xlnet-tiny", WORDS, {"vocabulary": 17}, ("*content_stream",)),
    "vit": Case("vit-tiny", {"pixels": random(2, 2, 16, 12)}, IMAGES, grid=(3, 1)),
    "imagegpt": Case(
        "imagegpt-tiny", {"pixels": random(2, 1, 3, 3)}, {"image_size": 3, "channels": 1, "classes": 5, "colours": 8}
    ),
    "detr": Case(
        "detr-refined-tiny",
        {"pixels": random(2, 2, 64, 64)},
        {"classes": 5, "channels": 2, "queries": 4, "denoising": None},
        ("encoder.*.self",),
        grid=(4, 0),
    ),
    "pose": Case(
        "pose-tiny",
        {"pixels": random(2, 2, 32, 32)},
        {"points": 5, "channels": 2},
        ("encoder.*.self",),
        grid=(4, 0),
    ),
    "audio-transformer": Case(
        "audio-transformer-tiny",
        {"pixels": random(2, 1, 9, 15)},
        {"classes": 5, "bands": 9, "frames": 15, "patch": 3, "stride": 3},
        grid=(5, 2),
    ),
    "speech-transformer": Case(
        "speech-transformer-tiny", {**SOUND, **CAPTION}, {"vocabulary": 17, "bands": 6, "convolution": 8, "ctc": False}
    ),
    "clip": Case(
        "clip-tiny",
        {"pixels": random(2, 2, 17, 23), **WORDS},
        {"vocabulary": 17, "channels": 2, "embedding": 10},
        ("reader.*.self",),
    ),
    "text-to-image": Case(
        "text-to-image-tiny",
        {"image": TOKENS[:, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1]], **WORDS},
        {"vocabulary": 17, "codes": 23, "side": 4, "merge": 1, "embedding": 5},
        ("*.image.self",),
        grid=(4, 0),
    ),
    "transformer-captioner": Case(
        "captioner-transformer-tiny",
        {"pixels": random(2, 2, 32, 32), **CAPTION},
        {"vocabulary": 17, "channels": 2},
        ("decoder.*.self",),
    ),
}


def attentions(model: nn.Module) -> dict[str, Any]:
    """The layers whose heads the fields decide."""
    kinds = (MultiHeadAttention, TwoStreamAttention)
    return {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, kinds) and name.endswith((".self", ".cross"))
    }


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_every_family_with_the_fields_is_here() -> None:
    """Of families whose configs only have other defaults, such as Llama and its relatives, some stand for all."""
    those = {name for name in models.FAMILIES if issubclass(models.config_class(name), HeadFields)}
    known = {part.name for part in fields(CausalLanguageModelConfig)}
    alike = {name for name in those if {part.name for part in fields(models.config_class(name))} == known}
    assert set(CASES) - alike == those - alike
    assert set(CASES) & alike


def test_widths_of_the_projections(case: Case) -> None:
    for layer in attentions(case.model(head_widths=WIDTHS)).values():
        assert [part.linear.out_features for part in (layer.query, layer.key, layer.value)] == [11, 11, 11]
        assert (layer.output.linear.in_features, layer.output.linear.out_features) == (11, 12)
    for layer in attentions(case.model(split=True)).values():
        assert [tuple(part.weight.shape) for part in (layer.query, layer.key, layer.value)] == [(3, 4, 4)] * 3


def test_heads_that_are_named_equal_are_those_of_a_model_without_the_field(case: Case) -> None:
    plain, named = case.model(), case.model(head_widths=(4, 4, 4))
    state = plain.state_dict()
    renamed = {name: name.replace(".linear.", ".") for name in named.state_dict()}
    named.load_state_dict({name: state[renamed[name] if renamed[name] in state else name] for name in renamed})
    torch.testing.assert_close(named(**case.inputs).logits, plain(**case.inputs).logits)


def test_the_window_hides_what_is_far(case: Case) -> None:
    model = case.model(window=1)
    with foveate.look(model) as sight, torch.no_grad():
        model(**case.inputs)
    sites = [site for pattern in case.near for site in sight[pattern]]
    assert len(sites) >= 2
    for site in sites:
        weights = site.weights()
        assert bool(weights[..., ~_near(weights.shape[-1], case.grid)].eq(0).all())
        assert not bool(_near(weights.shape[-1], case.grid).all())
        assert float(weights.diagonal(dim1=-2, dim2=-1).min()) > 0


def _near(places: int, grid: tuple[int, int] | None) -> Tensor:
    """Which places are at most one away from each other, counted one by one."""

    def near(query: int, key: int) -> bool:
        if grid is None:
            return abs(query - key) <= 1
        columns, tokens = grid
        if query < tokens or key < tokens:
            return True
        (above, left), (row, column) = divmod(query - tokens, columns), divmod(key - tokens, columns)
        return abs(above - row) <= 1 and abs(left - column) <= 1

    return torch.tensor([[near(query, key) for key in range(places)] for query in range(places)])


def test_a_window_as_large_as_the_input_changes_nothing(case: Case) -> None:
    wide, plain = case.model(window=50), case.model()
    torch.testing.assert_close(wide(**case.inputs).logits, plain(**case.inputs).logits)
    near = case.model(window=1)(**case.inputs).logits
    assert bool((near - plain(**case.inputs).logits).abs().gt(1e-5).any())


@pytest.mark.parametrize("changes", [{"split": True}, {"head_widths": WIDTHS}], ids=str)
def test_gradients_flow(case: Case, changes: Changes) -> None:
    model = case.model(**changes, window=2).train()
    model(**case.inputs).logits.square().sum().backward()
    layers = attentions(model)
    assert layers
    for layer in layers.values():
        for part in (layer.query, layer.key, layer.value, layer.output):
            weight = getattr(part, "linear", part).weight
            assert weight.grad is not None
            assert bool(weight.grad.isfinite().all())
            assert bool(weight.grad.any())


IMPOSSIBLE: list[tuple[Changes, str]] = [
    ({"window": -1}, "window is -1, but must be at least 0"),
    ({"head_widths": (0, 5, 4)}, "head_widths is 0, but must be at least 1"),
    ({"head_widths": (5, 5)}, "2 head_widths are given for 3 heads"),
    ({"head_widths": WIDTHS, "split": True}, "head_widths work with .*without split"),
]


@pytest.mark.parametrize(("changes", "message"), IMPOSSIBLE, ids=str)
def test_what_cannot_be_is_told_in_one_line(case: Case, changes: Changes, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}[^\n]*$"):
        case.model(**changes)


@pytest.mark.parametrize("preset", ["bert-base", "gpt2", "pythia-70m", "smollm2-135m", "xlnet-base"])
@pytest.mark.parametrize(("name", "value"), [("window", 3), ("split", True), ("head_widths", WIDTHS)])
def test_no_public_layout_holds_them(preset: str, name: str, value: object) -> None:
    found = models.presets()[preset]
    config = models.config_class(found.family)(vocabulary=17, **found.values)
    layout_for(found.family, config).write_config(config)
    setattr(config, name, value)
    with pytest.raises(UserError, match=r"^this \S+ has the " + name + " .*: it has no public layout$"):
        layout_for(found.family, config).write_config(config)


def test_unequal_heads_of_two_streams_are_small_attentions_side_by_side() -> None:
    """Each with its own slice of the weights, and scores divided by the root of its own width."""
    torch.manual_seed(3)
    whole = TwoStreamAttention(12, 3, head_widths=WIDTHS)
    x, segments = torch.randn(2, 7, 12), torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 2)
    waves, view = distance_waves(7, 12, x), View(None, segments=segments)
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.normal_(std=0.5)
        found = whole(x, whole.source(x, waves, segments), view, whole.content_stream)
        expected, start = torch.zeros_like(found), 0
        for head, own in enumerate(WIDTHS):
            rows = slice(start, start + own)
            state = {}
            for name in ("query", "key", "value", "distance"):
                state[f"{name}.linear.weight"] = getattr(whole, name).linear.weight[rows]
            state["output.linear.weight"] = whole.output.linear.weight[:, rows]
            for name in ("content_offset", "distance_offset", "segment_offset", "segments"):
                state[name] = getattr(whole, name)[head : head + 1, :, :own]
            one = TwoStreamAttention(12, 1, head_widths=(own,))
            one.load_state_dict(state)
            expected += one(x, one.source(x, waves, segments), view, one.content_stream)
            start += own
    torch.testing.assert_close(found, expected)


def test_a_window_of_a_grid_keeps_the_places_beside() -> None:
    """Of 3 x 3 places after one token, the one in a corner sees four; a window of one dimension sees others."""
    block = grid_window(1, 3, first=1).block(range(10), range(10), 0, torch.device("cpu"))
    assert block[1].nonzero().flatten().tolist() == [0, 1, 2, 4, 5]
    assert block[0].all()
    assert window(1).block(range(10), range(10), 0, torch.device("cpu"))[1].nonzero().flatten().tolist() == [0, 1, 2]


OF_HEADS: list[Changes] = [
    {"mixing": "talking", "key_value_heads": 2, "head_score": "cosine"},
    {"mixing": "multi-token", "value_width": 5, "weights": "entmax"},
    {"mixing": "differential", "key_value_heads": 2, "query_key_norm": "head"},
    {"head_score": "distance", "score_limit": 0.2, "head_gate": True},
    {"score_cap": 0.5, "score_scale": 0.9, "weights": "sigmoid"},
]
"""All fields of heads; families take turns with some each."""


def test_fields_of_heads_act_in_steps_and_looks_as_in_the_whole(case: Case) -> None:
    """Or are refused, by models whose scores are made in another way."""
    changes = OF_HEADS[list(CASES.values()).index(case) % len(OF_HEADS)]
    if case.preset in ("xlnet-tiny", "deberta-tiny"):
        with pytest.raises(UserError, match=r"of its own|in another way"):
            case.model(heads=4, mixing="multi-token")
        return
    model, calls = case.model(heads=4, **changes), []

    def record(call: Any, kernel: Any) -> Any:
        calls.append(call.select.for_queries(call.queries).weigh(call.scores()))
        return kernel.attend(call)

    with torch.no_grad():
        plain = case.model(heads=4)(**case.inputs).logits
        with intercept(record):
            whole = model(**case.inputs).logits
        with foveate.look(model) as sight:
            model(**case.inputs)
    assert (whole - plain).abs().max() > 1e-5
    for site, weights in zip(sight, calls, strict=True):
        found = site.weights()
        torch.testing.assert_close(found, weights.reshape(found.shape), rtol=0, atol=1e-5)
    if isinstance(model, Generator) and "target" in case.inputs:
        source = [value for name, value in case.inputs.items() if not name.startswith("target")]
        with torch.inference_mode():
            state = model.start(*source)
            steps = [model.step(tokens, state) for tokens in case.inputs["target"].unbind(1)]
        torch.testing.assert_close(torch.stack(steps, 1), whole, rtol=0, atol=1e-4)
