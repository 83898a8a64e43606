"""The table of families and presets, and what is said about names and sizes that cannot be."""

import math
from dataclasses import fields
from typing import Literal, get_origin, get_type_hints

import pytest
import torch

import foveate
from foveate import models
from foveate.contracts import Generator
from foveate.data.text.lexicon import SPELLINGS
from foveate.errors import UserError
from foveate.nn import attends

VOCABULARIES = {"src_vocab": 17, "tgt_vocab": 17}

TRANSLATORS = [
    name
    for name, preset in models.presets().items()
    if models.sizes_of_data(preset.family) == [*VOCABULARIES]
    and issubclass(models.family_module(preset.family).MODEL, Generator)
]


def test_every_family_has_a_preset_and_every_preset_a_summary() -> None:
    presets = models.presets()
    assert {preset.family for preset in presets.values()} == set(models.FAMILIES)
    assert sum(len(models.family_module(family).PRESETS) for family in models.FAMILIES) == len(presets)
    for name, preset in presets.items():
        assert models.preset(name) == preset
        assert preset.name == name
        assert preset.summary[0].isupper() or preset.summary[0].isdigit()
        assert set(preset.values) <= {part.name for part in fields(models.config_class(preset.family))}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", models.presets())
def test_a_preset_is_as_its_row_says_and_costs_no_memory_on_meta(name: str) -> None:
    preset = models.preset(name)
    model = foveate.create(name, device="meta", **preset.all_sizes())
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert {buffer.device.type for buffer in model.buffers()} <= {"meta"}
    assert sum(parameter.numel() for parameter in model.parameters()) == preset.parameters
    assert attends(model) == preset.attends
    assert torch.empty(0).device.type == "cpu"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-xl", 1_557_611_200),
        ("gpt1", 116_534_784),
        ("pythia-70m", 70_426_624),
        ("llama-7b", 6_738_415_616),
        ("smollm2-135m", 134_515_008),
        ("opt-125m", 125_239_296),
        ("mistral-7b", 7_241_732_096),
        ("gemma2-2b", 2_614_341_888),
        ("qwen3-0.6b", 596_049_920),
        ("bert-base", 109_514_298),
        ("vit-base-16", 86_567_656),
        ("resnet50", 25_557_032),
        ("detr-resnet50", 41_577_888),
    ],
)
def test_the_presets_of_papers_are_as_large_as_there(name: str, parameters: int) -> None:
    """Without any size: the vocabulary or the classes are those of the paper."""
    model = foveate.create(name, device="meta")
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_sizes_of_papers_are_sizes_of_data() -> None:
    for preset in models.presets().values():
        assert preset.sizes.keys() <= {*models.sizes_of_data(preset.family)}, preset.name
    for family in models.FAMILIES:
        module = models.family_module(family)
        assert {*getattr(module, "SIZES", {})} <= {*module.PRESETS}, family


def test_rows_count_as_many_spellings_as_there_are() -> None:
    assert models.COUNTED["spellings"] == SPELLINGS


@pytest.mark.parametrize("name", ["rnn-luong", "transformer-tiny"])
def test_a_model_from_meta_works_once_it_has_weights(name: str) -> None:
    small = {"width": 12, "dropout": 0.0, **VOCABULARIES}
    inputs = (torch.tensor([[4, 5, 2]]), torch.tensor([3]), torch.tensor([[1, 4]]))
    with_weights = foveate.create(name, **small).eval()
    from_meta = foveate.create(name, device="meta", **small).eval().to_empty(device="cpu")
    from_meta.load_state_dict(with_weights.state_dict())
    torch.testing.assert_close(from_meta(*inputs).logits, with_weights(*inputs).logits)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_an_untrained_translator_is_nearly_indifferent(name: str) -> None:
    """Its loss on random tokens is that of guessing: logits are small, whatever is tied and however deep it is."""
    small = {"transformer": {"width": 64, "heads": 4, "feedforward": 96}, "convolutional-seq2seq": {"width": 64}}
    sizes = {"dropout": 0.0, **small.get(models.preset(name).family, {})}
    model = foveate.create(name, src_vocab=997, tgt_vocab=997, **sizes).eval()
    source, target = torch.randint(4, 997, (7, 11)), torch.randint(4, 997, (7, 13))
    with torch.no_grad():
        logits = model(source, torch.full((7,), 11), target).logits
    labels = torch.randint(4, 997, (7, 13))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert math.log(997) - 0.1 < float(loss) < math.log(997) + 1


