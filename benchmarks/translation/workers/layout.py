"""A foveate Transformer as a model of transformers: the same weights under other names.

Runs where transformers is installed and foveate is not: it reads the run folder's config.json and model.safetensors.
"""

import json
import re
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

PAD, START, END = 0, 1, 2
POSITIONS = 1024
NEVER = -1e4
"""Added to the logits of tokens that foveate never writes."""

NAMES = (
    (r"^(encoder|decoder)_norm", r"model.\1.layer_norm"),
    (r"^(encoder|decoder)\.(\d+)\.", r"model.\1.layers.\2."),
    (r"^(source|target)_embedding", "model.shared"),
    (r"^output", "lm_head"),
    (r"\.around_self\.norm", ".self_attn_layer_norm"),
    (r"\.around_cross\.norm", ".encoder_attn_layer_norm"),
    (r"\.around_feedforward\.norm", ".final_layer_norm"),
    (r"\.feedforward\.inner", ".fc1"),
    (r"\.feedforward\.outer", ".fc2"),
    (r"\.self\.", ".self_attn."),
    (r"\.cross\.", ".encoder_attn."),
    (r"\.(query|key|value)\.", lambda found: f".{found[1][0]}_proj."),
    (r"attn\.output\.", "attn.out_proj."),
)


def model(folder: Path, forced: bool = False) -> MarianMTModel | PegasusForConditionalGeneration:
    """Marian for layer norms after each residual sum, Pegasus for norms before each layer; with `forced` END, too, is
    never written."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architecture"]
    kind, config_kind = (
        (MarianMTModel, MarianConfig) if config["norm"] == "post" else (PegasusForConditionalGeneration, PegasusConfig)
    )
    made = kind(
        config_kind(
            vocab_size=config["tgt_vocab"],
            d_model=config["width"],
            encoder_layers=config["encoder_layers"],
            decoder_layers=config["decoder_layers"],
            encoder_attention_heads=config["heads"],
            decoder_attention_heads=config["heads"],
            encoder_ffn_dim=config["feedforward"],
            decoder_ffn_dim=config["feedforward"],
            activation_function=config["activation"],
            scale_embedding=True,
            max_position_embeddings=POSITIONS,
            pad_token_id=PAD,
            bos_token_id=START,
            eos_token_id=END,
            decoder_start_token_id=START,
            forced_eos_token_id=None,
        )
    ).eval()
    _fill(made, _weights(folder / "model.safetensors"))
    made.final_logits_bias[:, [PAD, START, END] if forced else [PAD, START]] = NEVER
    return made


def _weights(path: Path) -> dict[str, torch.Tensor]:
    """All of them by name, those too that are another's: a file holds a tensor once and says which names it has."""
    with safe_open(path, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
        return weights | {name: weights[kept] for name, kept in json.loads(file.metadata()["tied"]).items()}


def _fill(made: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    state = {_renamed(name): value for name, value in weights.items()}
    missing, unexpected = made.load_state_dict(state, strict=False)
    shared = re.compile(r"(embed_tokens|embed_positions|lm_head)\.weight$|^final_logits_bias$")
    if unexpected or not all(map(shared.search, missing)):
        raise SystemExit(f"the weights do not fit: {missing} are missing, {unexpected} are unknown")
    made.tie_weights()
    for side in (made.model.encoder, made.model.decoder):
        side.embed_positions.weight.data = _waves(side.embed_positions.weight.shape[1])


def _renamed(name: str) -> str:
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def _waves(width: int) -> torch.Tensor:
    """Interleaved sines and cosines; these models have all sines first."""
    angles = torch.arange(POSITIONS)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
