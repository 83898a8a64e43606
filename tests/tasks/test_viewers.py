"""Looking at models from disk: what is seen of each kind, what their sides are called."""

# ruff: noqa: E402
import io
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

tiny_folders = pytest.importorskip("tiny_folders", reason="transformers is not installed")

import transformers
from tiny_folders import byte_tokenizer, looked, picture, sound, word_tokenizer

import foveate
from foveate.errors import UserError
from foveate.tasks.viewers import File, open_model, read_input
from foveate.tasks.viewers.texts import FolderTokenizer
from foveate.viewer import Audio, Image
from foveate.viewer.protocol import LookResult

Folders = Callable[[str], Path]


def shapes(seen: LookResult) -> dict[str, tuple[int, ...]]:
    return {name: tuple(seen.sight[name].shape) for name in seen.sight.sites}


def test_a_causal_model(folders: Folders) -> None:
    seen = looked(folders("gpt2"), "the keeper lit")
    assert seen.tokens["transformer.h.2.attn"] == (["the", "keeper", "lit"],) * 2
    assert shapes(seen) == {f"transformer.h.{layer}.attn": (1, 2, 3, 3) for layer in range(3)}
    assert seen.title == "the keeper lit"
    assert seen.notes == [f"GPT2LMHeadModel from {folders('gpt2')}"]
    model = transformers.GPT2LMHeadModel.from_pretrained(folders("gpt2"), attn_implementation="eager").eval()
    weights = model(torch.tensor([byte_tokenizer()("the keeper lit")["input_ids"]]), output_attentions=True).attentions
    for layer in range(3):
        assert torch.allclose(seen.sight[f"transformer.h.{layer}.attn"].weights(), weights[layer], atol=1e-6)


def test_a_masked_model(folders: Folders) -> None:
    seen = looked(folders("bert"), "the keepers lit, xyz")
    names = ["[CLS]", "the", "keep", "·er", "·s", "lit", ",", "[UNK]", "[SEP]"]
    assert seen.tokens["bert.encoder.layer.1.attention.self"] == (names, names)
    assert shapes(seen)["bert.encoder.layer.0.attention.self"] == (1, 2, 9, 9)


@pytest.mark.parametrize("several", [False, True])
def test_a_classifier_tells_its_likeliest_labels(copied: Folders, several: bool) -> None:
    folder = copied("bert-classifier")
    if several:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"problem_type": "multi_label_classification"}))
    seen = looked(folder, "the keepers lit")
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(torch.tensor([word_tokenizer()("the keepers lit")["input_ids"]])).logits[0]
    shares = (logits.sigmoid() if several else logits.softmax(-1)).tolist()
    ranked = sorted(zip(shares, "abcd", strict=True), reverse=True)[:3]
    assert seen.notes[1] == "Prediction: " + ", ".join(f"{label} ({share:.2f})" for share, label in ranked)
    assert len(seen.sight.sites) == 2


def test_sites_by_pattern(folders: Folders) -> None:
    assert looked(folders("gpt2"), "the lamp", sites=["*.1.*"]).sight.sites == ["transformer.h.1.attn"]