def test_create_fills_and_replaces_fields() -> None:
    model = foveate.create("transformer-tiny", width=16, heads=2, **VOCABULARIES)
    assert (model.config.width, model.config.heads, model.config.decoder_layers) == (16, 2, 4)
    assert models.preset("transformer-tiny").values["width"] == 128


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: foveate.create("transfomer-tiny", **VOCABULARIES),
            "unknown model 'transfomer-tiny'; did you mean transformer-tiny",
        ),
        (
            lambda: foveate.create("xyz"),
            "unknown model 'xyz'; known: alexnet, alexnet-one-tower, alexnet-small-images, ",
        ),
        (
            lambda: foveate.create("rnn", witdh=3, **VOCABULARIES),
            "unknown field in rnn 'witdh'; did you mean width or window?",
        ),
        (lambda: foveate.create("rnn", src_vocab=3), 'rnn: missing value for field "tgt_vocab"'),
        (
            lambda: foveate.create("rnn", cell="lsmt", **VOCABULARIES),
            "rnn: cell is 'lsmt', but must be 'lstm' or 'gru' or 'vanilla'",
        ),
        (lambda: foveate.create("rnn", width="12", **VOCABULARIES), "rnn: width is '12', but must be a whole number"),
        (
            lambda: foveate.create("cnn-tiny", classes=5, blocks=(2, 0, 1)),
            "blocks is 0, but must be at least 1",
        ),
        (lambda: foveate.create("rnn", layers=0, **VOCABULARIES), "layers is 0, but must be at least 1"),
        (
            lambda: foveate.create("rnn", width=2**31 + 1, **VOCABULARIES),
            "width is 2,147,483,649, but no model has more than 2,147,483,648",
        ),
        (
            lambda: foveate.create("transformer-tiny", encoder_layers=10**9, **VOCABULARIES),
            "encoder_layers is 1,000,000,000, but no model has more than 10,000",
        ),
        (
            lambda: foveate.create("rnn", embedding=2**31, width=2**31, **VOCABULARIES),
            "a rnn-seq2seq of these sizes takes more memory than this machine has",
        ),
        (lambda: foveate.create("rnn", src_vocab=0, tgt_vocab=3), "src_vocab is 0, but must be at least 1"),
        (
            lambda: foveate.create("transformer-tiny", attention_dropout=1.0, **VOCABULARIES),
            "attention_dropout is 1.0, but must be at least 0 and below 1",
        ),
        (
            lambda: foveate.create("transformer-tiny", width=130, **VOCABULARIES),
            "width 130 is not a multiple of 4 heads",
        ),
        (
            lambda: foveate.create("transformer-base", src_vocab=17, tgt_vocab=13),
            "tie='all' shares one embedding, but the vocabularies have 17 and 13 entries; train a shared one, or use",
        ),
        (
            lambda: foveate.create("rnn", width=7, **VOCABULARIES),
            "a bidirectional layer needs an even width, not 7",
        ),
        (
            lambda: foveate.create("rnn-attentive", encoder="embeddings", embedding=10, **VOCABULARIES),
            "a dot product needs states and source of the same width, not 256 and 10; make `embedding` equal to",
        ),
        (lambda: models.build("transfromer", None), "unknown family of models 'transfromer'; did you mean transformer"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(message)


def choices() -> list[tuple[str, str]]:
    """Every field of every family whose values are names."""
    kinds = {family: get_type_hints(models.config_class(family)) for family in models.FAMILIES}
    return [(family, name) for family in kinds for name, kind in kinds[family].items() if get_origin(kind) is Literal]


@pytest.mark.parametrize(("family", "field"), choices())
@pytest.mark.usefixtures("unchecked")
def test_a_model_refuses_a_name_that_it_does_not_know(family: str, field: str) -> None:
    """Also where its config was made without `create`."""
    sizes = dict.fromkeys(models.sizes_of_data(family), 17)
    config = models.config_class(family)(**sizes, **{field: "Pre"})
    with torch.device("meta"), pytest.raises(UserError, match=f"^unknown {field} 'Pre'; "):
        models.build(family, config)
