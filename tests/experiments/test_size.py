"""What a model costs: counts against formulas, against a real run, and against what papers say."""

from dataclasses import fields
from typing import Any

import pytest
import torch

import foveate
from foveate import models
from foveate.cli import main
from foveate.errors import UserError
from foveate.experiments.flops import flops
from foveate.experiments.scaling_table import TABLE, count
from foveate.experiments.size import example_inputs, measure_part, measure_preset, measure_size

ROWS = {row.name: row for row in TABLE}

SMALL = {"vocabulary": 97, "width": 24, "heads": 3, "feedforward": 64, "max_length": 64}


def test_a_language_model_by_hand() -> None:
    """12 C^2 weights and 4 T C operations of attention for each layer and token, and the output layer."""
    size = measure_preset("gpt-tiny", {**SMALL, "feedforward": 96, "layers": 6}, batch=2, length=31)
    products = 6 * 12 * 24**2 + 97 * 24
    attention = 6 * 2 * 31 * 24
    assert size.tokens == 62
    assert size.forward_flops == 62 * 2 * (products + attention)
    assert size.training_flops == 3 * size.forward_flops
    assert size.cache == 2 * 4 * 62 * 6 * 24


def test_layers_that_are_not_run_count_like_those_that_are() -> None:
    sizes = {**SMALL, "window": 7, "window_every": 2}
    whole = measure_size(models.create("gpt-tiny", device="meta", **sizes, layers=8), 1, 53)
    assert measure_preset("gpt-tiny", {**sizes, "layers": 8}, 1, 53) == whole


def test_operations_and_activations_of_a_real_run() -> None:
    model = foveate.create("gpt-tiny", **SMALL, layers=3, dropout=0.0)
    tokens = torch.randint(4, 97, (2, 41))
    found = measure_size(models.create("gpt-tiny", device="meta", **SMALL, layers=3, dropout=0.0), 2, 41)
    assert found.forward_flops == pytest.approx(flops(lambda: model(tokens)), rel=0.02)
    kept: dict[int, torch.Tensor] = {}
    own = {parameter.data_ptr() for parameter in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model(tokens)
    real = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    assert output.logits.requires_grad
    assert found.activations == pytest.approx(real, rel=0.1)


def test_training_memory_by_hand() -> None:
    size = measure_size(models.create("gpt-tiny", device="meta", **SMALL, layers=1), 1, 5)
    assert size.training_bytes(4) == size.parameters * 16 + size.activations
    assert size.training_bytes(2, shards=4) == size.parameters * 16 / 4 + size.activations / 2


def test_operations_of_training_are_those_of_a_real_step() -> None:
    """Of few keys, by plain attention. The fused kernel computes scores again in its backward pass: not counted."""
    sizes = {**SMALL, "layers": 3, "dropout": 0.0, "tie": False}
    model, tokens = foveate.create("gpt-tiny", **sizes), torch.randint(4, 97, (2, 11))
    found = measure_preset("gpt-tiny", sizes, 2, 11)
    real = flops(lambda: model(tokens).logits.sum().backward())
    assert found.training_flops == pytest.approx(real, rel=0.02)


def test_parts_of_layers() -> None:
    """Weights but for norms, positions and the biases of sums are split."""
    sizes = {**SMALL, "vocabulary": 100, "heads": 4, "layers": 2}
    config = foveate.create("gpt-tiny", device="meta", **sizes).config
    whole, half = measure_preset("gpt-tiny", sizes, 1, 31), measure_part("gpt", config, 1, 31, 2)
    unsplit = 64 * 24 + 2 * (2 * 24 + 4 * 24) + 2 * 24
    assert whole.parameters == 2 * half.parameters - unsplit
    assert half.forward_flops == whole.forward_flops / 2
    assert whole.activations / 2 < half.activations < whole.activations
    with pytest.raises(UserError, match="8 devices cannot split 4 heads"):
        measure_part("gpt", config, 1, 31, 8)
    with pytest.raises(UserError, match="no parts are counted for transformer:"):
        measure_part("transformer", foveate.create("transformer-tiny", src_vocab=10, tgt_vocab=10).config, 1, 7, 2)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("BERT-Base", 109_514_298),
        ("BERT-Large", 335_174_458),
        ("XLNet-Large", 360_300_800),
        ("GPT-1", 116_534_784),
        ("GPT-2", 1_557_611_200),
        ("Megatron-LM", 8_317_040_640),
        ("Turing-NLG", 17_180_859_136),
        ("GPT-3", 174_604_259_328),
    ],
)
def test_parameters_of_the_table(name: str, parameters: int) -> None:
    row = ROWS[name]
    model = models.create(str(row.preset), device="meta", **row.sizes)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_gopher_by_formula() -> None:
    """Four projections and one of distances, a feed-forward layer of four times the width, two norms, two offsets."""
    width = 16_384
    layer = (5 * width**2 + 4 * width) + (8 * width**2 + 5 * width) + 2 * width + 2 * width
    assert ROWS["Gopher"].price * ROWS["Gopher"].devices * ROWS["Gopher"].hours == 3_768_320
    model = models.create("gopher-280b", device="meta", vocabulary=32_000)
    assert sum(p.numel() for p in model.parameters()) == 80 * layer + width + 32_000 * width == 279_714_217_984


