"""Adapters of peft: the logits of the merged model are those of peft's own, and training begins from it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from folders import FOLDERS, scramble

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.interop.pretrained import locate


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("llama", "words", {"target_modules": ["q_proj", "v_proj", "down_proj"]}),
    "every layer": ("qwen2", "words", {"target_modules": "all-linear"}),
    "inputs first": ("gpt2", "words", {"target_modules": ["c_attn", "c_fc"], "fan_in_fan_out": True}),
    "embeddings": ("llama", "words", {"target_modules": ["embed_tokens", "k_proj"]}),
    "by the root of the rank": ("gpt_neox", "words", {"target_modules": ["query_key_value"], "use_rslora": True}),
    "patterns": (
        *("llama", "words"),
        {
            "target_modules": ["q_proj", "v_proj"],
            "rank_pattern": {"layers.1.self_attn.q_proj": 5},
            "alpha_pattern": {"v_proj": 3},
        },
    ),
    "biases": ("bert", "text", {"target_modules": ["query", "value"], "bias": "all"}),
    "labels": ("bert", "text", {"target_modules": ["query"], "modules_to_save": ["classifier"]}),
    "tags": ("roberta", "tokens", {"target_modules": ["query", "dense"], "modules_to_save": ["classifier"]}),
}

TASKS = {"words": "CAUSAL_LM", "text": "SEQ_CLS", "tokens": "TOKEN_CLS"}


def adapted(kind: str, head: str, settings: dict[str, Any], place: Path) -> tuple[Path, Any]:
    """The folder of an adapter whose base is beside it, and peft's model."""
    base = FOLDERS[kind].write(head, place / "base")
    found: Any = peft.get_peft_model(
        base,
        peft.LoraConfig(r=3, lora_alpha=7, task_type=TASKS[head], **settings),  # type: ignore[arg-type]
    )
    scramble(found)
    found.eval().save_pretrained(place / "adapter")
    values = json.loads((place / "adapter" / "adapter_config.json").read_text())
    values["base_model_name_or_path"] = str(place / "base")
    (place / "adapter" / "adapter_config.json").write_text(json.dumps(values))
    reread = type(base).from_pretrained(place / "base")
    return place / "adapter", peft.PeftModel.from_pretrained(reread, place / "adapter").eval()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_peft(case: str, tmp_path: Path) -> None:
    kind, head, settings = CASES[case]
    folder, theirs = adapted(kind, head, settings, tmp_path)
    ours = foveate.load(folder).model
    tokens, lengths = torch.randint(3, 50, (2, 11)), torch.tensor([11, 11])
    with torch.no_grad():
        expected, found = theirs(tokens).logits, ours(tokens, lengths).logits
    found = found[:, 0] if head == "text" else found
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_head_that_the_base_lacks(tmp_path: Path) -> None:
    """The adapter of a classifier brings its head; that of the base goes."""
    FOLDERS["llama"].write("words", tmp_path / "words")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "words", num_labels=3)
    lora = peft.LoraConfig(r=3, task_type="SEQ_CLS", target_modules=["q_proj"])  # type: ignore[arg-type]
    theirs: Any = peft.get_peft_model(model, lora)
    theirs.eval().save_pretrained(tmp_path / "adapter")
    skill = foveate.load(tmp_path / "adapter")
    assert len(skill.processor.writes.labels) == 3
    tokens = torch.randint(3, 50, (1, 11))
    with torch.no_grad():
        found = skill.model(tokens, torch.tensor([11])).logits[:, 0]
        torch.testing.assert_close(found, theirs(tokens).logits, atol=1e-4, rtol=0)


@pytest.mark.filterwarnings("ignore")
def test_it_runs_and_training_begins_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = adapted(*CASES["llama"], tmp_path)
    main(["run", str(folder), "the keeper", "--max-new-tokens", "2"])
    captured = capsys.readouterr()
    assert captured.out.startswith("the keeper")
    assert f"merging {folder} and its base" in captured.err
    main(["run", str(folder), "the keeper", "--max-new-tokens", "2"])
    assert capsys.readouterr().err == ""  # it is there
    data = tmp_path / "prose.txt"
    data.write_text("\n\n".join(f"The keeper lit the lamp {number % 9} ." for number in range(40)))
    arguments = ["--data", str(data), "--validation", str(data), "--steps", "1", "--out", str(tmp_path / "run")]
    main(["train", "language", "--from", str(folder), *arguments])
    assert foveate.load(tmp_path / "run").run("the keeper").text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peft_type": "IA3"}, "is an adapter of the type 'IA3'; foveate reads LORA"),
        ({"use_dora": True}, "has use_dora True, which foveate does not obey"),
        ({"r": 0}, "has r 0, but must have a number above 0"),
        ({"base_model_name_or_path": "meta/none"}, "is an adapter of meta/none, which is no folder here"),
        ({"base_model_name_or_path": None}, "does not name its base model"),
        ({"rank_pattern": {"(": 3}}, "which cannot be read"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_obeyed(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder, _ = adapted(*CASES["llama"], tmp_path)
    values = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(values | change))
    with pytest.raises(UserError, match=message) as caught:
        locate(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_of_another_base(tmp_path: Path) -> None:
    folder, _ = adapted(*CASES["llama"], tmp_path)
    shutil.rmtree(tmp_path / "base")
    FOLDERS["gpt2"].write("words", tmp_path / "base")
    with pytest.raises(UserError, match=r"changes 'model.layers.0.*', which its base .* lacks"):
        locate(folder)
