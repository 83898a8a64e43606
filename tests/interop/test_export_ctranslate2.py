"""Language models written for CTranslate2: its greedy texts are ours; what it computes otherwise is not written."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

ctranslate2 = pytest.importorskip("ctranslate2")

from folders import FOLDERS  # noqa: E402
from small_translators import SIZES, TEXTS, trained  # noqa: E402
from translators import TRANSLATORS  # noqa: E402

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


@pytest.mark.parametrize("shared", [True, False])
def test_a_translator_writes_the_same(shared: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Greedily, with the same scores."""
    run, out = trained(tmp_path, **SIZES, shared=shared), tmp_path / "out"
    main(["export", str(run), "--out", str(out), "--to", "ctranslate2"])
    assert "CTranslate2's logits differ from PyTorch's by at most" in capsys.readouterr().out
    skill, translator = foveate.load(run), ctranslate2.Translator(str(out))
    reads, writes = skill.processor.reads.tokenizer.copy(), skill.processor.writes.tokenizer.copy()
    never = [[writes.id_to_token(one)] for one in skill.processor.writes.tokenizer.special.never_written]
    for text in TEXTS:
        answer = skill.run(text, method="greedy", max_new_tokens=9)
        ids = skill.processor.reads.prepare(text).tolist()
        source = [[reads.id_to_token(one) for one in ids]]
        settings = {"beam_size": 1, "max_decoding_length": 9, "suppress_sequences": never, "disable_unk": False}
        (found,) = translator.translate_batch(source, **settings)
        assert [writes.token_to_id(token) for token in found.hypotheses[0]] == answer.tokens
        assert answer.tokens
        (scored,) = translator.score_batch(source, found.hypotheses)
        special = skill.processor.writes.tokenizer.special
        given, written = (torch.tensor(row) for row in ([special.start, *answer.tokens], [*answer.tokens, special.end]))
        with torch.no_grad():
            logits = skill.model(torch.tensor([ids]), torch.tensor([len(ids)]), given[None]).logits[0]
        own = logits.log_softmax(-1).gather(1, written[:, None])[:, 0]
        assert scored.log_probs == pytest.approx(own.tolist(), abs=1e-4)


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_folders_of_translators(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With norms, positions and activations of every kind, which are compared when they are written; a T5 is not."""
    TRANSLATORS[kind].write(tmp_path / "folder")
    command = ["export", str(tmp_path / "folder"), "--out", str(tmp_path / "out"), "--to", "ctranslate2"]
    if kind in ("t5", "mt5"):
        with pytest.raises(SystemExit):
            main(command)
        assert "a t5 is not written for CTranslate2" in capsys.readouterr().err
        return
    main(command)
    found = float(capsys.readouterr().out.rpartition(" ")[2])
    assert found < 1e-5


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
