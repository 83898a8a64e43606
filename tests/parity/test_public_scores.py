"""What the logits of every public head for labels are: the scores of transformers' own pipelines."""

import json
from pathlib import Path
from typing import Any

import image_folders
import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from folders import FOLDERS
from llama_relatives import RELATIVES
from public_models import CONFIGS, config_of, word_tokenizer
from sound_folders import SOUND_FOLDERS
from tokenizers import processors

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.interop.layout import label_scores
from foveate.interop.public_folder import MODEL_TYPES, layout_at

BERT = {"num_attention_heads": 5, "hidden_size": 20, "num_hidden_layers": 2, "intermediate_size": 28, "vocab_size": 53}

FAMILIES = (
    "gpt2",
    "gpt1",
    "gpt-neox",
    "llama",
    *(name for name, config in RELATIVES.items() if name == config.model_type),
)

TEXTS: dict[str, Any] = {
    **{CONFIGS[name].model_type: config_of(name) for name in FAMILIES},
    "xlnet": transformers.XLNetConfig(vocab_size=53, d_model=20, n_layer=2, n_head=5, d_inner=28),
    "bert": transformers.BertConfig(**BERT, type_vocab_size=1),
    "roberta": transformers.RobertaConfig(**BERT, max_position_embeddings=60, type_vocab_size=1),
    **{
        kind: folder.config
        for kind, folder in FOLDERS.items()
        if kind in ("xlm-roberta", "camembert", "distilbert", "electra", "mpnet", "modernbert", "deberta", "deberta-v2")
    },
}

IMAGES: dict[str, Any] = {
    "vit": transformers.ViTConfig(**{**BERT, "num_attention_heads": 2}, patch_size=5, image_size=25, num_labels=1),
    "swin": transformers.SwinConfig(embed_dim=14, depths=[2, 2], num_heads=[2, 4], window_size=3, patch_size=2),
    "convnext": transformers.ConvNextConfig(depths=[1, 2, 1], hidden_sizes=[8, 12, 20], num_stages=3),
    "resnet": transformers.ResNetConfig(depths=[1, 2], hidden_sizes=[24, 48], embedding_size=6),
}

HEADS = {
    "one of several": (3, None),
    "one of several by name": (3, "single_label_classification"),
    "several at once": (3, "multi_label_classification"),
    "one alone": (1, "multi_label_classification"),
    "a number": (1, "regression"),
    "numbers": (3, "regression"),
}


def folder_of(config: Any, kind: str, count: int, problem: str | None, place: Path) -> Any:
    """A random model of transformers with a head for labels, in a folder."""
    names = {
        "id2label": dict(enumerate("xyz"[:count])),
        "label2id": {label: at for at, label in enumerate("xyz"[:count])},
    }
    values = {
        **config.to_dict(),
        **names,
        "pad_token_id": 1 if getattr(config, "pad_token_id", None) == 1 else 50,
        "problem_type": problem,
        "dtype": "float32",
    }
    torch.manual_seed(7)
    model = getattr(transformers, kind).from_config(type(config).from_dict(values))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.4, 0.5)
    model.eval().save_pretrained(place)
    return model


def scores_of(answer: Any) -> dict[str, float]:
    found: dict[str, float] = answer.numbers if hasattr(answer, "numbers") else answer.probabilities
    return found


def test_every_family_with_labels_is_compared() -> None:
    heads = {kind: {*layout_at(name).architectures.values()} for kind, name in MODEL_TYPES.items()}
    assert {kind for kind, found in heads.items() if "text" in found} | {"bert", "roberta"} == TEXTS.keys()
    sounds = {folder.kind for folder in SOUND_FOLDERS.values()}  # whose answers test_every_sound_folder.py compares
    images = {kind for kind, found in heads.items() if "label" in found} - sounds
    assert images >= IMAGES.keys()
    elsewhere = {"timm", *(name.split("-")[0] for name in image_folders.models())}  # whose logits are compared
    assert {kind.split("_")[0] for kind in images - IMAGES.keys()} <= {name.split("_")[0] for name in elsewhere}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", TEXTS)
