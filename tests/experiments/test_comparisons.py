"""Every comparison, with tiny sizes: what it measures, shows and writes."""

import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from foveate import models
from foveate.attention import Mask, attend, window
from foveate.errors import UserError
from foveate.experiments import Comparison, Table, compare, comparison_module, save
from foveate.experiments.dot_scaling import DotScaling
from foveate.experiments.drawing import COLOURS, line, panels
from foveate.experiments.flops import flops
from foveate.experiments.layers import LAYERS, Layers
from foveate.experiments.norms import Norms
from foveate.experiments.positions import Positions
from foveate.experiments.products import WAYS, Products
from foveate.experiments.teacher_forcing import TeacherForcing
from foveate.experiments.vanishing import Vanishing

TINY = {
    "layers": Layers(lengths=(8, 16), widths=(4, 8), head_width=4, radius=3, repeats=1),
    "dot-scaling": DotScaling(widths=(2, 512), positions=17, repeats=3),
    "norms": Norms(depths=(1, 2), learning_rates=(1e-3, 1e20), steps=3, width=8, length=5, vocabulary=7, batch=3),
    "teacher-forcing": TeacherForcing(
        models=("rnn", "convolutional-tiny"), lengths=(3, 5), width=8, vocabulary=17, repeats=1
    ),
    "positions": Positions(length=6, lengths=(6, 9), back=1, vocabulary=5, steps=2, width=8),
    "vanishing": Vanishing(lengths=(2, 5, 32), width=11, repeats=3),
    "products": Products(widths=(2, 3), side=4, repeats=1),
}

QUIET = Console(file=StringIO())


@pytest.fixture(scope="module")
def found() -> dict[str, Comparison]:
    return {name: compare(name, options, QUIET) for name, options in TINY.items()}


@pytest.mark.parametrize("name", TINY)
def test_a_comparison_is_written_as_table_figures_and_pictures(found: dict, name: str, tmp_path: Path) -> None:
    options = TINY[name]
    options.out = tmp_path / "deep" / "bench"
    paths = save(found[name], name, options)
    assert [path.name for path in paths[:3]] == [f"{name}.md", f"{name}.json", f"{name}.png"]
    told = json.loads(paths[1].read_text(encoding="utf-8"))
    assert told["options"]["seed"] == 1
    assert told["measured"] == json.loads(json.dumps(found[name].raw))
    assert "1 thread of" in told["conditions"]
    assert paths[0].read_text(encoding="utf-8") == found[name].markdown()
    for path in paths[2:]:
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", TINY)
def test_tables_have_a_cell_under_each_heading(found: dict, name: str) -> None:
    for table in found[name].tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.headings)}


def test_markdown_of_a_table() -> None:
    table = Table(["x", "y"], [["a", "1"], ["b", "23"]], "Title")
    assert table.markdown() == "**Title**\n\n| x | y |\n| --- | ---: |\n| a | 1 |\n| b | 23 |"


def test_layers_cost_what_theory_says(found: dict) -> None:
    """FLOPs, forward: of a GRU 6 d², of a convolution 2 k d², of attention 4 n d for each position."""
    counts = {(part["layer"], part["length"], part["width"]): part["flops"] for part in found["layers"].raw[:5]}
    assert counts == {
        ("recurrent", 8, 8): 8 * 2 * 6 * 64,
        ("convolution", 8, 8): 8 * 2 * 3 * 64,
        ("self-attention", 8, 8): 8 * 4 * 8 * 8,
        ("restricted self-attention", 8, 8): 8 * 4 * 8 * 8,  # a block of the kernel holds all of it
        ("self-attention, all weights kept", 8, 8): 8 * 4 * 8 * 8,
    }
    assert [part["training"] for part in found["layers"].raw[:10]] == [False] * 5 + [True] * 5
    assert len(found["layers"].raw) == 3 * 2 * len(LAYERS)
    exponents = {row[0]: [float(power[2:]) for power in row[2].split()] for row in found["layers"].tables[0].rows}
    assert exponents["recurrent"] == pytest.approx([1, 2], abs=0.05)
    assert exponents["convolution"] == pytest.approx([1, 2])
    assert exponents["self-attention"] == pytest.approx([2, 1])


def test_where_the_system_does_not_tell_memory_there_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.experiments.layers.memory", lambda *_: None)
    found = compare("layers", Layers(lengths=(2, 4), widths=(4, 8), head_width=4, repeats=1), QUIET)
    exponents, largest, _ = found.tables
    assert {tuple(row[5:]) for row in exponents.rows} == {("-", "-")}
    assert {tuple(row[3:5]) for row in largest.rows} == {("-", "-")}
    assert "nan" not in found.markdown()
    assert "Only Linux tells how much memory a run takes." in found.markdown()
    assert len(found.figures[""].axes) == 8


