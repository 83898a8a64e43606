"""What every model must do, whatever it is built of."""

import importlib
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from variants import ENDS, LENGTHS

from foveate.contracts import Output, State
from foveate.inference.cpu import optimize_for_cpu
from foveate.nn import skip_init
from foveate.nn.encoder_decoder import EncoderDecoder

SCORED = "key.bias"
"""No gradient reaches what moves all keys alike: the softmax does not see it."""

ONLY_IN_ORDER = ("unknown_token", "segments", "segment_offset")
"""Parameters of XLNet that need ranks or segments: the gradient that reaches them is tested with the model."""

BETWEEN_ZEROS = ("decoder.0.self.", "decoder.0.around_self.norm.weight")
"""In DETR, whose queries start from zeros, all values of the first layer are the same."""


def steps(model: EncoderDecoder, inputs: dict[str, Tensor], state: State, targets: Tensor) -> Tensor:
    return torch.stack([model.step(tokens, state) for tokens in targets.unbind(1)], 1)


def source(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inputs of `start`: those that are no target."""
    return {name: value for name, value in inputs.items() if not name.startswith("target")}


def in_type(dtype: torch.dtype, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inputs, those of real numbers in this type."""
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


def of_real(logits: Tensor, variant: Any) -> Tensor:
    """The logits without those of padding, where a model gives some for each token that it reads."""
    return logits * (torch.arange(7) < LENGTHS[:, None])[..., None] if variant.predicts_each_token else logits


def test_logits(variant, inputs) -> None:
    model = variant.build()
    output = model(**inputs)
    assert isinstance(output, Output)
    assert output.logits.shape == variant.logits
    assert torch.equal(model(**inputs).logits, output.logits)
    assert (output.choices is not None) == (variant.attends and getattr(variant.config, "select", "soft") == "hard")


def test_undrawn_it_is_the_same_once_it_is_filled(variant, inputs) -> None:
    model = variant.build()
    with skip_init(at_most=sum(part.numel() for part in model.state_dict().values())):
        other = variant.build()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(**inputs).logits, model(**inputs).logits)


def test_the_gradient_reaches_every_parameter(variant, inputs) -> None:
    model = variant.build().train()
    output = model(**inputs)
    loss = sum(
        logits.logsumexp(-1).sum() + logits[..., 1].square().sum() for logits in (output.logits, *output.auxiliary)
    )
    if getattr(output, "ctc", None) is not None:
        loss = loss + output.ctc.square().sum()
    if output.choices is not None:
        loss = loss + output.choices.log_prob.sum() + output.choices.baseline.sum()
    if hasattr(output, "boxes"):
        loss = loss + output.boxes.square().sum()
        loss = loss + sum(layer.boxes.square().sum() + layer.logits.square().sum() for layer in output.earlier)
        if getattr(output, "places", None) is not None:
            loss = loss + output.places.boxes.square().sum() + output.places.logits.square().sum()
    if hasattr(output, "points"):
        loss = loss + output.points.square().sum() + output.spread.sum()
    loss.backward()
    from_zeros = getattr(variant.config, "boxes", None) in ("direct", "conditional")
    for name, parameter in model.named_parameters():
        if name.endswith(ONLY_IN_ORDER):
            continue
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        idle = name.endswith(SCORED) or (from_zeros and name.startswith(BETWEEN_ZEROS))
        assert idle or bool(parameter.grad.any()), name


def test_a_later_target_token_changes_nothing_before_it(writer, inputs) -> None:
    model = writer.build()
    logits = model(**inputs).logits
    for place in (1, 4):
        other = {**inputs, "target": inputs["target"].clone()}
        other["target"][:, place:] = 11
        changed = (model(**other).logits - logits).abs().amax((0, 2)) > 1e-6
        assert changed.tolist() == [False] * place + [True] * (5 - place)


def test_what_is_read_is_read_to_its_end_and_no_further(reader, inputs) -> None:
    model = reader.build()
    logits = model(**inputs).logits
    for name, lengths in ENDS.items():
        if name not in inputs:
            continue
        value = inputs[name]
        real = torch.arange(value.shape[1]) < inputs[lengths][:, None]
        real = real.view(*value.shape[:2], *[1] * (value.ndim - 2))
        junk = model(**{**inputs, name: torch.where(real, value, 11)}).logits
        torch.testing.assert_close(of_real(junk, reader), of_real(logits, reader), atol=1e-5, rtol=0)
        last = value.clone()
        last[torch.arange(3), inputs[lengths] - 1] = 11
        changed = (of_real(model(**{**inputs, name: last}).logits, reader) - of_real(logits, reader)).abs()
        assert bool((changed.amax((1, 2)) > 1e-7).all())


