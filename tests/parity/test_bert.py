"""BERT and RoBERTa against transformers: the same logits, losses and gradients from the same weights, both ways."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import foveate
from foveate.errors import UserError
from foveate.interop.keys import bert
from foveate.interop.public_folder import read_folder, write_folder

SIZES = {"vocabulary": 17, "classes": 7, "width": 20, "heads": 5, "feedforward": 28, "layers": 3, "max_length": 13}

PARTS = {"vocab_size": 17, "hidden_size": 20, "num_attention_heads": 5, "intermediate_size": 28, "num_labels": 7}

CASES = [
    ("bert-base", "words", "BertForMaskedLM"),
    ("bert-base", "text", "BertForSequenceClassification"),
    ("bert-base", "tokens", "BertForTokenClassification"),
    ("bert-base", "pair", "BertForNextSentencePrediction"),
    ("bert-base", "none", "BertModel"),
    ("roberta-base", "words", "RobertaForMaskedLM"),
    ("roberta-base", "text", "RobertaForSequenceClassification"),
    ("roberta-base", "tokens", "RobertaForTokenClassification"),
    ("roberta-base", "none", "RobertaModel"),
]

LENGTHS = torch.tensor([11, 7, 2])

REAL = {"right": torch.arange(11) < LENGTHS[:, None], "left": torch.arange(11) >= 11 - LENGTHS[:, None]}

PLACES = {side: (real.cumsum(1) - 1).clamp(min=0) for side, real in REAL.items()}


@pytest.fixture(params=CASES, ids=[case[2] for case in CASES])
def pair(request: pytest.FixtureRequest) -> tuple[nn.Module, nn.Module]:
    """A model of ours and one of theirs with the same weights, none of them at its initial value."""
    preset, head, name = request.param
    classes = 2 if head == "pair" else 7
    ours = foveate.create(preset, **{**SIZES, "classes": classes}, head=head, dropout=0.0).double().eval()
    kind = transformers.BertConfig if preset == "bert-base" else transformers.RobertaConfig
    types, positions = (2, 13) if preset == "bert-base" else (1, 15)
    epsilon = 1e-12 if preset == "bert-base" else 1e-5
    config = kind(
        **PARTS,
        num_hidden_layers=3,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
        pad_token_id=0 if preset == "bert-base" else 1,
    )
    made = getattr(transformers, name)
    theirs = (made(config, add_pooling_layer=False) if head == "none" else made(config)).double().eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.uniform_(-0.5, 0.5)
    missing, unexpected = theirs.load_state_dict(public(ours, ours.state_dict()), strict=False)
    assert not unexpected
    assert not [name for name in missing if "position_ids" not in name]
    return ours, theirs


def public(ours: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state of ours by transformers' names; those of a model without a head have no prefix there."""
    key_map = bert.key_map(ours.config)
    found = key_map.to_public(state)
    if ours.config.head == "none":
        return {name.removeprefix(key_map.prefix): value for name, value in found.items()}
    return found | {copy: found[name] for copy, name in key_map.tied.items()}


def theirs_given(theirs: nn.Module, tokens: Tensor, types: Tensor, side: str, **more: Tensor) -> object:
    offset = 2 if isinstance(theirs.config, transformers.RobertaConfig) else 0
    mask, places = REAL[side].long(), PLACES[side] + offset
    return theirs(tokens, attention_mask=mask, token_type_ids=types, position_ids=places, **more)


@pytest.mark.parametrize("side", ["right", "left"])
def test_logits_and_gradients(pair: tuple[nn.Module, nn.Module], side: str) -> None:
    ours, theirs = pair
    head, kinds = ours.config.head, ours.config.token_types
    tokens, types = torch.randint(2, 17, (3, 11)), torch.randint(kinds, (3, 11))
    found = ours(tokens, LENGTHS, types, padding_side=side).logits
    real = REAL[side]
    if head in ("text", "pair"):
        first = (11 - LENGTHS if side == "left" else torch.zeros(3, dtype=torch.long)).tolist()
        if any(first):  # theirs reads the first column, even where it is padding
            rows = [
                ours(tokens[row : row + 1, start:], token_types=types[row : row + 1, start:]).logits
                for row, start in enumerate(first)
            ]
            torch.testing.assert_close(found, torch.cat(rows), atol=1e-9, rtol=0)
            return
        real = torch.ones(3, 1, dtype=torch.bool)
    expected = theirs_given(theirs, tokens, types, side)[0]
    expected = expected[:, None] if expected.ndim == 2 else expected
    torch.testing.assert_close(found[real], expected[real], atol=1e-9, rtol=0)
    weights = torch.randn_like(expected) * real[..., None]
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters(remove_duplicate=False)}
    others = {name: parameter.grad for name, parameter in theirs.named_parameters(remove_duplicate=False)}
    for name, value in public(ours, gradients).items():
        torch.testing.assert_close(value, others[name], atol=1e-9, rtol=0, msg=name)