def test_the_compute_of_gpt_3_comes_out() -> None:
    found = count(ROWS["GPT-3"])
    assert found is not None
    assert found.layout == "96 / 12,288 / 96"
    assert found.petaflop_days == pytest.approx(3640, rel=0.02)


def test_what_is_undisclosed_is_not_counted() -> None:
    assert count(ROWS["GPT-4"]) is None


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["size", "gpt2", "--gpus", "16", "--gpu", "v100"])
    out = capsys.readouterr().out
    assert "124,439,808" in out
    assert "fits" in out
    assert "layers in 4 parts, shards on 4" in out
    main(["size", "gpt3-175b", "--gpus", "64", "--gpu", "h100", "--length", "2048"])
    assert "does not fit" in capsys.readouterr().out
    wrong = [["gpt2", "--gpu", "h99"], ["gpt22"], ["gpt2", "--utilisation", "2"], ["gpt2", "--tokens", "inf"]]
    wrong.append(["gpt2", "--sizes", "clases", "5"])
    for arguments in wrong:
        with pytest.raises(SystemExit) as ended:
            main(["size", *arguments])
        assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "unknown size of gpt2 that data decides 'clases'; did you mean classes?" in told


def test_images_need_no_length() -> None:
    size = measure_preset("resnet18", {"classes": 1000}, 1, 1)
    assert size.forward_flops == pytest.approx(2 * 1.814e9, rel=0.01)
    with pytest.raises(UserError, match="unknown model"):
        measure_preset("resnet17", {}, 1, 1)


def test_what_is_not_a_vocabulary_has_a_size_of_its_own() -> None:
    """50,257 key points, say, would take minutes to count."""
    decided = {size for family in models.FAMILIES for size in models.sizes_of_data(family)}
    assert decided - models.COUNTED.keys() == models.VOCABULARIES
    assert models.COUNTED.keys() <= decided


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", {preset.family: name for name, preset in models.presets().items()}.values())
def test_every_family_is_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command as it stands; short texts, so that recurrent models take few steps. The parameters of all presets
    are counted in `test_models.py`."""
    main(["size", name, "--length", "5"])
    shown = capsys.readouterr().out
    assert f"{models.preset(name).parameters:,}" in shown
    forward = next(line for line in shown.splitlines() if "forward" in line)
    assert float(forward.replace("│", "┃").split("┃")[2].replace(",", "")) > 0


LAYERS = ("layers", "encoder_layers", "decoder_layers")

LARGE = [name for name, preset in models.presets().items() if preset.parameters > 10**7]
"""The presets that have the size of a paper's."""


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", LARGE)
def test_models_of_the_sizes_of_papers_run_forward_and_backward_on_meta(name: str) -> None:
    """No number is read, nothing is made on the CPU, and memory is counted. Two layers of a stack are run, and a block
    of each stage: the others are like them."""
    preset = models.preset(name)
    usual = {part.name: part.default for part in fields(models.config_class(preset.family))} | preset.values
    few: dict[str, Any] = {field: 2 for field in LAYERS if isinstance(usual.get(field), int) and usual[field] > 2}
    few |= {"blocks": (1,) * len(usual["blocks"])} if isinstance(usual.get("blocks"), tuple) else {}
    model = models.create(name, device="meta", **preset.all_sizes(), **few)
    inputs, _ = example_inputs(model, 1, 3)
    model.train()(**inputs).logits.sum().backward()
    gradients = [part.grad for part in model.parameters() if part.grad is not None]
    assert all(gradient.is_meta for gradient in gradients)
    count = sum(part.numel() for part in model.parameters())
    assert measure_size(model, 1, 3).training_bytes(2) > 16 * count
    assert (
        count >= sum(gradient.numel() for gradient in gradients) > count / 4
    )  # of logits alone: no boxes, and one of the two networks of a GAN
