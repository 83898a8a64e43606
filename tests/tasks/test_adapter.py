"""An exported adapter gives peft the outputs that our merged model has."""

from io import StringIO
from pathlib import Path

import pytest
import torch
import verdicts
from rich.console import Console
from tiny_bert import write_folder
from transformers import AutoModelForSequenceClassification

import foveate
from foveate.cli import main
from foveate.errors import UserError
from foveate.interop.keys import bert
from foveate.interop.peft_adapter import write_adapter
from foveate.models.text.bert import BertConfig
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe

peft = pytest.importorskip("peft")

SIZES = {"width": 20, "heads": 5, "layers": 2, "feedforward": 28, "max_length": 19}


def trained(out: Path, start: Path, **more: object) -> Recipe:
    settings = {"steps": 20, "learning_rate": 3e-2, "warmup": 2, "average": 1, "validate_every": 20, "save_every": 20}
    settings |= {"batch": 256, "model": "bert-base", "architecture": SIZES, **more}
    recipe = foveate.recipe("classify", out=out, start=start, **settings)
    learn(recipe, verdicts.splits(), Console(file=StringIO()))
    return recipe


@pytest.mark.filterwarnings("ignore")
def test_peft_loads_it_with_the_same_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = write_folder(tmp_path / "base")
    trained(tmp_path / "run", start, lora=3, lora_layers=("self.query", "self.value", "feedforward.outer"))
    main(["export", str(tmp_path / "run"), "--to", "peft", "--out", str(tmp_path / "adapter")])
    assert str(start) in capsys.readouterr().out
    ours = foveate.load(tmp_path / "run")
    base = AutoModelForSequenceClassification.from_pretrained(start, num_labels=len(ours.processor.writes.labels))
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    tokens = torch.tensor([[2, 7, 11, 9, 5, 3], [2, 8, 6, 3, 0, 0]])
    lengths = torch.tensor([6, 4])
    with torch.no_grad():
        found = theirs(tokens, attention_mask=torch.arange(6) < lengths[:, None]).logits
        plain = ours.model(tokens, lengths).logits[:, 0]
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-5)


def test_runs_without_an_adapter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = write_folder(tmp_path / "base")
    trained(tmp_path / "run", start)
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "run"), "--to", "peft", "--out", str(tmp_path / "adapter")])
    assert "was not trained with --lora" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({}, "the adapter has no updates"),
        (
            {"layers.0.self.query.down": torch.zeros(3)},
            "the tensor 'layers.0.self.query.down', which is not an update",
        ),
        ({"nothing.down": torch.zeros(3, 20)}, "has the tensor 'nothing.down', which is not an update"),
        ({"layers.0.self.query.side": torch.zeros(3, 20)}, "query.side', which is not an update"),
    ],
)
def test_an_adapter_with_something_else_in_it(updates: dict, message: str, tmp_path: Path) -> None:
    config = BertConfig(vocabulary=31, head="text", classes=2, pooling="first", **SIZES)
    with pytest.raises(UserError, match=message):
        write_adapter(tmp_path, tmp_path, bert.key_map(config), "SEQ_CLS", {}, updates, 1.0)
    assert not any(tmp_path.iterdir())
