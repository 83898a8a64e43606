"""What configs of Llama's relatives may say in several ways, and what is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from llama_relatives import LLAMA3, YARN
from public_models import CONFIGS, folder_of

from foveate.errors import UserError
from foveate.interop.public_folder import layout_of, read_folder
from foveate.nn.rotary import RotaryScaling


def with_fields(name: str, place: Path, without: tuple[str, ...] = (), **fields: Any) -> Path:
    """The folder of a model whose config.json has other fields."""
    folder, _ = folder_of(name, place)
    where = folder / "config.json"
    values = {key: value for key, value in json.loads(where.read_text()).items() if key not in without}
    where.write_text(json.dumps(values | fields))
    return folder


def config_of(folder: Path) -> Any:
    values = json.loads((folder / "config.json").read_text())
    return layout_of(folder).read_config(values, str(folder / "config.json"))


@pytest.mark.parametrize("kind", ["type", "rope_type"])
@pytest.mark.parametrize(
    ("name", "scaling"),
    [
        ("llama-linear", {"kind": "linear", "factor": 3.0}),
        ("llama-3", {"kind": "llama3", **LLAMA3}),
        ("llama-yarn", {"kind": "yarn", **YARN}),
    ],
)
def test_older_files_scale_positions_alike(name: str, scaling: dict[str, Any], kind: str, tmp_path: Path) -> None:
    newer, _ = folder_of(name, tmp_path / "newer")
    own = {kind: scaling["kind"], **{key: value for key, value in scaling.items() if key != "kind"}}
    older = with_fields(name, tmp_path / "older", ("rope_parameters",), rope_scaling=own, rope_theta=10_000.0)
    assert config_of(older) == config_of(newer)
    assert config_of(newer).rotary_scaling.kind == scaling["kind"]


def test_windows_and_positions_of_some_layers_may_be_left_out(tmp_path: Path) -> None:
    """Then the rule of transformers holds, which its own files spell out."""
    for name in ("qwen2", "smollm3", "gemma2"):
        folder, _ = folder_of(name, tmp_path / name)
        expected = config_of(folder)
        assert expected.window == 4
        shorter = with_fields(name, tmp_path / f"{name}-short", ("layer_types", "no_rope_layers"))
        assert config_of(shorter) == expected
    assert config_of(tmp_path / "qwen2").window_layers == (False, True, True)
    assert config_of(tmp_path / "smollm3").rotary_layers == (True, False)


REFUSED = [
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "has the rope_type 'dynamic'"),
    ("llama", {"rope_parameters": {"rope_type": "longrope", "factor": 2.0}}, "has the rope_type 'longrope'"),
    ("llama", {"rope_parameters": {"rope_type": "linear"}}, "rotary positions of type 'linear' cannot be scaled by"),
    ("llama", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "unknown field 'full_attention'"),
    ("llama", {"rope_scaling": "linear"}, "has the rope_scaling 'linear', which cannot be"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5, but all of a head's width turns"),
    ("mistral", {"layer_types": ["full_attention"] * 3}, "has layer_types"),
    ("qwen2", {"layer_types": ["full_attention"]}, "layer_types has 1 values for 3 layers"),
    ("qwen2", {"layer_types": ["chunked"] * 3}, "has the layer_types ['chunked', 'chunked', 'chunked']; foveate knows"),
    ("qwen3", {"use_sliding_window": False, "layer_types": ["sliding_attention"] * 3}, "layer_types has windows, but"),
    ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers has 1 values for 3 layers"),
    ("gemma2", {"use_bidirectional_attention": True}, "has use_bidirectional_attention True"),
    ("gemma2", {"attn_logit_softcapping": 0.0}, "soft caps of 0"),
    ("phi3", {"rope_parameters": {"rope_type": "longrope"}}, "has rope_type 'longrope'"),
    ("gptj", {"rotary_dim": None}, "rotary_dim is None, but must be an even number"),
    ("opt", {"do_layer_norm_before": False}, "has do_layer_norm_before False"),
    ("opt", {"word_embed_proj_dim": 20}, "has word_embed_proj_dim 20"),
    ("opt", {"enable_bias": False}, "has enable_bias False"),
]


@pytest.mark.parametrize(("name", "fields", "message"), REFUSED)
def test_what_our_models_lack_is_refused(name: str, fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = with_fields(name, tmp_path, **fields)
    with pytest.raises(UserError) as error:
        read_folder(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["mixtral", "qwen2_moe", "qwen3_moe", "phimoe"])
def test_mixtures_of_experts_are_refused_by_name(kind: str, tmp_path: Path) -> None:
    folder = with_fields("llama", tmp_path, model_type=kind)
    with pytest.raises(UserError, match=f"holds a model of the type '{kind}'"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("name", "field", "other"),
    [
        ("llama-3", "rotary_scaling", None),
        ("llama-yarn", "rotary_scaling", RotaryScaling("yarn", 4.0, 64, 1.0, 32.0)),
        ("mistral", "window", None),
        ("qwen2", "window_layers", None),
        ("qwen3", "query_key_norm", "across"),
        ("smollm3", "rotary_layers", None),
        ("gemma2", "score_cap", None),
        ("gemma2", "score_scale", None),
        ("gemma2", "logit_cap", None),
        ("gemma2", "scale_embeddings", False),
        ("olmo2", "query_key_norm", "head"),
        ("phi3", "rotary_width", None),
        ("gptj", "rotary_width", 4),
    ],
)
def test_what_is_compared_acts(name: str, field: str, other: Any, tmp_path: Path) -> None:
    """With another value the tiny models of these tests have other logits, or other weights."""
    model: Any = read_folder(folder_of(name, tmp_path)[0]).model
    tokens = torch.randint(CONFIGS[name].vocab_size, (2, 17))
    changed = type(model.config)(**{**vars(model.config), field: other})
    again = type(model)(changed).eval()
    try:
        again.load_state_dict(model.state_dict())
    except RuntimeError:
        return
    with torch.no_grad():
        assert (again(tokens).logits - model(tokens).logits).abs().max() > 1e-3