def test_each_example_as_if_it_were_alone(variant, inputs) -> None:
    """In double precision, since layers behind one another may make much of a rounding."""
    model, inputs = variant.build().double(), in_type(torch.float64, inputs)
    logits = model(**inputs).logits
    for row in range(3):
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        alone = {name: value[:, : int(alone[ENDS[name]])] if name in ENDS else value for name, value in alone.items()}
        found, own = model(**alone).logits, logits[row : row + 1]
        spans = getattr(variant.config, "head", None) == "span"  # whose logits are of tokens, (B, 2, T)
        own = own[..., : found.shape[2]] if spans else own[:, : found.shape[1]]
        torch.testing.assert_close(found, own, atol=1e-5, rtol=0)


def test_steps_equal_all_at_once(writer, inputs) -> None:
    model = writer.build()
    assert isinstance(model, EncoderDecoder)
    whole = model(**inputs).logits
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            found = steps(model, inputs, model.start(**source(inputs)), inputs["target"])
            begun, state = model.prefill(inputs["target"][:, :2], **source(inputs))
            after = model.step(inputs["target"][:, 2], state)
        torch.testing.assert_close(found, whole, atol=1e-5, rtol=0)
        torch.testing.assert_close(torch.stack([begun, after], 1), found[:, 1:3])


def test_steps_after_rows_changed_places(writer, inputs) -> None:
    """As beam search does: rows that move to another sentence, are named often, or never."""
    model, whole = writer.build(), None
    with torch.no_grad():
        whole, state = model(**inputs).logits, model.start(**source(inputs))
        steps(model, inputs, state, inputs["target"][:, :2])
        first, second = torch.tensor([2, 0, 0, 1]), torch.tensor([1, 3, 0, 2])
        state.reorder(first)
        found = steps(model, inputs, state, inputs["target"][first, 2:3])
        torch.testing.assert_close(found, whole[first, 2:3], atol=1e-5, rtol=0)
        state.reorder(second)
        rows = first[second]
        found = steps(model, inputs, state, inputs["target"][rows, 3:])
        torch.testing.assert_close(found, whole[rows, 3:], atol=1e-5, rtol=0)


def test_beams_of_one_sentence_that_part(writer, inputs) -> None:
    """Rows of one sentence go on with different tokens, and then swap."""
    model = writer.build()
    one = {name: value[:1] for name, value in inputs.items()}
    beams = torch.tensor([[1, 4, 6, 8], [1, 5, 7, 9]])
    expected = model(**{name: value.expand(2, *value.shape[1:]) for name, value in {**one, "target": beams}.items()})
    with torch.no_grad():
        state = model.start(**source(one))
        steps(model, one, state, beams[:1, :1])
        state.reorder(torch.tensor([0, 0]))
        steps(model, one, state, beams[:, 1:3])
        state.reorder(torch.tensor([1, 0]))
        found = steps(model, one, state, beams[[1, 0], 3:])
    torch.testing.assert_close(found, expected.logits[[1, 0], 3:], atol=1e-5, rtol=0)


def test_only_one_place_attends(variant, inputs, monkeypatch) -> None:
    class Attended(Exception):
        """Says that the one place was asked."""

    def refuse(*_: object) -> None:
        raise Attended

    # by its full name, because the package has a function of the module's name
    monkeypatch.setattr(importlib.import_module("foveate.attention.attend"), "_attend", refuse)
    model = variant.build()
    if variant.attends:
        with pytest.raises(Attended):
            model(**inputs)
    else:
        assert model(**inputs).logits.shape == variant.logits


def test_other_precisions(variant, inputs) -> None:
    model = variant.build()
    single = model(**inputs).logits
    torch.testing.assert_close(
        model.double()(**in_type(torch.float64, inputs)).logits.float(), single, atol=1e-4, rtol=0
    )
    low = model.bfloat16()(**in_type(torch.bfloat16, inputs)).logits
    assert low.dtype == torch.bfloat16
    assert bool(low.isfinite().all())


def test_dropout_is_for_training_only(variant, inputs) -> None:
    model = variant.build()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5
    assert torch.equal(model(**inputs).logits, model(**inputs).logits)
    model.train()
    assert not torch.equal(model(**inputs).logits, model(**inputs).logits)


def test_laid_out_for_the_cpu_it_computes_the_same(unchanged, inputs) -> None:
    model = unchanged.build()
    with torch.inference_mode():
        found = optimize_for_cpu(model)(**inputs).logits
        torch.testing.assert_close(found, model(**inputs).logits, atol=2e-5, rtol=0)
