"""Folders of every kind without the files of a tokenizer: the model is there, is looked at and exported; what needs
texts says in one line what is missing."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS
from image_folders import matchers, scramble
from image_writers import IMAGE_WRITERS
from sound_folders import SOUND_FOLDERS
from translators import TRANSLATORS

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.public_folder import read_folder
from foveate.tasks.export.folders import TOKENIZERS
from foveate.tasks.export.ways import NEED_TOKENIZER, export
from foveate.tasks.hf.model_alone import ModelAlone

TEXTS = [(kind, head) for kind, folder in FOLDERS.items() for head in folder.heads]
SOUNDS = [name for name, folder in SOUND_FOLDERS.items() if "words" in folder.heads]
OTHERS = [("sound", name) for name in SOUNDS] + [("writer", name) for name in IMAGE_WRITERS]
OTHERS += [("matcher", name) for name in ("clip", "siglip")]


def without_tokenizer(folder: Path) -> Path:
    for name in TOKENIZERS:
        (folder / name).unlink(missing_ok=True)
    return folder


def refuses_texts(folder: Path, capsys: Any, given: str = "5 17 9") -> ModelAlone:
    """The model of a folder, whose ways to read and write texts name what is missing, in one line."""
    skill = foveate.load(folder)
    assert isinstance(skill, ModelAlone)
    for use in (skill.run, skill, skill.effect, lambda text: skill.evaluate([Path(text)])):
        with pytest.raises(UserError, match=f"{folder.name} has no (tokenizer|vocab.json)"):
            use(given)
    capsys.readouterr()
    for verb in ("run", "effect"):
        with pytest.raises(SystemExit) as stopped:
            main([verb, str(folder), given])
        assert stopped.value.code == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "has no preproc" not in line]
        assert "has no tokenizer" in line or "has no vocab.json" in line
    return skill


def exported(folder: Path, out: Path) -> None:
    """The same tensors and classes are written."""
    main(["export", str(folder), "--out", str(out)])
    config = read_json(out / "config.json")
    given = read_json(folder / "config.json")
    if given["model_type"] != "hubert":  # whose models wav2vec 2.0 has too
        assert (config["model_type"], config["architectures"]) == (given["model_type"], given["architectures"])
    first, second = (read_folder(place).model.state_dict() for place in (folder, out))
    assert first.keys() == second.keys()
    for name, value in first.items():
        torch.testing.assert_close(second[name], value, msg=name)
    getattr(transformers, config["architectures"][0]).from_pretrained(out)


@pytest.mark.parametrize(("kind", "head"), TEXTS, ids=["-".join(one) for one in TEXTS])
def test_models_of_texts(kind: str, head: str, tmp_path: Path, capsys: Any) -> None:
    FOLDERS[kind].write(head, tmp_path / "bare")
    folder = without_tokenizer(tmp_path / "bare")
    skill = refuses_texts(folder, capsys)
    with torch.no_grad():
        assert skill.model(torch.tensor([[5, 17, 9]]), torch.tensor([3])).logits.isfinite().all()
    sides: list[Any] = [*skill.look("5 17, 9").tokens.values()]
    assert any(side == ["5", "17", "9"] for pair in sides for side in pair)
    with pytest.raises(UserError, match="a look is given token ids"):
        skill.look("the keeper")
    with pytest.raises(UserError, match="there is no token 53"):
        skill.look("5 53")
    if head != "none":
        assert skill.look("5 17 9", measure="gradients").sight
        exported(folder, tmp_path / "out")
    main(["look", str(folder), "5 17 9", "--out", str(tmp_path / "look.html")])


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_encoder_decoders(kind: str, tmp_path: Path, capsys: Any) -> None:
    TRANSLATORS[kind].write(tmp_path / "bare")
    folder = without_tokenizer(tmp_path / "bare")
    skill = refuses_texts(folder, capsys)
    pairs: dict[str, Any] = skill.look("5 17 9").tokens
    assert {tuple(pair[1]) for name, pair in pairs.items() if "cross" in name} == {("5", "17", "9")}
    exported(folder, tmp_path / "out")
    main(["look", str(folder), "5 17 9", "--out", str(tmp_path / "look.html")])


@pytest.mark.parametrize(("what", "name"), OTHERS, ids=["-".join(one) for one in OTHERS])
def test_models_of_images_and_sounds(what: str, name: str, tmp_path: Path, capsys: Any) -> None:
    """Which read something else, but write texts or compare with them."""
    folder = tmp_path / "bare"
    if what == "sound":
        SOUND_FOLDERS[name].write("words", folder)
    elif what == "writer":
        IMAGE_WRITERS[name].write(folder)
    else:
        model, processor = matchers()[name]
        scramble(model).save_pretrained(folder)
        processor.save_pretrained(folder)
    skill = refuses_texts(without_tokenizer(folder), capsys)
    with pytest.raises(UserError, match="has no"):
        skill.look("5 17 9")
    exported(folder, tmp_path / "out")


def test_what_a_tokenizer_is_a_part_of(tmp_path: Path) -> None:
    FOLDERS["llama"].write("words", tmp_path / "bare")
    folder = without_tokenizer(tmp_path / "bare")
    skill = foveate.load(folder)
    for way in NEED_TOKENIZER:
        with pytest.raises(UserError, match=f"has no tokenizer: .*, which is a part of what --to {way} writes"):
            export(skill, tmp_path / way, way)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("kind", "head"), [("llama", "words"), ("bert", "words"), ("bert", "text")])
def test_onnx_needs_none(kind: str, head: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    FOLDERS[kind].write(head, tmp_path / "bare")
    main(["export", str(without_tokenizer(tmp_path / "bare")), "--out", str(tmp_path / "out"), "--to", "onnx"])
    assert not (tmp_path / "out" / "tokenizer.json").exists()
