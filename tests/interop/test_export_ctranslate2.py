"""Language models written for CTranslate2: its greedy texts are ours; what it computes otherwise is not written."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

ctranslate2 = pytest.importorskip("ctranslate2")

from folders import FOLDERS  # noqa: E402

import foveate  # noqa: E402
from foveate.cli import main  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_likeliest_text_is_the_same(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FOLDERS[kind].write("words", tmp_path / "folder")
    main(["export", str(tmp_path / "folder"), "--out", str(tmp_path / "out"), "--to", "ctranslate2"])
    assert "CTranslate2's logits differ from PyTorch's by at most" in capsys.readouterr().out
    skill = foveate.load(tmp_path / "folder")
    answer = skill.run("the keeper lit", max_new_tokens=6)
    prompt = [["the", "keeper", "lit"]]
    (found,) = ctranslate2.Generator(str(tmp_path / "out")).generate_batch(
        prompt, max_length=6, sampling_topk=1, include_prompt_in_result=False
    )
    ours = skill.tokenizer.encode([answer.text])[0]
    assert found.sequences_ids[0][: len(ours)] == ours
    assert len(ours) > 2


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FOLDERS["mistral"].write("words", tmp_path / "folder")
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "folder"), "--out", str(tmp_path / "out"), "--to", "ctranslate2"])
    assert "CTranslate2" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FOLDERS["llama"].write("words", tmp_path / "folder")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "folder"), "--out", str(tmp_path / "out"), "--to", "ctranslate2"])
    assert "pip install 'foveate[ctranslate2]'" in capsys.readouterr().err
