"""Exported adapters of every kind of text model give peft the outputs of our merged models, and are read back."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import FOLDERS
from rich.console import Console
from test_every_folder import DATA, DATA_OF, hidden_or_logits

import foveate
from foveate.cli import main
from foveate.files import read_json
from foveate.tasks.learning import learn

peft = pytest.importorskip("peft")

TASKS = {"words": ("language", "cloze"), "text": ("classify",), "tokens": ("tag",), "span": ("ask",)}
"""What is trained from each head; a body alone is for pairs and rewards."""

BODY = ("pair", "reward")

AUTO = {
    "language": "AutoModelForCausalLM",
    "cloze": "AutoModelForMaskedLM",
    "tag": "AutoModelForTokenClassification",
    "ask": "AutoModelForQuestionAnswering",
}
"""The class of the base for peft; that of a classifier for all others."""

LAYERS = ("self.query", "self.key", "self.value", "self.output", "feedforward.inner", "feedforward.outer")
"""Those of some are square, and transformers has one for several of ours, or turns rows or columns."""

REFUSED = {
    "gpt_neox-language": "a gpt-neox, of whose adapters peft makes other outputs",
    **{f"xlnet-{task}": "transformers has no layer for" for task in ("cloze", "classify", "tag")},
}


def cases() -> list[tuple[str, str, str]]:
    """Each kind and head, with a task that begins from it."""
    found = []
    for kind, folder in FOLDERS.items():
        masked = "none" in folder.heads
        for head in folder.heads:
            tasks = BODY * (kind != "xlnet") if head == "none" else TASKS[head]
            found += [(kind, head, task) for task in tasks if task != ("language" if masked else "cloze")]
    return found


CASES = cases()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "head", "task"), CASES, ids=["-".join(case) for case in CASES])
def test_peft_gives_the_same_outputs(
    kind: str, head: str, task: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    FOLDERS[kind].write(head, tmp_path / "base")
    data = tmp_path / "data.tsv"
    data.write_text(DATA[DATA_OF.get(task, "prose")])
    settings = {"steps": 3, "learning_rate": 3e-2, "warmup": 1, "average": 1, "validate_every": 3, "save_every": 3}
    recipe = foveate.recipe(
        task,
        data=data,
        validation=data,
        validation_examples=4,
        out=tmp_path / "run",
        start=tmp_path / "base",
        lora=2,
        lora_layers=LAYERS,
        **settings,
    )
    learn(recipe, console=Console(file=StringIO()))
    if (refusal := REFUSED.get(f"{kind}-{task}")) is not None:
        with pytest.raises(SystemExit):
            main(["export", str(tmp_path / "run"), "--to", "peft", "--out", str(tmp_path / "adapter")])
        assert refusal in capsys.readouterr().err
        return
    main(["export", str(tmp_path / "run"), "--to", "peft", "--out", str(tmp_path / "adapter")])
    ours, again = (foveate.load(tmp_path / name).model for name in ("run", "adapter"))
    count = {"num_labels": ours.config.classes} if task in ("classify", "tag", *BODY) else {}
    auto = getattr(transformers, AUTO.get(task, "AutoModelForSequenceClassification"))
    base = auto.from_pretrained(tmp_path / "base", ignore_mismatched_sizes=True, **count)
    updates = read_json(tmp_path / "adapter" / "adapter_config.json")["target_modules"]
    assert len(updates) >= 2 * 3
    tokens = torch.randint(3, 50, (1, 11))
    with torch.no_grad():
        plain = hidden_or_logits(base.eval()(tokens))
        theirs = hidden_or_logits(peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()(tokens))
        for model in (ours, again):
            found = model(tokens).logits
            torch.testing.assert_close(found[:, 0] if theirs.ndim == 2 else found, theirs, atol=5e-5, rtol=1e-4)
    assert (theirs - plain).abs().max() > 1e-3