def test_a_scaled_dot_product_keeps_entropy_and_gradient(found: dict) -> None:
    parts = {(part["score"], part["vectors"], part["width"]): part for part in found["dot-scaling"].raw}
    assert parts["scaled dot", "projected", 512]["entropy"] == pytest.approx(
        parts["scaled dot", "projected", 2]["entropy"], abs=0.4
    )
    assert (
        parts["dot", "projected", 512]["entropy"]
        < 0.5
        < parts["scaled dot", "projected", 512]["entropy"]
        < math.log(17)
    )
    assert parts["dot", "projected", 512]["gradient"] < parts["scaled dot", "projected", 512]["gradient"] / 5
    # (a, ..., a) and (b, ..., b) have the product a b D, whose variance is D^2, and D with the scale
    assert parts["dot", "constant", 512]["variance"] == pytest.approx(512**2, rel=0.7)
    scaled, bare = parts["scaled dot", "constant", 512], parts["dot", "constant", 512]
    assert bare["variance"] > 100 * scaled["variance"] > 100 * 100 * parts["scaled dot", "bare", 512]["variance"]
    # of bare vectors even the scaled product with themselves stands out
    assert parts["scaled dot", "bare", 512]["entropy"] < 0.01


def test_no_line_leaves_its_panel() -> None:
    """Few keys have large gradients."""
    options = DotScaling(widths=(1, 4), positions=3, repeats=2)
    found = compare("dot-scaling", options, QUIET)
    _, axes, _ = found.figures[""].axes
    assert max(part["gradient"] for part in found.raw) < axes.get_ylim()[1]


def test_a_training_that_diverges_is_told(found: dict) -> None:
    rows = found["norms"].tables[0].rows
    assert [row[0] for row in rows] == ["post-norm, 1", "post-norm, 2", "pre-norm, 1", "pre-norm, 2"]
    assert all(0 < float(row[1]) < 4 for row in rows)
    assert "diverged" in {row[2] for row in rows}


def test_all_products_do_equally_many_operations(found: dict) -> None:
    for width in (2, 3):
        for training in (False, True):
            parts = [part for part in found["products"].raw if (part["width"], part["training"]) == (width, training)]
            assert len(parts) == len(WAYS)
            assert len({part["flops"] for part in parts}) == 1


def test_both_ways_of_each_model_are_measured(found: dict) -> None:
    cases = {(part["model"], part["mode"], part["length"]) for part in found["teacher-forcing"].raw}
    assert len(cases) == 2 * 2 * 2
    assert all(part["seconds"] > 0 for part in found["teacher-forcing"].raw)


def test_a_known_target_is_read_at_once_and_another_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by the words that each call of the model's last layer gives logits for."""
    calls: list[tuple[int, ...]] = []
    create = models.create

    def counting(*told: Any, **sizes: Any) -> nn.Module:
        model = create(*told, **sizes)
        model.output.register_forward_hook(lambda _layer, _given, logits: calls.append(tuple(logits.shape[:-1])))
        return model

    monkeypatch.setattr(models, "create", counting)
    compare(
        "teacher-forcing",
        TeacherForcing(models=("transformer-tiny",), lengths=(3, 5), width=8, batch=2, repeats=1),
        QUIET,
    )
    at_once = {(2, length) for length in (3, 5)}
    steps = [shape for shape in calls if shape not in at_once]
    assert at_once <= set(calls)
    assert set(steps) == {(2, 1)}
    assert len(steps) % (3 + 5) == 0


def test_what_a_decoder_keeps_as_it_writes() -> None:
    """One vector, however long the sentence; the source; the source and all that was written, of every layer."""
    options = TeacherForcing(models=("rnn", "rnn-attentive", "transformer-tiny"), lengths=(8, 16), width=8, repeats=1)
    raw = compare("teacher-forcing", options, QUIET).raw
    kept = {(part["model"], part["length"]): part["kept"] for part in raw if part["mode"] == "stepped"}
    number, layers = 4, 4
    assert kept["rnn", 8] == kept["rnn", 16] <= 2 * 8 * number
    assert kept["rnn-attentive", 16] - kept["rnn-attentive", 8] == 8 * (8 * number)
    grown = kept["transformer-tiny", 16] - kept["transformer-tiny", 8]
    assert grown >= layers * 8 * (2 + 2) * (8 * number)  # keys and values, of the source and of what was written
    assert grown <= layers * 8 * (2 + 3) * (8 * number)  # and room for a translation that is longer
    assert all(part["kept"] == 0 for part in raw if part["mode"] == "forced")


@pytest.mark.slow
def test_pre_norm_learns_where_post_norm_does_not() -> None:
    """Eight blocks at a high rate."""
    sizes = {"steps": 80, "width": 16, "length": 4, "vocabulary": 5, "batch": 16}
    post, pre = compare("norms", Norms(depths=(8,), learning_rates=(0.02,), **sizes), QUIET).tables[0].rows
    assert (post[0], pre[0]) == ("post-norm, 8", "pre-norm, 8")
    assert float(pre[1]) < float(post[1]) - 0.15


