"""Folders of models that foveate has none of, of further heads: they run through transformers, with its numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS as KNOWN
from folders import MASK, NAMES, Folder, scramble
from PIL import Image
from sound_folders import RATE, WAVES, write_letters, write_sound
from translators import SIZES, T5, TRANSLATORS

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks.start.weights import open_start

MEGATRON = transformers.MegatronBertConfig(
    vocab_size=53, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=28
)


def run_as_json(capsys: Any, *arguments: Any) -> Any:
    """The answer of `foveate run --json`, and that it is neither trained nor exported."""
    capsys.readouterr()
    main(["run", *map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out)


def refused_elsewhere(folder: Path) -> None:
    with pytest.raises(UserError):
        open_start(folder)
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(folder), "--out", str(folder / "out")])
    assert stopped.value.code == 2


SPANS = {
    "a type that we have none of": Folder(MEGATRON, {"span": "AutoModelForQuestionAnswering"}, ("<s>", "</s>"), MASK),
    "a type with another part": replace(
        KNOWN["deberta-v2"],
        config=type(KNOWN["deberta-v2"].config).from_dict(
            {**KNOWN["deberta-v2"].config.to_dict(), "conv_kernel_size": 3, "conv_act": "gelu"}
        ),
    ),
}


@pytest.mark.parametrize("name", SPANS)
def test_a_part_of_the_text_answers(name: str, tmp_path: Path, capsys: Any) -> None:
    theirs = SPANS[name].write("span", tmp_path)
    skill = foveate.load(tmp_path)
    (answer,) = skill.answer(["the keeper lit the lamp\tthe lamp"])
    inputs, _ = skill.processor.reads.tensors(
        [skill.processor.reads.prepare(skill.processor.reads.open("the keeper lit the lamp\tthe lamp"))]
    )
    types = {"token_type_ids": inputs["token_types"]} if "token_types" in inputs else {}
    with torch.no_grad():
        found = skill.model(**inputs).logits
        expected = theirs(input_ids=inputs["tokens"], **types)
    torch.testing.assert_close(found[:, 0], expected.start_logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(found[:, 1], expected.end_logits, atol=1e-5, rtol=0)
    given = "the keeper lit the lamp\tthe lamp"
    assert run_as_json(capsys, tmp_path, given)["answer"] == answer.answer
    main(["look", str(tmp_path), given, "--out", str(tmp_path / "look.html")])
    refused_elsewhere(tmp_path)


def seq2seq(name: str, **more: Any) -> Any:
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **more})
    return getattr(transformers, f"{name}ForConditionalGeneration")(config)


WRITERS = {
    "led": lambda: seq2seq(
        "LED", attention_window=4, max_encoder_position_embeddings=44, max_decoder_position_embeddings=41
    ),
    "blenderbot": lambda: seq2seq("Blenderbot"),
    "pegasus_x": lambda: seq2seq("PegasusX", block_size=4, num_global_tokens=3),
    "mvp": lambda: seq2seq("Mvp"),
    "umt5": lambda: transformers.UMT5ForConditionalGeneration(transformers.UMT5Config(**T5)),
    "longt5": lambda: transformers.LongT5ForConditionalGeneration(
        transformers.LongT5Config(**T5, local_radius=4, encoder_attention_type="local")
    ),
    "a BART with another activation": lambda: seq2seq("Bart", activation_function="mish"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_texts_about_texts(name: str, tmp_path: Path, capsys: Any) -> None:
    theirs = scramble(WRITERS[name]()).eval()
    theirs.generation_config.encoder_no_repeat_ngram_size = 0  # which is refused by name
    theirs.save_pretrained(tmp_path)
    TRANSLATORS["bart"].tokenizer(tmp_path)
    skill: Any = foveate.load(tmp_path)
    source, lengths, target = torch.randint(3, 49, (2, 9)), torch.tensor([9, 5]), torch.randint(3, 49, (2, 4))
    with torch.no_grad():
        logits = skill.model(source, lengths, target).logits
        for row, length in enumerate(lengths.tolist()):
            own = theirs(input_ids=source[row : row + 1, :length], decoder_input_ids=target[row : row + 1]).logits
            torch.testing.assert_close(logits[row : row + 1], own, atol=5e-5, rtol=0)
    text = "the keeper lit the lamp"
    (ids,) = [skill.processor.reads.prepare(text).tolist()]
    for beams in (1, 3):
        settings = {"max_new_tokens": 7, "num_beams": beams, "do_sample": False}
        (row,) = theirs.generate(torch.tensor([ids]), **settings).tolist()
        method = {"method": "greedy"} if beams == 1 else {"method": "beam", "width": beams, "length_penalty": 1.0}
        answer = skill.run(text, max_new_tokens=7, **method)
        written = [token for token in row[1:] if token not in (theirs.config.eos_token_id, theirs.config.pad_token_id)]
        assert answer.tokens == written, beams
    assert run_as_json(capsys, tmp_path, text, "--decoding.max-new-tokens", "4")
    main(["run", str(tmp_path), text, "--decoding.max-new-tokens", "4", "--picture", str(tmp_path / "words.png")])
    main(["look", str(tmp_path), text, "--out", str(tmp_path / "look.html")])
    assert skill.look(text).sight.sites
    refused_elsewhere(tmp_path)


@pytest.mark.parametrize("kind", [name for name, row in TRANSLATORS.items() if row.config.model_type != "t5"])
def test_positions_of_the_file_are_read(kind: str, tmp_path: Path) -> None:
    """Where transformers reads them: a Pegasus with learned positions in the place of waves is not ours, so that it is
    not trained. Of others it computes the waves, whatever the file holds."""
    row = TRANSLATORS[kind]
    scramble(row.kind(row.config)).save_pretrained(tmp_path)
    row.tokenizer(tmp_path)
    theirs, skill = row.kind.from_pretrained(tmp_path).eval(), foveate.load(tmp_path)
    source, target = torch.randint(3, 49, (1, 9)), torch.randint(3, 49, (1, 4))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        found = skill.model(source, torch.tensor([9]), target).logits
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)
    if kind == "pegasus":
        with pytest.raises(UserError, match=r"embed_positions.weight' holds learned positions"):
            open_start(tmp_path)


def yolos() -> Any:
    config = transformers.YolosConfig(
        hidden_size=20,
        num_hidden_layers=2,
        num_attention_heads=5,
        intermediate_size=28,
        image_size=[40, 56],
        patch_size=8,
        num_detection_tokens=7,
        **NAMES,
    )
    return transformers.YolosForObjectDetection(config)


def table_detr() -> Any:
    sizes = {"encoder_ffn_dim": 30, "decoder_ffn_dim": 30, "encoder_layers": 2, "decoder_layers": 2, "d_model": 20}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_queries": 7}
    backbone = transformers.ResNetConfig(
        depths=[1, 2], hidden_sizes=[24, 48], embedding_size=6, out_features=["stage2"]
    )
    config = transformers.TableTransformerConfig(backbone_config=backbone, **sizes, **heads, **NAMES)
    return transformers.TableTransformerForObjectDetection(config)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.effect_noise((56, 40), 90).convert("RGB").save(tmp_path / "image.png")
    return tmp_path / "image.png"


@pytest.mark.parametrize("make", [yolos, table_detr])
def test_objects(make: Any, tmp_path: Path, image: Path, capsys: Any) -> None:
    folder = tmp_path / "folder"
    theirs = scramble(make()).eval()
    theirs.save_pretrained(folder)
    kind = transformers.YolosImageProcessorPil if make is yolos else transformers.DetrImageProcessorPil
    processor = kind(size={"shortest_edge": 40, "longest_edge": 80})
    processor.save_pretrained(folder)
    inputs = processor(Image.open(image), return_tensors="pt")
    with torch.no_grad():
        found = theirs(pixel_values=inputs["pixel_values"])
    (expected,) = processor.post_process_object_detection(found, threshold=0.0, target_sizes=[(40, 56)])
    answer = run_as_json(capsys, folder, image, "--threshold", "0")
    assert len(answer["objects"]) == len(expected["scores"])
    order = expected["scores"].argsort(descending=True)
    for one, row in zip(answer["objects"], order.tolist(), strict=True):
        assert one["score"] == pytest.approx(float(expected["scores"][row]), abs=1e-4)
        corners = expected["boxes"][row].numpy().clip(0, [56, 40, 56, 40])
        assert one["box"] == pytest.approx(corners.tolist(), abs=0.1)
    main(["run", str(folder), str(image), "--threshold", "0", "--picture", str(tmp_path / "boxes.png")])
    main(["look", str(folder), str(image), "--out", str(tmp_path / "look.html")])
    refused_elsewhere(folder)


def test_vectors_of_images(tmp_path: Path, image: Path, capsys: Any) -> None:
    folder = tmp_path / "folder"
    theirs = scramble(
        transformers.MobileNetV2Model(transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.25))
    )
    theirs.eval().save_pretrained(folder)
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32})
    processor.save_pretrained(folder)
    with torch.no_grad():
        expected = theirs(**processor(Image.open(image), return_tensors="pt")).pooler_output[0]
    found = foveate.load(folder).run(image)
    torch.testing.assert_close(torch.tensor(found.vector), expected, atol=1e-4, rtol=1e-3)
    assert run_as_json(capsys, folder, image)
    refused_elsewhere(folder)


SOUNDS = [
    (kind, head) for kind in ("WavLM", "UniSpeech", "Data2VecAudio") for head in ("CTC", "SequenceClassification")
]


@pytest.mark.parametrize(("kind", "head"), SOUNDS)
def test_sounds(kind: str, head: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "folder"
    config = getattr(transformers, f"{kind}Config")(**WAVES, **({} if head == "CTC" else NAMES))
    theirs = scramble(getattr(transformers, f"{kind}For{head}")(config)).eval()
    theirs.save_pretrained(folder)
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=False)
    extractor.save_pretrained(folder)
    if head == "CTC":
        write_letters(folder)
    samples = write_sound(tmp_path / "sound.wav", RATE, 3)
    inputs = extractor(samples, sampling_rate=RATE, return_tensors="pt")["input_values"]
    with torch.no_grad():
        logits = theirs(input_values=inputs).logits[0]
    answer = run_as_json(capsys, folder, tmp_path / "sound.wav")
    if head == "CTC":
        skill: Any = foveate.load(folder)
        with torch.no_grad():
            found = skill.model(source=inputs, source_lengths=torch.tensor([inputs.shape[1]])).ctc[0]
        torch.testing.assert_close(found, logits, atol=5e-5, rtol=0)
        assert skill.run(tmp_path / "sound.wav").text == answer["text"]
    else:
        assert answer["probability"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-4)
    main(["look", str(folder), str(tmp_path / "sound.wav"), "--out", str(tmp_path / "look.html")])
    refused_elsewhere(folder)


REFUSED = {
    "MegatronBertForMultipleChoice": "foveate runs ...ForCausalLM",
    "OwlViTForObjectDetection": "which reads 'input_ids'; foveate has no task for such a model",
    "ProphetNetForConditionalGeneration": "whose decoder predicts several tokens at once",
    "Wav2Vec2BertForCTC": "which reads 'input_features'; foveate has no task for such a model",
}


@pytest.mark.parametrize("name", REFUSED)
def test_classes_that_no_task_has(name: str, tmp_path: Path) -> None:
    kind = getattr(transformers, name).config_class
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind.model_type, "architectures": [name]}))
    with pytest.raises(UserError) as refused:
        foveate.load(tmp_path)
    assert REFUSED[name] in str(refused.value)
    assert "\n" not in str(refused.value)
