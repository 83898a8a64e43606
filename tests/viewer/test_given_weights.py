"""Weights that another program made: from Python, and from a file of each layout."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import foveate
from foveate.cli.look import main as look
from foveate.errors import UserError
from foveate.sight import from_weights
from foveate.tensor_files import write_tensors
from foveate.viewer.given_file import PARTS, read_weights
from foveate.viewer.page import read

transformers = pytest.importorskip("transformers")

WORDS = ["the", "cat", "sat", "down", "."]


def weights(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).softmax(-1)


@pytest.mark.parametrize("shape", [(5, 5), (3, 5, 5), (2, 3, 5, 5)])
def test_any_shape_is_shown_and_measured(shape: tuple[int, ...], tmp_path: Path) -> None:
    maps = weights(*shape)
    sight = from_weights(maps.numpy())
    site = sight["weights"]
    whole = maps.reshape(*[1] * (4 - maps.ndim), *shape)
    assert site.shape == whole.shape
    torch.testing.assert_close(site.weights(), whole)
    torch.testing.assert_close(site.received(), whole.sum(-2))
    torch.testing.assert_close(site.max(), whole.amax(-1))
    torch.testing.assert_close(site.entropy(), -(whole * whole.log()).sum(-1))
    torch.testing.assert_close(site.top(2).weights, whole.topk(2).values)
    torch.testing.assert_close(site.pooled(5, 5), whole)
    assert site.distance().shape == whole.shape[:3]
    page = foveate.show(maps, WORDS)
    assert "iframe" in page._repr_html_()
    page.save(tmp_path / "page.html")
    assert [panel.name for panel in read(tmp_path / "page.html").sites if not panel.rollout] == ["weights"]


def test_what_transformers_returns() -> None:
    sizes: dict[str, Any] = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2}
    config = transformers.BartConfig(
        **sizes,
        decoder_attention_heads=2,
        vocab_size=20,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=16,
    )
    model = transformers.BartModel(
        config,
    ).eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        outputs = model(torch.tensor([[4, 5, 6, 7]]), output_attentions=True)
    sight = from_weights(outputs)
    assert sorted(sight.sites) == [
        "cross_attentions.0",
        "decoder_attentions.0",
        "encoder_attentions.0",
        "encoder_attentions.1",
    ]
    torch.testing.assert_close(sight["cross_attentions.0"].weights(), outputs.cross_attentions[0])
    assert len(from_weights(outputs.encoder_attentions)) == 2
    assert sight.rollout("encoder*").shape == (1, 4, 4)


def test_what_generate_returns_is_one_map() -> None:
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=11)).eval()
    model.set_attn_implementation("eager")
    ids = torch.tensor([[5, 9, 2]])
    options = {"return_dict_in_generate": True, "output_attentions": True, "do_sample": False, "max_new_tokens": 3}
    outputs = model.generate(ids, **options, pad_token_id=0, eos_token_id=None)
    sight = from_weights(outputs)
    with torch.no_grad():
        whole = model(outputs.sequences[:, :-1], output_attentions=True).attentions
    assert sight.sites == ["attentions.0", "attentions.1"]
    for site, expected in zip(sight, whole, strict=True):
        torch.testing.assert_close(site.weights(), expected, rtol=1e-4, atol=1e-6)


def test_queries_and_keys_of_groups() -> None:
    queries, keys = torch.randn(4, 3, 6), torch.randn(2, 5, 6)
    arrays = {"layer.0.queries": queries.numpy(), "layer.0.keys": keys.numpy(), "causal": np.array(True)}
    scores = queries @ keys.repeat_interleave(2, 0).mT / 6**0.5
    expected = scores.masked_fill(torch.ones(3, 5).tril(2) == 0, -torch.inf).softmax(-1)
    site = saved_npz(arrays).sight["layer.0"]
    torch.testing.assert_close(site.weights()[0], expected)


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_causal_and_scale_of_one_site(ending: str, tmp_path: Path) -> None:
    """As in a file of a decoder, whose self-attention alone is causal."""
    queries, keys = torch.randn(2, 3, 6), torch.randn(2, 3, 6)
    path = tmp_path / f"given.{ending}"
    sides = {
        f"{site}.{part}": side for site in ("self", "cross") for part, side in zip(PARTS, (queries, keys), strict=False)
    }
    if ending == "npz":
        settings: dict[str, Any] = {"self.causal": np.array(True), "self.scale": np.array(0.5), "scale": np.array(2)}
        np.savez(path, **sides, **settings)
    else:
        write_tensors(path, sides, {"self.causal": "true", "self.scale": "0.5", "scale": "2"})
    sight = read_weights(path).sight
    past = torch.ones(3, 3).tril() == 0
    torch.testing.assert_close(sight["cross"].weights()[0], (2 * queries @ keys.mT).softmax(-1))
    expected = (0.5 * queries @ keys.mT).masked_fill(past, -torch.inf).softmax(-1)
    torch.testing.assert_close(sight["self"].weights()[0], expected)
    for name, value in (("other.causal", True), ("self.scale", np.ones(2)), ("causal", np.array("yes"))):
        with pytest.raises(UserError, match=f"{name}"):
            saved_npz(sides | {name: np.array(value)})


def saved_npz(arrays: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.npz"
        np.savez(path, **arrays)
        return read_weights(path)


def test_files_of_every_layout(tmp_path: Path) -> None:
    maps = weights(2, 5, 5)
    top = maps.topk(5)
    np.savez(tmp_path / "whole.npz", **{"layer.0": maps, "tokens": np.array(WORDS), "title": np.array("a cat")})
    sparse = {"layer.0.indices": top.indices, "layer.0.values": top.values}
    np.savez_compressed(tmp_path / "sparse.npz", **sparse, tokens=np.array(WORDS))
    named = {"tokens": json.dumps(WORDS)}
    write_tensors(tmp_path / "whole.safetensors", {"layer.0": maps}, named)
    write_tensors(tmp_path / "sparse.safetensors", sparse, named)
    for name in ("whole.npz", "sparse.npz", "whole.safetensors", "sparse.safetensors"):
        found = read_weights(tmp_path / name)
        torch.testing.assert_close(found.sight["layer.0"].weights()[0], maps)
        assert found.document().sites[0].queries.labels == tuple(WORDS)
    assert read_weights(tmp_path / "whole.npz").title == "a cat"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "given.npz", tmp_path / "page.html"
    maps = torch.full((2, 5, 5), 0.1)
    maps[..., 0] = 0.6
    np.savez(file, **{"layer.0": maps, "layer.1": weights(2, 5, 5), "tokens": np.array(WORDS)})
    look(["--weights", str(file), "--out", str(page)])
    assert "4 heads at 2 sites" in capsys.readouterr().out
    look(["--weights", str(file), "--out", str(page), "--sites", "*.0", "--measure", "without-sinks"])
    assert "2 heads at 1 site" in capsys.readouterr().out
    (panel,) = [panel for panel in read(page).sites if not panel.rollout]
    assert panel.shows == "without-sinks"
    assert panel.rows.weights.max() == pytest.approx(0.25, abs=1e-3)
    with pytest.raises(UserError, match=r"given\.npz has weights alone: --measure weights or without-sinks"):
        look(["--weights", str(file), "--out", str(page), "--measure", "values"])


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"a": np.ones((2, 2))}, "sums to at most 1"),
        ({"a": -np.ones((2, 2))}, "at least 0"),
        ({"a": np.array([[np.nan]])}, "finite"),
        ({"a": np.zeros((2, 2), np.int64)}, "expected weights"),
        ({"a": np.zeros(3)}, "expected weights"),
        ({"a": np.array(["x"])}, "must be numbers"),
        ({"a.queries": np.zeros((2, 3, 4))}, "needs queries and keys"),
        ({"a.queries": np.zeros((2, 3, 4)), "a.keys": np.zeros((2, 3, 5))}, "do not fit"),
        ({"a.indices": np.zeros((2, 3), np.int64), "a.values": np.zeros((2, 4))}, "needs as many"),
        ({"a.indices": np.full((2, 3), -2), "a.values": np.zeros((2, 3))}, "number of a key"),
        ({"a": np.eye(3), "tokens": np.array(["x"])}, "1 tokens"),
        ({"a": np.eye(3), "tokens": np.array([1, 2, 3])}, "must be text"),
        ({"a": np.eye(3), "scale": np.array([1, 2])}, "single numbers"),
        ({"tokens": np.array(["x"])}, "no weights"),
        ({"a": np.array([{}], dtype=object)}, "not a file of weights"),
    ],
)
def test_bad_files_are_refused_in_a_line(arrays: dict[str, Any], error: str) -> None:
    with pytest.raises(UserError, match=error):
        saved_npz(arrays).document()


def test_other_errors(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"x")
    for given_arguments, error in (
        (["--weights", str(tmp_path / "a.npz")], "not a file of weights"),
        (["--weights", str(tmp_path / "b.npz")], "does not exist"),
        (["--weights", str(tmp_path / "a.txt")], "npz and .safetensors"),
        (["--weights", "a.npz", "--out", "a.npz"], "another --out"),
        (["model", "text", "--weights", "a.npz"], "leave out MODEL"),
        (["model"], "look: INPUT"),
        ([], "look: MODEL and INPUT"),
    ):
        with pytest.raises(UserError, match=error):
            look(
                [*given_arguments]
                if "--out" in given_arguments
                else [*given_arguments, "--out", str(tmp_path / "o.html")]
            )
