"""Protein language models of transformers: residues as tokens, and the contacts that their heads tell."""

from pathlib import Path
from typing import Any

import pytest
import torch

from foveate.cli import main
from foveate.errors import UserError
from foveate.sight.contacts import contact_map
from foveate.tasks.viewers import open_model
from foveate.tasks.viewers.proteins import ProteinViewer

transformers = pytest.importorskip("transformers")

LETTERS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]

PROTEIN = "MKTAYIAKQRQ"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("esm")
    torch.manual_seed(3)
    config = transformers.EsmConfig(
        vocab_size=len(LETTERS),
        hidden_size=20,
        num_hidden_layers=3,
        num_attention_heads=5,
        intermediate_size=28,
        max_position_embeddings=40,
        position_embedding_type="rotary",
        token_dropout=True,
        pad_token_id=1,
        mask_token_id=32,
        vocab_list=LETTERS,
    )
    model = transformers.EsmForMaskedLM(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(place)
    (place / "vocab.txt").write_text("\n".join(LETTERS))
    transformers.EsmTokenizer(str(place / "vocab.txt")).save_pretrained(place)
    return place


def theirs(folder: Path) -> torch.Tensor:
    """The contacts as transformers has them, from maps without fused kernels."""
    model = transformers.EsmForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(PROTEIN, return_tensors="pt")
    with torch.no_grad():
        return model.predict_contacts(tokens["input_ids"], tokens["attention_mask"])[0]


def test_contacts_are_theirs(folder: Path) -> None:
    viewer = open_model(folder)
    assert isinstance(viewer, ProteinViewer)
    found = viewer.look(PROTEIN, 4096)
    contacts = found.sight["contacts"]
    assert contacts.shape == (1, 1, len(PROTEIN), len(PROTEIN))
    torch.testing.assert_close(contacts.weights()[0, 0], theirs(folder), atol=5e-5, rtol=0)
    assert found.tokens["contacts"] == list(PROTEIN)
    assert (found.opening.site, found.sight.sites[0]) == ("contacts", "contacts")  # type: ignore[union-attr]
    assert len(found.sight.sites) == 4


def test_a_page_of_residues(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["look", str(folder), PROTEIN, "--out", str(tmp_path / "look.html")])
    page = (tmp_path / "look.html").read_text()
    assert "logistic regression of all heads" in page
    assert '"labels":["M","K","T","A"' in page.replace(" ", "")
    main(["look", str(folder), PROTEIN, "--sites", "*layer.0*", "--out", str(tmp_path / "one.html")])
    assert "logistic regression" not in (tmp_path / "one.html").read_text()


def test_all_heads_are_needed(folder: Path) -> None:
    layers: list[Any] = [site for site in open_model(folder).look(PROTEIN, 4096).sight if site.name != "contacts"]
    with pytest.raises(UserError, match="contacts are read from 15 heads, but 10 were seen"):
        contact_map(layers[:2], torch.ones(15), 0.0, range(1, 5))
