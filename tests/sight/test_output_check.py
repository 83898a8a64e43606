"""Weights times values against an output, where some of it is not a number."""

from dataclasses import replace

import pytest
import torch
from calls import make
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight.output_check import OutputCheck, check_output, check_sample, some_queries


def call_and_output() -> tuple[Call, Tensor]:
    call = make()
    values = torch.randn(2, 3, 23, 7)
    return replace(call, values=values), (call.scores().softmax(-1) @ values).detach()


def checked(call: Call, output: Tensor) -> OutputCheck | None:
    return check_output(call, Attended(output), some_queries(call))


def test_the_output_of_the_call_and_another() -> None:
    call, output = call_and_output()
    assert checked(call, output).passed
    assert not checked(call, 2 * output).passed


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_broken_example_proves_nothing_of_the_others(broken: float) -> None:
    call, output = call_and_output()
    output[1], call.values[1] = broken, broken
    assert checked(call, output).passed
    output[0] *= 2
    assert not checked(call, output).passed


def test_weights_that_are_no_numbers_do_not_make_an_output_that_is() -> None:
    call, output = call_and_output()
    queries = call.queries.detach().clone()
    queries[1] = torch.nan
    assert checked(replace(call, queries=queries), output).error == torch.inf


def test_nothing_proves_nothing() -> None:
    call, output = call_and_output()
    empty = replace(call, queries=call.queries[:0], keys=call.keys[:0], values=call.values[:0])
    assert checked(empty, output[:0]) is None


def test_a_sample_of_the_output() -> None:
    """One query of a few examples: which ones, that differs from call to call."""
    call, output = call_and_output()
    for number in range(19):
        assert check_sample(call, Attended(output), number).passed
        assert not check_sample(call, Attended(2 * output), number).passed
    wrong = output.clone()
    wrong[1, 2, 7] += 1
    found = [check_sample(call, Attended(wrong), number).passed for number in range(19)]
    assert found.count(False) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_sample_in_other_precisions(dtype: torch.dtype) -> None:
    call, output = call_and_output()
    queries, keys, values = (part.detach().to(dtype) for part in (call.queries, call.keys, call.values))
    other = replace(call, queries=queries, keys=keys, values=values)
    assert check_sample(other, Attended(output.to(dtype)), 3).passed
    assert not check_sample(other, Attended(2 * output.to(dtype)), 3).passed


def test_a_sample_of_what_was_chosen() -> None:
    call, _ = call_and_output()
    choice = call.scores().argmax(-1).detach()
    output = call.values.gather(-2, choice[..., None].expand(-1, -1, -1, 7))
    assert check_sample(call, Attended(output, choice=choice), 1).passed
    assert not check_sample(call, Attended(output, choice=(choice + 1) % call.keys.shape[-2]), 1).passed


def test_a_sample_of_nothing_and_of_what_is_no_number() -> None:
    call, output = call_and_output()
    empty = replace(call, queries=call.queries[:0], keys=call.keys[:0], values=call.values[:0])
    assert check_sample(empty, Attended(output[:0]), 1) is None
    output[1], call.values[1] = torch.nan, torch.nan
    assert check_sample(call, Attended(output), 1).passed
