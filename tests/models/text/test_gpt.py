"""GPT: its sizes, and writing in steps."""

import pytest
import torch
from torch import nn

import foveate
from foveate.errors import UserError

SMALL = {"vocabulary": 17, "width": 12, "heads": 3, "feedforward": 20, "layers": 2, "max_length": 11, "dropout": 0.0}

PROMPTS, LENGTHS = torch.tensor([[1, 4, 5, 6, 7], [1, 8, 0, 0, 0], [1, 9, 3, 0, 0]]), torch.tensor([5, 2, 3])


@pytest.fixture(params=["gpt-tiny", "gpt1", "gpt-conditioned"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    further = {"conditions": 3} if request.param == "gpt-conditioned" else {}
    return foveate.create(request.param, **SMALL, **further).eval()


@pytest.mark.parametrize(
    ("name", "vocabulary", "parameters"),
    [
        ("gpt1", 40_478, 116_534_784),
        ("gpt2", 50_257, 124_439_808),
        ("gpt2-medium", 50_257, 354_823_168),
        ("gpt2-large", 50_257, 774_030_080),
        ("gpt2-xl", 50_257, 1_557_611_200),
    ],
)
def test_the_parameters_of_the_papers_sizes(name: str, vocabulary: int, parameters: int) -> None:
    model = foveate.create(name, device="meta", vocabulary=vocabulary)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_a_later_token_changes_nothing_before_it(model: nn.Module) -> None:
    logits = model(PROMPTS).logits
    other = PROMPTS.clone()
    other[:, 3:] = 11
    changed = (model(other).logits - logits).abs().amax((0, 2)) > 1e-6
    assert changed.tolist() == [False, False, False, True, True]


def conditions(model: nn.Module) -> dict[str, torch.Tensor]:
    return {"condition": torch.tensor([2, 0, 1])} if model.condition else {}


def test_steps_after_prompts_of_different_lengths_equal_all_at_once(model: nn.Module) -> None:
    further = torch.tensor([[4, 5, 6], [7, 8, 9], [10, 11, 12]])
    with torch.no_grad():
        state = model.start(PROMPTS, LENGTHS, **conditions(model))
        found = [model.step(torch.ones(3, dtype=torch.long), state)]
        state.reorder(torch.tensor([2, 0, 1]))
        found += [model.step(tokens, state) for tokens in further[[2, 0, 1]].unbind(1)]
        for place, row in enumerate([2, 0, 1]):
            length = int(LENGTHS[row])
            text = torch.cat([PROMPTS[row, :length], further[row]])[None]
            alone = {name: value[row : row + 1] for name, value in conditions(model).items()}
            whole = model(text, **alone).logits[0, length - 1 :]
            torch.testing.assert_close(found[0][row], whole[0], atol=1e-5, rtol=0)
            for step in (1, 2, 3):
                torch.testing.assert_close(found[step][place], whole[step], atol=1e-5, rtol=0)


def test_a_condition_changes_what_is_written() -> None:
    model = foveate.create("gpt-conditioned", **SMALL, conditions=3).eval()
    first, second = (model(PROMPTS, condition=torch.tensor([number] * 3)).logits for number in (0, 2))
    assert not torch.allclose(first, second)
    assert torch.equal(model(PROMPTS).logits, first)


def test_longer_than_the_positions(model: nn.Module) -> None:
    with pytest.raises(UserError, match="12"):
        model(torch.ones(1, 12, dtype=torch.long))
    with pytest.raises(UserError, match="12"):
        model.start(torch.ones(1, 12, dtype=torch.long), torch.tensor([12]))


def test_where_it_looks(model: nn.Module) -> None:
    with foveate.look(model) as sight:
        model(PROMPTS)
    assert sight.sites == ["blocks.0.self", "blocks.1.self"]
    assert sight["blocks.1.self"].weights().shape == (3, 3, 5, 5)