def test_scores_of_texts(name: str, head: str, tmp_path: Path) -> None:
    theirs = folder_of(TEXTS[name], "AutoModelForSequenceClassification", *HEADS[head], tmp_path)
    words = word_tokenizer()
    if "bert" in name or name in ("electra", "mpnet"):
        signs = [("<s>", 51), ("</s>", 52)]
        words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=signs)
    words.save(str(tmp_path / "tokenizer.json"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="z")
    pipeline = transformers.pipeline("text-classification", model=theirs, tokenizer=tokenizer, device="cpu")
    text = "the lamp lit the stairs"
    expected = {one["label"]: one["score"] for one in pipeline(text, top_k=None)}
    assert scores_of(foveate.load(tmp_path).run(text)) == pytest.approx(expected, abs=3e-5)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", IMAGES)
def test_scores_of_images(name: str, head: str, tmp_path: Path) -> None:
    theirs = folder_of(IMAGES[name], "AutoModelForImageClassification", *HEADS[head], tmp_path)
    size = {"height": 25, "width": 25}
    processor = transformers.ViTImageProcessor(size=size)
    processor.save_pretrained(tmp_path)
    image = tmp_path / "x.png"
    PIL.Image.fromarray(np.random.default_rng(3).integers(0, 255, (31, 43, 3), np.uint8)).save(image)
    pipeline = transformers.pipeline("image-classification", model=theirs, image_processor=processor, device="cpu")
    expected = {one["label"]: one["score"] for one in pipeline(str(image), top_k=9)}
    assert scores_of(foveate.load(tmp_path).run(image)) == pytest.approx(expected, rel=1e-4, abs=5e-5)


def test_a_pair_has_the_scores_of_its_head(tmp_path: Path) -> None:
    theirs = folder_of(
        transformers.BertConfig(**BERT), "AutoModelForSequenceClassification", *HEADS["several at once"], tmp_path
    )
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "lamp", "lit"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    with torch.no_grad():
        types = torch.tensor([[0, 0, 0, 0, 1, 1]])
        expected = theirs(torch.tensor([[2, 4, 5, 3, 6, 3]]), token_type_ids=types).logits[0].sigmoid().tolist()
    found = foveate.load(tmp_path).run("the lamp\tlit")
    assert [*found.probabilities.values()] == pytest.approx(expected, abs=2e-5)


def test_a_logit_without_a_problem_type_is_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """transformers trains such a head as a regression; its pipeline shows the sigmoid of the same number."""
    theirs = folder_of(TEXTS["gpt2"], "AutoModelForSequenceClassification", 1, None, tmp_path)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    with torch.no_grad():
        number = theirs(torch.tensor([word_tokenizer().encode("the lamp").ids])).logits.item()
    main(["run", str(tmp_path), "the lamp"])
    assert capsys.readouterr().out == f"{number:.4f}\n"
    main(["run", str(tmp_path), "the lamp", "--json"])
    assert json.loads(capsys.readouterr().out)["numbers"] == {"x": pytest.approx(number, abs=2e-5)}
    with pytest.raises(UserError, match="gives numbers, and foveate eval measures labels"):
        foveate.load(tmp_path).evaluate([tmp_path / "none.tsv"])


def test_all_labels_that_hold_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of(TEXTS["llama"], "AutoModelForSequenceClassification", 3, "multi_label_classification", tmp_path)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    skill = foveate.load(tmp_path)
    for text in ("the lamp", "dawn", "counting each lamp", "up"):
        answer = skill.run(text)
        assert answer.labels == [label for label, share in answer.probabilities.items() if share >= 0.5]
        assert len(answer.cells) == 2 * max(1, len(answer.labels))
        assert answer.json_values()["labels"] == answer.labels
    labels = list(answer.probabilities)
    (tmp_path / "data.tsv").write_text(f"{labels[0]}|{labels[2]}\tthe lamp\n\tdawn\n", encoding="utf-8")
    (measured,) = skill.evaluate([tmp_path / "data.tsv"]).figures["ways"].values()
    right = [{labels[0], labels[2]}, set()]
    found = [{*skill.run(text).labels} for text in ("the lamp", "dawn")]
    assert measured["all_labels_right"] == 50 * sum(one == other for one, other in zip(found, right, strict=True))


def test_what_a_head_may_say() -> None:
    with pytest.raises(UserError, match="problem_type 'ranking'; foveate knows single_label_classification, multi_lab"):
        label_scores({"problem_type": "ranking"}, 3, "config.json")
    assert label_scores({"problem_type": "single_label_classification"}, 1, "config.json") == "sigmoid"
    named = "torch.nn.modules.activation.Sigmoid"
    assert label_scores({"sentence_transformers": {"activation_fn": named}}, 1, "config.json") == "sigmoid"
    assert label_scores({"sbert_ce_default_activation_function": named}, 1, "config.json") == "sigmoid"
    with pytest.raises(UserError, match=r"has the activation 'torch\.nn\.Tanh'; foveate knows Sigmoid, Identity"):
        label_scores({"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}}, 1, "config.json")
