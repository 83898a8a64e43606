"""The benchmarks give transformers and CTranslate2 the same model: checked where transformers runs."""

import importlib.util
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest
import torch

from foveate import create, run_dir

LAYOUT = Path(__file__).parents[2] / "benchmarks" / "translation" / "workers" / "layout.py"


@pytest.fixture(scope="module")
def layout() -> ModuleType:
    specification = importlib.util.spec_from_file_location("layout", LAYOUT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("preset", ["transformer-base", "transformer-tiny"])
def test_transformers_computes_the_same(preset: str, layout: ModuleType, tmp_path: Path):
    """Post-norm in the one preset, pre-norm in the other."""
    torch.manual_seed(3)
    changes = {"width": 16, "heads": 2, "feedforward": 24, "encoder_layers": 2, "decoder_layers": 2, "tie": "all"}
    model = create(preset, src_vocab=31, tgt_vocab=31, **changes).eval()
    run_dir.save(tmp_path, {"family": "transformer", "architecture": asdict(model.config)}, model.state_dict(), {})
    source, target = torch.randint(4, 31, (3, 7)), torch.randint(4, 31, (3, 5))
    theirs = layout.model(tmp_path)
    with torch.inference_mode():
        ours = model(source=source, source_lengths=torch.full((3,), 7), target=target).logits
        found = theirs(input_ids=source, attention_mask=torch.ones_like(source), decoder_input_ids=target).logits
    torch.testing.assert_close(found[..., layout.END :], ours[..., layout.END :], rtol=1e-4, atol=1e-5)
    assert (found[..., : layout.END] < layout.NEVER / 2).all()
