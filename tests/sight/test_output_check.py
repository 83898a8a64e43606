"""Weights times values against an output, where some of it is no number."""

from dataclasses import replace

import pytest
import torch
from calls import make
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight.output_check import check_output


def call_and_output() -> tuple[Call, Tensor]:
    call = make()
    values = torch.randn(2, 3, 23, 7)
    return replace(call, values=values), (call.scores().softmax(-1) @ values).detach()


def test_the_output_of_the_call_and_another() -> None:
    call, output = call_and_output()
    assert check_output(call, Attended(output)).passed
    assert not check_output(call, Attended(2 * output)).passed


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_a_broken_example_proves_nothing_of_the_others(broken: float) -> None:
    call, output = call_and_output()
    output[1], call.values[1] = broken, broken
    assert check_output(call, Attended(output)).passed
    output[0] *= 2
    assert not check_output(call, Attended(output)).passed


def test_weights_that_are_no_numbers_do_not_make_an_output_that_is() -> None:
    call, output = call_and_output()
    queries = call.queries.detach().clone()
    queries[1] = torch.nan
    assert check_output(replace(call, queries=queries), Attended(output)).error == torch.inf


def test_nothing_proves_nothing() -> None:
    call, output = call_and_output()
    assert check_output(replace(call, queries=call.queries[:0], keys=call.keys[:0]), Attended(output[:0])) is None