def test_a_model_that_writes(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of cross-attention are called by what is written there, those of the decoder by what it is fed."""
    monkeypatch.setattr("foveate.tasks.viewers.translates", lambda folder: False)  # as one that we have none of
    seen = looked(folders("t5"), "the lamp")
    source = ["the", "lamp"]
    assert seen.tokens["encoder.block.1.layer.0.SelfAttention"] == (source, source)
    fed, keys = seen.tokens["decoder.block.0.layer.0.SelfAttention"]
    assert fed == keys
    assert fed[0] == "<pad>"
    written, read = seen.tokens["decoder.block.1.layer.1.EncDecAttention"]
    assert read == source
    assert written[:-1] == fed[1:]
    assert shapes(seen)["decoder.block.1.layer.1.EncDecAttention"] == (1, 3, len(fed), 2)
    assert seen.notes[1].startswith("Output: ")
    assert [panel.rollout for panel in seen.document().sites] == 6 * [False] + 2 * [True]  # one rollout a tower


def test_sides_of_one_length_are_told_apart_by_name(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.tasks.viewers.texts.MAX_NEW_TOKENS", 2)
    monkeypatch.setattr("foveate.tasks.viewers.translates", lambda folder: False)
    seen = looked(folders("t5"), "the lamp")
    assert shapes(seen)["decoder.block.0.layer.0.SelfAttention"] == (1, 3, 2, 2)
    assert seen.tokens["decoder.block.0.layer.0.SelfAttention"][1][0] == "<pad>"
    assert seen.tokens["decoder.block.0.layer.1.EncDecAttention"][1] == ["the", "lamp"]


def test_a_classifier_with_a_decoder_reads_twice(folders: Folders) -> None:
    seen = looked(folders("bart-classifier"), "the lamp")
    assert seen.tokens["model.decoder.layers.1.self_attn"] == (["<s>", "the"],) * 2
    assert seen.tokens["model.decoder.layers.1.encoder_attn"] == (["the", "lamp"],) * 2
    assert seen.notes[1] == "The model generates nothing: its decoder reads the input again."


@pytest.mark.parametrize("name", ["vit", "vit-bare"])
def test_an_image_model(folders: Folders, name: str) -> None:
    seen = looked(folders(name), picture())
    assert shapes(seen) == {f"layers.{layer}.attention": (1, 2, 10, 10) for layer in range(2)}
    image, _ = seen.tokens["layers.0.attention"]
    assert isinstance(image, Image)
    assert (image.height, image.width, image.before) == (3, 3, ["[CLS]"])
    document = seen.document()
    assert document.title == "square.png"
    pixels = np.asarray(tiny_folders.PIL.Image.open(tiny_folders.io.BytesIO(image.data)))
    assert pixels.shape == (24, 24, 3)
    assert np.abs(pixels[2, 2].astype(int) - (250, 10, 20)).max() <= 3
    assert np.abs(pixels[20, 20].astype(int) - (0, 200, 0)).max() <= 3


def test_a_picture_is_turned_as_its_file_says(folders: Folders) -> None:
    """The square at the upper left of what a camera that was held upright wrote lying is at the upper right."""
    lying = tiny_folders.PIL.Image.open(tiny_folders.io.BytesIO(picture().data))
    exif = lying.getexif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    file = tiny_folders.io.BytesIO()
    lying.save(file, "jpeg", exif=exif, quality=95)
    image, _ = looked(folders("vit"), File("upright.jpeg", file.getvalue())).tokens["layers.0.attention"]
    pixels = np.asarray(tiny_folders.PIL.Image.open(tiny_folders.io.BytesIO(image.data))).astype(int)
    assert np.abs(pixels[2, -3] - (250, 10, 20)).max() <= 20
    assert np.abs(pixels[2, 2] - (0, 200, 0)).max() <= 20


def test_a_picture_that_was_not_standardised_is_shown_as_it_is(copied: Folders) -> None:
    folder = copied("vit")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "do_normalize": False}))
    image, _ = looked(folder, picture()).tokens["layers.0.attention"]
    pixels = np.asarray(tiny_folders.PIL.Image.open(tiny_folders.io.BytesIO(image.data))).astype(int)
    assert np.abs(pixels[2, 2] - (250, 10, 20)).max() <= 3
    assert np.abs(pixels[20, 20] - (0, 200, 0)).max() <= 3


def test_a_detector(folders: Folders) -> None:
    """The queries of its decoder are no patches, even where there are as many as would make a grid."""
    seen = looked(folders("detr"), picture())
    image, _ = seen.tokens["model.encoder.layers.0.self_attn"]
    assert isinstance(image, Image)
    assert (image.height, image.width, image.before) == (3, 5, [])
    assert shapes(seen)["model.decoder.layers.1.encoder_attn"] == (1, 7, 15, 15)
    assert seen.tokens["model.decoder.layers.1.self_attn"] == (None, None)
    assert seen.tokens["model.decoder.layers.1.encoder_attn"] == (None, image)
    assert seen.notes == [f"DetrForObjectDetection from {folders('detr')}"]
    seen.document()


def test_a_model_of_sound(folders: Folders) -> None:
    """One second of which half is silence: 100 frames and 50 places, of which those of the padding are cut off."""
    seen = looked(folders("whisper"), sound())
    assert shapes(seen)["model.encoder.layers.0.self_attn"] == (1, 2, 25, 25)
    assert shapes(seen)["model.decoder.layers.1.encoder_attn"][3] == 25
    heard, _ = seen.tokens["model.encoder.layers.0.self_attn"]
    assert isinstance(heard, Audio)
    assert (heard.seconds, heard.heard) == (0.5, 0.5)
    written, keys = seen.tokens["model.decoder.layers.1.encoder_attn"]
    assert keys is heard
    fed, _ = seen.tokens["model.decoder.layers.1.self_attn"]
    assert written[:-1] == fed[1:]
    assert len(fed) <= 29
    assert seen.document().title == "tone.wav"


def test_a_model_of_sound_by_its_name(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads sounds as the same folder does, so that the explorer takes a file and not a text."""
    folder = folders("whisper")
    monkeypatch.setattr("foveate.tasks.viewers.locate", lambda name: folder if name == "whisper-tiny.en" else name)
    named = open_model("whisper-tiny.en")
    assert named.takes == open_model(folder).takes == "audio"
    assert named.look(sound(), 9000).tokens == looked(folder, sound()).tokens


def test_a_classifier_of_sounds(folders: Folders) -> None:
    """It has an encoder alone, though its config tells of a decoder."""
    seen = looked(folders("whisper-classifier"), sound())
    assert shapes(seen) == {"encoder.layers.0.self_attn": (1, 2, 25, 25)}
    assert seen.tokens["encoder.layers.0.self_attn"][0].seconds == 0.5


@pytest.mark.parametrize(
    ("name", "site", "places", "frames"),
    [("parakeet", "layers.0.self_attn", 26, 201), ("wav2vec2-bert", "encoder.layers.1.self_attn", 99, 198)],
)
def test_a_spectrogram_with_its_frames_first(folders: Folders, name: str, site: str, places: int, frames: int) -> None:
    """Two seconds."""
    seen = looked(folders(name), sound(2.0, 16_000))
    assert shapes(seen)[site] == (1, 2, places, places)
    heard, _ = seen.tokens[site]
    assert heard.seconds == 2.0
    drawn = np.asarray(tiny_folders.PIL.Image.open(tiny_folders.io.BytesIO(heard.data)))
    assert drawn.shape == (80, frames)
    with pytest.raises(UserError, match=f"^the spectrogram has {frames} frames, but the limit is {frames - 1}"):
        looked(folders(name), sound(2.0, 16_000), most=frames - 1)
    seen.document()


def test_an_own_translator(trained: Any) -> None:
    seen = looked(trained.folder, "small red cat")
    assert shapes(seen) == {"decoder": (1, 1, 4, 4)}
    written, read = seen.tokens["decoder"]
    assert read == ["small", "red", "cat", "¶"]
    assert written == ["petit", "rouge", "chat", "¶"]
    assert seen.notes == [f"rnn-attentive from {trained.folder}", "Output: petit rouge chat"]
    assert torch.allclose(seen.sight["decoder"].weights().sum(-1), torch.ones(1, 1, 4))


def test_an_own_transformer(tmp_path: Path, trained: Any) -> None:
    sizes = {"width": 14, "heads": 2, "feedforward": 11, "encoder_layers": 1, "decoder_layers": 2}
    model = foveate.create("transformer-tiny", **sizes, **trained.translator.processor.sizes())
    description = {"task": "translate", "family": "transformer", "architecture": asdict(model.config), "recipe": {}}
    replace(trained.translator, model=model, description=description).save(tmp_path)
    seen = looked(tmp_path, "big sun")
    fed, _ = seen.tokens["decoder.1.self"]
    written, read = seen.tokens["decoder.1.cross"]
    assert read == ["big", "sun", "¶"]
    assert seen.tokens["encoder.0.self"] == (read, read)
    assert fed[0] == "<start>"
    assert written == [*fed[1:], "¶"]
    seen.document()


def test_words_of_bytes(folders: Folders) -> None:
    """A character in several tokens has no text of its own; a piece of a word has a dot before it."""
    words = FolderTokenizer(folders("gpt2"))
    ids = words.encode("she lit\n naïve 🙂</s>x")
    pieces = words.pieces(ids)
    assert pieces[:3] == ["she", "lit", "\n"]
    assert "</s>" in pieces
    assert pieces[-1] == "x"
    assert "ð" in pieces
    assert len(pieces) == len(ids)


def test_tokens_that_the_tokenizer_does_not_know_have_names(folders: Folders) -> None:
    """Models have more of them where their number was rounded up."""
    words = FolderTokenizer(folders("gpt2"))
    assert words.pieces([*words.encode("she"), 70_000, 70_001]) == ["she", "70000", "70001"]


def test_words_of_pieces(tmp_path: Path) -> None:
    word_tokenizer().save_pretrained(tmp_path)
    words = FolderTokenizer(tmp_path)
    assert words.pieces(words.encode("keepers")) == ["[CLS]", "keep", "·er", "·s", "[SEP]"]
    assert words.decode([2, 6, 7, 8, 3]) == "keepers"


def test_without_a_tokenizer_ids_are_given(copied: Folders) -> None:
    folder = copied("gpt2")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert looked(folder, "[5, 17 9]").tokens["transformer.h.0.attn"][0] == ["5", "17", "9"]
    with pytest.raises(UserError, match=r"no tokenizer: pass token ids, such as '5 17 9'$"):
        looked(folder, "the keeper")
    with pytest.raises(UserError, match=r"^there is no token 5,000: the model has \d+, counted from 0$"):
        looked(folder, "5 5000")


def test_read_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("poem").write_bytes("\ufeffthe lamp\nwas lit".encode())
    Path("cat.png").write_bytes(b"\x89PNG")
    assert read_input("poem", "text") == "the lamp\nwas lit"
    assert read_input("a poem", "text") == "a poem"
    assert read_input("x" * 100_000, "text") == "x" * 100_000
    assert read_input("nul\0", "text") == "nul\0"
    assert read_input("cat.png", "image") == File("cat.png", b"\x89PNG")
    with pytest.raises(UserError, match=r"^cat.png is not UTF-8 text \(byte 0\), but this model reads text$"):
        read_input("cat.png", "text")
    with pytest.raises(UserError, match=r"^there is no file dog.png; this model reads an image file$"):
        read_input("dog.png", "image")
    with pytest.raises(UserError, match=r"^there is no file x; this model reads a sound file \(\.wav\)$"):
        read_input("x", "audio")
    monkeypatch.setattr("foveate.forms.inputs.MAX_BYTES", 2**20)
    Path("large").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(UserError, match=r"^large is larger than 1 MiB, which is the limit$"):
        read_input("large", "text")
    for takes in ("text", "image"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * (2**20 + 1))))
        with pytest.raises(UserError, match=r"^standard input is larger than 1 MiB, which is the limit$"):
            read_input("-", takes)