@pytest.mark.parametrize(("mask", "times"), [(window(3), 2), (None, 4)])
def test_operations_of_attention_to_twice_as_many_places(mask: Mask | None, times: int) -> None:
    """Within a window, blocks of queries read the same number of keys, but for those at the ends."""

    def counted(length: int) -> int:
        x = torch.randn(1, 1, length, 4)
        return flops(lambda: attend(x, x, x, mask=mask))

    assert counted(4096) / counted(2048) == pytest.approx(times, rel=0.01)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("layers", Layers(kernel=4), "kernel is 4, but must be an odd number of at least 3"),
        ("layers", Layers(lengths=(16, 8)), "lengths are 16 8, but must increase"),
        ("layers", Layers(widths=(32, 96)), "a width of 32 is not a multiple of head_width 64"),
        ("layers", Layers(lengths=(16,)), "the number of lengths is 1, but must be at least 2"),
        ("layers", Layers(threads=0), "threads is 0, but must be at least 1"),
        ("teacher-forcing", TeacherForcing(lengths=(8, 4)), "lengths are 8 4, but must increase"),
        ("dot-scaling", DotScaling(widths=()), "no width to measure"),
        ("norms", Norms(depths=()), "nothing to compare"),
        ("norms", Norms(depths=(1, 1)), "depths are 1 1, but must differ"),
        ("norms", Norms(learning_rates=(1e-3, math.nan)), "learning_rates is nan, but must be at least 0"),
        ("norms", Norms(warmup=-5), "warmup is -5, but must be at least 0"),
        (
            "teacher-forcing",
            TeacherForcing(models=("transformer-classifier",)),
            "transformer-classifier does not translate",
        ),
        (
            "teacher-forcing",
            TeacherForcing(models=("siamese-acceptor",)),
            "siamese-acceptor does not translate",
        ),
        ("teacher-forcing", TeacherForcing(models=("rnn-language",)), "rnn-language does not translate"),
        ("teacher-forcing", TeacherForcing(models=("rnm",)), "unknown model 'rnm'; did you mean rnn"),
        ("products", Products(side=0), "side is 0, but must be at least 1"),
    ],
)
def test_options_that_cannot_be(name: str, options: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare(name, options, QUIET)


def test_an_unknown_comparison() -> None:
    with pytest.raises(UserError, match=r"unknown comparison 'layer'; did you mean layers\?"):
        comparison_module("layer")


def test_a_folder_that_cannot_be_written(found: dict, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"could not write products.md in .*file/bench: Not a directory"):
        save(found["products"], "products", Products(out=tmp_path / "file" / "bench"))


def test_nothing_is_measured_for_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write in .*file/bench: .*file is not a folder"):
        compare("products", Products(out=tmp_path / "file" / "bench"), QUIET)


def test_gradients_vanish_through_steps_and_not_through_attention(found: dict) -> None:
    norms = {(one["network"], one["length"], one["distance"]): one["norm"] for one in found["vanishing"].raw}
    assert norms["RNN", 32, 31] < 1e-6 * norms["RNN", 32, 1]
    assert norms["RNN", 32, 31] < norms["LSTM, open gates", 32, 31] / 100
    for network in ("GRU, attention over states", "attention over inputs"):
        assert norms[network, 32, 31] > norms[network, 32, 1] / 5
    assert norms["attention over inputs", 2, 1] > norms["attention over inputs", 32, 31]


def test_a_scale_of_the_width_makes_all_weights_alike(found: dict) -> None:
    parts = {(part["score"], part["vectors"], part["width"]): part for part in found["dot-scaling"].raw}
    assert parts["dot / D", "projected", 512]["entropy"] == pytest.approx(math.log(17), abs=0.01)
    assert parts["dot / D", "constant", 512]["variance"] == pytest.approx(1, rel=0.7)


def test_the_number_of_threads_is_put_back() -> None:
    torch.set_num_threads(1)
    found = compare("dot-scaling", DotScaling(widths=(2,), positions=3, repeats=1, threads=2), QUIET)
    assert torch.get_num_threads() == 1
    assert "2 threads of" in found.markdown(), "it was measured with two"


def test_more_cases_than_colours_are_still_told_apart() -> None:
    _, ((axes,),) = panels(1, 1)
    for number in range(2 * len(COLOURS)):
        line(axes, number, [1, 2], [1, 2])
    assert len({(drawn.get_color(), drawn.get_marker()) for drawn in axes.lines}) == 2 * len(COLOURS)


def test_kinds_of_positions_differ_where_positions_matter() -> None:
    """Without positions the token before is hard to tell from others; distances carry over to longer sequences."""
    options = Positions(length=8, lengths=(8, 12), back=1, vocabulary=16, steps=250, width=32)
    found = {(one["kind"], one["length"]): one for one in compare("positions", options, QUIET).raw}
    assert found["none", 8]["accuracy"] < 90 < 99 < found["relative", 8]["accuracy"]
    assert found["none", 12]["beyond"] < 60 < 80 < found["relative", 12]["beyond"]
    assert found["none", 8]["beyond"] is None
