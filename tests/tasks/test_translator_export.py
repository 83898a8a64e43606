"""Translators that foveate trained as folders of transformers: the same logits and the same beam search."""

import itertools
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

transformers = pytest.importorskip("transformers")

import foveate  # noqa: E402
from foveate.cli import main  # noqa: E402
from foveate.errors import UserError  # noqa: E402
from foveate.tasks import find_task  # noqa: E402
from foveate.tasks.export.translators import export_translator  # noqa: E402
from foveate.tasks.learning import learn  # noqa: E402

WORDS = ["the", "keeper", "lit", "lamp", "up"]

TEXTS = ["the keeper lit", "lamp up the"]


def trained(folder: Path, shared: bool, **architecture: Any) -> Any:
    """A translator that has learned a little."""
    data = folder / "pairs.tsv"
    data.write_text("".join(f"{a} {b} {c}\t{c} {a} {b}\n" for a, b, c in itertools.permutations(WORDS, 3)))
    sizes = {"width": 22, "heads": 2, "feedforward": 31, "encoder_layers": 2, "decoder_layers": 3}
    recipe = find_task("translate").recipe(
        data=data,
        validation=data,
        validation_examples=4,
        out=folder / "run",
        steps=9,
        validate_every=9,
        save_every=9,
        average=1,
        warmup=1,
        max_length=30,
        batch=400,
        vocabulary=60,
        shared=shared,
        architecture=sizes | architecture,
    )
    learn(recipe, console=Console(file=StringIO()))
    return foveate.load(folder / "run")


@pytest.mark.parametrize(
    ("norm", "tie", "shared", "kind"),
    [
        ("pre", "output", True, "PegasusForConditionalGeneration"),
        ("post", "output", False, "MarianMTModel"),
        ("post", "all", True, "MarianMTModel"),
    ],
)
def test_transformers_reads_it(norm: str, tie: str, shared: bool, kind: str, tmp_path: Path) -> None:
    skill, place = trained(tmp_path, shared, norm=norm, tie=tie), tmp_path / "there"
    main(["export", str(tmp_path / "run"), "--out", str(place)])
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(place).eval()
    assert type(theirs).__name__ == kind
    source, target = torch.randint(4, 13, (3, 9)), torch.randint(4, 13, (3, 7))
    with torch.no_grad():
        expected = skill.model(source, torch.full((3,), 9), target).logits
        found = theirs(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)
    reads = transformers.AutoTokenizer.from_pretrained(place)
    writes = reads if shared else transformers.AutoTokenizer.from_pretrained(place / "target_tokenizer")
    inputs = reads(TEXTS, return_tensors="pt", padding=True)
    best = theirs.generate(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], num_beams=4, max_length=15
    )
    options = {"width": 4, "early_stopping": "no", "max_new_tokens": 14}
    own = [answer.text for answer in skill(TEXTS, **options)]
    assert writes.batch_decode(best, skip_special_tokens=True) == own
    assert [answer.text for answer in foveate.load(place)(TEXTS, **options)] == own


def test_what_transformers_lacks(tmp_path: Path) -> None:
    skill = trained(tmp_path, True, positions="relative")
    with pytest.raises(UserError, match="transformers has no model with norm='pre', positions='relative'"):
        export_translator(skill, tmp_path / "there")
    assert not (tmp_path / "there").exists()
