"""The Transformer computes what public implementations compute from the same weights.

Marian is post-norm, Pegasus the same with pre-norm; their positions come first the sines, then the cosines, and are
copied into our learned table.
"""

import re

import pytest
import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

from foveate import create

THEIRS = {"post": (MarianConfig, MarianMTModel), "pre": (PegasusConfig, PegasusForConditionalGeneration)}

KEYS = [
    (r"^model\.shared", "target_embedding"),
    (r"^model\.encoder\.embed_tokens", "source_embedding"),
    (r"^model\.encoder\.embed_positions\.weight", "source_positions.positions.table"),
    (r"^model\.decoder\.embed_positions\.weight", "target_positions.positions.table"),
    (r"^model\.(encoder|decoder)\.layer_norm", r"\1_norm"),
    (r"^model\.(encoder|decoder)\.layers", r"\1"),
    (r"^lm_head", "output"),
    (r"self_attn_layer_norm", "around_self.norm"),
    (r"encoder_attn_layer_norm", "around_cross.norm"),
    (r"final_layer_norm", "around_feedforward.norm"),
    (r"self_attn", "self"),
    (r"encoder_attn", "cross"),
    (r"([qkv])_proj", lambda found: {"q": "query", "k": "key", "v": "value"}[found[1]]),
    (r"out_proj", "output"),
    (r"fc1", "feedforward.inner"),
    (r"fc2", "feedforward.outer"),
]
"""Their names as ours."""

ELSEWHERE = ("final_logits_bias", "model.decoder.embed_tokens.weight")
"""A bias of zeros that we do not have, and the tied embedding once more."""

SOURCE = torch.tensor([[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0]])
LENGTHS = torch.tensor([7, 4, 1])
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0], [1, 9, 9, 4, 0]])


def theirs(norm: str, activation: str) -> nn.Module:
    config, model = THEIRS[norm]
    made = model(
        config(
            vocab_size=17,
            d_model=12,
            encoder_layers=2,
            decoder_layers=3,
            encoder_attention_heads=3,
            decoder_attention_heads=3,
            encoder_ffn_dim=11,
            decoder_ffn_dim=11,
            activation_function=activation,
            scale_embedding=True,
            max_position_embeddings=19,
            pad_token_id=0,
            decoder_start_token_id=1,
            eos_token_id=2,
        )
    )
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.3)
    return made.eval()


def ours(norm: str, activation: str, weights: dict[str, Tensor]) -> nn.Module:
    model = create(
        "transformer-base",
        src_vocab=17,
        tgt_vocab=17,
        width=12,
        heads=3,
        feedforward=11,
        encoder_layers=2,
        decoder_layers=3,
        norm=norm,
        activation=activation,
        positions="learned",
        max_length=19,
    )
    model.load_state_dict({our_name(name): tensor for name, tensor in weights.items() if name not in ELSEWHERE})
    return model.eval()


def our_name(name: str) -> str:
    for their, our in KEYS:
        name = re.sub(their, our, name)
    return name


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_marian_and_pegasus(norm: str, activation: str) -> None:
    reference = theirs(norm, activation)
    model = ours(norm, activation, reference.state_dict())
    with torch.no_grad():
        expected = reference(
            input_ids=SOURCE,
            attention_mask=torch.arange(7) < LENGTHS[:, None],
            decoder_input_ids=TARGET,
            use_cache=False,
        ).logits
        found = model(SOURCE, LENGTHS, TARGET).logits
    assert expected.std() > 0.3
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_equals_torch_transformer_encoder() -> None:
    """The blocks of both norms against PyTorch's own, which bring no embeddings."""
    for norm in ("post", "pre"):
        model = ours(norm, "relu", theirs(norm, "relu").state_dict())
        reference = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(12, 3, 11, norm_first=norm == "pre", batch_first=True, dropout=0.0),
            2,
            norm=nn.LayerNorm(12) if norm == "pre" else None,
            enable_nested_tensor=False,
        )
        weights = {}
        for number, block in enumerate(model.encoder):
            names = {
                "self_attn.out_proj": block.self.output,
                "linear1": block.feedforward.inner,
                "linear2": block.feedforward.outer,
                "norm1": block.around_self.norm,
                "norm2": block.around_feedforward.norm,
            }
            for name, part in names.items():
                weights |= {f"layers.{number}.{name}.{kind}": value for kind, value in part.state_dict().items()}
            for kind in ("weight", "bias"):
                parts = [getattr(part, kind) for part in (block.self.query, block.self.key, block.self.value)]
                weights[f"layers.{number}.self_attn.in_proj_{kind}"] = torch.cat(parts)
        if norm == "pre":
            weights |= {f"norm.{kind}": value for kind, value in model.encoder_norm.state_dict().items()}
        reference.load_state_dict(weights)
        x = torch.randn(3, 7, 12)
        encoded = x
        for block in model.encoder:
            encoded = block(encoded)
        torch.testing.assert_close(model.encoder_norm(encoded), reference(x), atol=1e-5, rtol=0)
