"""GPT, GPT-NeoX and Llama: their sizes, prompts with padding on either side, and steps against all at once."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.contracts import Generator
from foveate.decoding import Decoding, beam, decode, greedy, sample
from foveate.errors import UserError
from foveate.inference.cpu import optimize_for_cpu
from foveate.special_tokens import LEARNED

SMALL = {"vocabulary": 17, "width": 12, "heads": 3, "feedforward": 20, "layers": 2, "max_length": 11, "dropout": 0.0}

PRESETS = {
    "gpt1": {},
    "gpt2": {},
    "gpt-conditioned": {"conditions": 3},
    "gpt3-175b": {"window": 2},
    "gpt-neox-20b": {"rotary_width": 2},
    "smollm2-135m": {"key_value_heads": 1},
}

PROMPTS, LENGTHS = torch.tensor([[1, 4, 5, 6, 7], [1, 8, 0, 0, 0], [1, 9, 3, 0, 0]]), torch.tensor([5, 2, 3])

LEFT = torch.tensor([[1, 4, 5, 6, 7], [0, 0, 0, 1, 8], [0, 0, 1, 9, 3]])


@pytest.fixture(params=PRESETS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    """With random numbers in all parameters: initial ones are so small that mistakes would not be seen."""
    made = foveate.create(request.param, **SMALL, **PRESETS[request.param]).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made


def condition(model: nn.Module) -> dict[str, Tensor]:
    return {"condition": torch.tensor([2, 0, 1])} if getattr(model, "condition", None) is not None else {}


def alone(model: nn.Module, row: int, text: Tensor) -> Tensor:
    """The logits of one text without any padding."""
    given = {name: value[row : row + 1] for name, value in condition(model).items()}
    return model(text[None], **given).logits[0]


@pytest.mark.parametrize(
    ("name", "vocabulary", "parameters"),
    [
        ("gpt1", 40_478, 116_534_784),
        ("gpt2", 50_257, 124_439_808),
        ("gpt2-medium", 50_257, 354_823_168),
        ("gpt2-large", 50_257, 774_030_080),
        ("gpt2-xl", 50_257, 1_557_611_200),
        ("gpt-neox-20b", 50_432, 20_554_567_680),
        ("smollm2-135m", 49_152, 134_515_008),
    ],
)
def test_the_parameters_of_published_models(name: str, vocabulary: int, parameters: int) -> None:
    model = foveate.create(name, device="meta", vocabulary=vocabulary)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(
    ("name", "vocabulary", "layers", "width", "positions"),
    [
        ("gpt3-175b", 50_257, 96, 12_288, 2048),
        ("megatron-8.3b", 51_200, 72, 3072, 1024),
        ("turing-nlg-17b", 51_200, 78, 4256, 1024),
    ],
)
def test_parameters_by_formula(name: str, vocabulary: int, layers: int, width: int, positions: int) -> None:
    """A block has 12 C^2 weights, 9 C biases and 4 C parameters of norms; tables of tokens and positions, a norm."""
    model = foveate.create(name, device="meta", vocabulary=vocabulary)
    expected = layers * (12 * width**2 + 13 * width) + (vocabulary + positions + 2) * width
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    assert expected in (174_604_259_328, 8_317_040_640, 17_180_859_136)


def test_padding_on_either_side_changes_nothing(model: nn.Module) -> None:
    right = model(PROMPTS, LENGTHS, **condition(model)).logits
    left = model(LEFT, LENGTHS, padding_side="left", **condition(model)).logits
    for row, length in enumerate(LENGTHS.tolist()):
        expected = alone(model, row, PROMPTS[row, :length])
        torch.testing.assert_close(right[row, :length], expected, atol=2e-5, rtol=0)
        torch.testing.assert_close(left[row, 5 - length :], expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_steps_after_prompts_of_different_lengths_equal_all_at_once(model: nn.Module, side: str) -> None:
    """Rows change places before the first step, and a column of padding on all rows is no matter."""
    prompts = torch.cat([PROMPTS, torch.zeros(3, 1, dtype=torch.long)], 1)
    prompts = prompts if side == "right" else torch.cat([torch.zeros(3, 1, dtype=torch.long), LEFT], 1)
    further, rows = torch.tensor([[4, 5, 6], [7, 8, 9], [10, 11, 12]]), torch.tensor([2, 0, 1])
    assert isinstance(model, Generator)
    with torch.no_grad():
        logits, state = model.prefill(prompts, LENGTHS, padding_side=side, **condition(model))
        state.reorder(rows)
        found = [logits[rows], *(model.step(tokens, state) for tokens in further[rows].unbind(1))]
        for place, row in enumerate(rows.tolist()):
            length = int(LENGTHS[row])
            whole = alone(model, row, torch.cat([PROMPTS[row, :length], further[row]]))[length - 1 :]
            torch.testing.assert_close(torch.stack([step[place] for step in found]), whole, atol=2e-5, rtol=0)


def test_every_way_of_decoding_a_batch_finds_what_it_finds_for_each_prompt(model: nn.Module) -> None:
    inputs = {"tokens": PROMPTS, "lengths": LENGTHS, **condition(model)}
    for search in (greedy, beam):
        together = search(model, inputs, LEARNED, 6)
        for row, length in enumerate(LENGTHS.tolist()):
            one = {name: value[row : row + 1] for name, value in inputs.items()}
            (found,) = search(model, {**one, "tokens": one["tokens"][:, :length]}, LEARNED, 6)
            best, others = (found, together[row]) if search is greedy else (found[0], together[row][0])
            assert best.tokens == others.tokens
            assert best.log_prob == pytest.approx(others.log_prob, abs=1e-4)
    assert [len(each) for each in sample(model, inputs, LEARNED, 5, samples=3)] == [3, 3, 3]


def test_prompt_and_output_have_room_in_the_positions() -> None:
    """The last token is not read: prompts of 5, 2 and 3 tokens have room for 7, 10 and 9 more with 11 positions."""
    model = foveate.create("gpt2", **SMALL).eval()
    with torch.no_grad():
        model.stack.norm.bias.copy_(model.embedding.weight[9] * 1e3)  # always the same token
    inputs = {"tokens": PROMPTS, "lengths": LENGTHS}
    found = decode(model, inputs, LEARNED, torch.zeros(3, dtype=torch.long), Decoding("greedy", length_extra=50))
    assert [one.tokens for (one,) in found] == [[9] * 7, [9] * 10, [9] * 9]


def test_a_condition_changes_what_is_written() -> None:
    model = foveate.create("gpt-conditioned", **SMALL, conditions=3).eval()
    first, second = (model(PROMPTS, condition=torch.tensor([number] * 3)).logits for number in (0, 2))
    assert not torch.allclose(first, second)
    assert torch.equal(model(PROMPTS).logits, first)


def test_prompts_that_cannot_be() -> None:
    model = foveate.create("gpt2", **SMALL).eval()
    with pytest.raises(UserError, match="a sequence has 12 positions, but only 11 were learned"):
        model(torch.ones(1, 12, dtype=torch.long))
    with pytest.raises(UserError, match="a prompt has 12 tokens, but only 11 positions were learned; shorten it"):
        model.prefill(torch.ones(2, 13, dtype=torch.long), torch.tensor([12, 3]))
    with pytest.raises(UserError, match="an empty prompt has no next token: begin it with a start token"):
        model.prefill(PROMPTS, torch.tensor([5, 0, 3]))


def test_where_it_looks(model: nn.Module) -> None:
    """A site has as many heads as the model, also where they share keys and values."""
    with foveate.look(model) as sight:
        model(PROMPTS)
    assert sight.sites == ["stack.blocks.0.self", "stack.blocks.1.self"]
    weights = sight["stack.blocks.1.self"].weights()
    assert weights.shape == (3, 3, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 3, 5))


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_label_of_the_text_depends_on_no_padding(pooling: str) -> None:
    model = foveate.create("gpt-tiny", **SMALL, head="text", classes=5, pooling=pooling).eval()
    short, long = torch.tensor([[3, 5, 7]]), torch.tensor([[3, 5, 7, 0, 0], [1, 2, 3, 4, 6]])
    alone = model(short, torch.tensor([3])).logits
    assert alone.shape == (1, 1, 5)
    torch.testing.assert_close(model(short).logits, alone)
    torch.testing.assert_close(model(long, torch.tensor([3, 5])).logits[:1], alone)
    left = torch.tensor([[0, 0, 3, 5, 7], [1, 2, 3, 4, 6]])
    torch.testing.assert_close(model(left, torch.tensor([3, 5]), "left").logits[:1], alone)


def test_queries_of_layers_without_rotation_grow_with_their_position() -> None:
    """As in Llama 4, by the formula of its public implementation; from a state and in lean steps, too."""
    torch.manual_seed(1)
    turns = {"positions": "rotary", "rotary_layers": (True, False), "query_temperature": 2.0, "temperature_span": 3}
    sizes = {"vocabulary": 17, "width": 16, "heads": 2, "layers": 2, "feedforward": 11, "dropout": 0.0}
    model = foveate.create("gpt-tiny", **sizes, **turns).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    layer, seen, tokens = model.stack.blocks[1].self, [], torch.randint(1, 17, (2, 11))
    layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad(), foveate.look(model) as sight:
        whole = model(tokens).logits
        queries, keys = (part(seen[0]).unflatten(-1, (2, 8)).transpose(1, 2) for part in (layer.query, layer.key))
    scales = torch.log1p(torch.floor((torch.arange(11.0) + 1) / 3)) * 2 + 1
    scores = (queries * scales[:, None]) @ keys.mT / 8**0.5
    expected = scores.masked_fill(torch.ones(11, 11).triu(1).bool(), -torch.inf).softmax(-1)
    torch.testing.assert_close([*sight][1].weights(), expected)
    layer._forward_pre_hooks.clear()
    with torch.inference_mode():
        for reader in (model, optimize_for_cpu(model)):
            logits, state = reader.prefill(tokens[:, :4], torch.tensor([4, 4]))
            rows = [logits, *(reader.step(column, state) for column in tokens[:, 4:].unbind(1))]
            torch.testing.assert_close(torch.stack(rows, 1), whole[:, 3:], rtol=0, atol=1e-4)