@pytest.mark.parametrize("pair", [CASES[0], CASES[5]], indirect=True, ids=["bert", "roberta"])
def test_the_loss_of_masked_places(pair: tuple[nn.Module, nn.Module]) -> None:
    """Ours has logits at these places alone; theirs ignores the labels of all others."""
    ours, theirs = pair
    tokens, types = torch.randint(2, 17, (3, 11)), torch.zeros(3, 11, dtype=torch.long)
    places = torch.tensor([[0, 10, 4], [6, 3, 0], [1, 0, 0]])
    wanted = torch.tensor([[9, 3, 5], [16, 2, 8], [4, -100, -100]])
    labels = torch.full((3, 11), -100)
    labels.scatter_(1, places[:, :2], wanted[:, :2]).scatter_(1, places[:2, 2:], wanted[:2, 2:])
    labels[2, 0], labels[2, 1] = -100, 4
    logits = ours(tokens, LENGTHS, types, places).logits
    assert logits.shape == (3, 3, 17)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
    expected = theirs_given(theirs, tokens, types, "right", labels=labels).loss
    torch.testing.assert_close(loss, expected, atol=1e-9, rtol=0)


def test_the_tensors_come_back_as_they_were(pair: tuple[nn.Module, nn.Module]) -> None:
    ours, theirs = pair
    state = theirs.state_dict()
    body = next(name for name in state if name.endswith("embeddings.LayerNorm.weight")).split("LayerNorm")[0]
    back = bert.key_map(ours.config).to_ours({**state, f"{body}position_ids": torch.arange(13)})
    assert back.keys() == ours.state_dict().keys()
    for name, value in ours.state_dict().items():
        assert torch.equal(back[name], value), name


def saved(model: nn.Module, folder: Path, changes: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Path:
    """The folder of a model of ours whose tensors were changed."""
    write_folder(folder, "bert", model, {})
    save_file(changes(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    return folder


def test_the_body_of_a_checkpoint_with_another_head(tmp_path: Path) -> None:
    words = foveate.create("bert-base", **SIZES)
    folder = saved(words, tmp_path / "words", lambda state: state)
    body = read_folder(folder, body=True).model.state_dict()
    assert {*body} == {name for name in words.state_dict() if not name.startswith("head.")}
    assert all(torch.equal(words.state_dict()[name], value) for name, value in body.items())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMultipleChoice"]}))
    assert read_folder(folder, body=True).model.state_dict().keys() == body.keys()
    with pytest.raises(UserError, match="is a BertForMultipleChoice; foveate runs BertModel"):
        read_folder(folder)
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(UserError, match=r"lacks the tensor 'bert\.pooler\.dense\.bias' and 3 more"):
        read_folder(folder)
    with pytest.raises(UserError, match=r"unknown tensor 'bert\.encoder\.layer\.3\.attention'"):
        read_folder(
            saved(words, tmp_path / "more", lambda own: own | {"bert.encoder.layer.3.attention": torch.ones(1)})
        )


def test_old_names_of_norms(tmp_path: Path) -> None:
    model = foveate.create("bert-base", **SIZES)
    renames = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def older(state: dict[str, Tensor]) -> dict[str, Tensor]:
        found = {}
        for name, value in state.items():
            for new, old in renames.items():
                name = name.replace(new, old)
            found[name] = value
        return found

    back = read_folder(saved(model, tmp_path, older)).model.state_dict()
    assert all(torch.equal(back[name], value) for name, value in model.state_dict().items())


def test_the_bias_of_words_under_either_name(tmp_path: Path) -> None:
    model = foveate.create("bert-base", **SIZES)
    with torch.no_grad():
        model.head.output.bias.uniform_()

    def decoder(state: dict[str, Tensor]) -> dict[str, Tensor]:
        return state | {"cls.predictions.decoder.bias": state.pop("cls.predictions.bias")}

    back = read_folder(saved(model, tmp_path, decoder)).model.state_dict()
    assert torch.equal(back["head.output.bias"], model.head.output.bias)


def test_roberta_has_no_pairs() -> None:
    model = foveate.create("roberta-base", **SIZES, head="pair")
    with pytest.raises(UserError, match="Roberta has no head 'pair' in transformers"):
        bert.key_map(model.config)
