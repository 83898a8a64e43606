"""Exported adapters of language models give peft the outputs that our merged models have."""

from io import StringIO
from pathlib import Path

import pytest
import torch
from folders import FOLDERS
from rich.console import Console
from transformers import AutoModelForCausalLM

import foveate
from foveate.cli import main
from foveate.tasks.learning import learn

peft = pytest.importorskip("peft")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gptj", "phi3"])
def test_language_models_are_loaded_with_the_same_outputs(kind: str, tmp_path: Path) -> None:
    """Also where transformers has one layer for several of ours, and turns rows or columns; and ours reads it back."""
    FOLDERS[kind].write("words", tmp_path / "base")
    (tmp_path / "text.txt").write_text("the keeper lit the lamp, and saw 5 ships.\n\n" * 30)
    layers = ("self.query", "self.value", "feedforward.outer")
    settings = {"steps": 3, "learning_rate": 3e-2, "warmup": 1, "average": 1, "validate_every": 3, "save_every": 3}
    recipe = foveate.recipe(
        "language",
        data=tmp_path / "text.txt",
        validation=tmp_path / "text.txt",
        out=tmp_path / "run",
        start=tmp_path / "base",
        lora=2,
        lora_layers=layers,
        precision="float32",
        max_length=20,
        **settings,
    )
    learn(recipe, console=Console(file=StringIO()))
    main(["export", str(tmp_path / "run"), "--to", "peft", "--out", str(tmp_path / "adapter")])
    ours = foveate.load(tmp_path / "run").model
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    tokens = torch.tensor([[2, 7, 11, 9, 5, 3]])
    with torch.no_grad():
        plain, untrained = ours(tokens).logits, AutoModelForCausalLM.from_pretrained(tmp_path / "base")(tokens).logits
        torch.testing.assert_close(theirs(tokens).logits, plain, rtol=1e-4, atol=5e-5)
        torch.testing.assert_close(foveate.load(tmp_path / "adapter").model(tokens).logits, plain, rtol=1e-4, atol=5e-5)
    assert (plain - untrained).abs().max() > 1e-2
