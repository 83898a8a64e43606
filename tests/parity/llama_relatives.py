"""Configs of transformers of tiny models like Llama, with odd sizes: each with what it has and Llama has not."""

from typing import Any

import transformers

SIZES = {
    "vocab_size": 53,
    "bos_token_id": 51,
    "eos_token_id": 52,
    "pad_token_id": None,
    "hidden_size": 48,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 29,
    "num_hidden_layers": 3,
    "max_position_embeddings": 37,
}

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}

YARN = {"factor": 4.0, "original_max_position_embeddings": 64}


def llama(kind: str, **rotary: Any) -> Any:
    """A Llama whose positions are scaled: a head turns by a fast frequency, a slow one, and two between them."""
    parameters = {"rope_type": kind, "rope_theta": 10_000.0, **rotary}
    return transformers.LlamaConfig(**SIZES, rope_parameters=parameters)


RELATIVES = {
    "llama-linear": llama("linear", factor=3.0),
    "llama-3": llama("llama3", **LLAMA3),
    "llama-yarn": llama("yarn", **YARN),
    "llama-yarn-of-another-size": llama("yarn", **YARN, beta_fast=4.0, attention_factor=0.8, truncate=False),
    "llama-yarn-of-two-scales": llama("yarn", **YARN, mscale=0.7, mscale_all_dim=0.4),
    "llama-biased-attention": transformers.LlamaConfig(**SIZES, attention_bias=True),
    "mistral": transformers.MistralConfig(**SIZES, head_dim=10, sliding_window=5),
    "mistral-without-window": transformers.MistralConfig(**SIZES, sliding_window=None),
    "qwen2": transformers.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen2-without-window": transformers.Qwen2Config(**SIZES),
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=10),
    "smollm3": transformers.SmolLM3Config(
        **SIZES, no_rope_layer_interval=2, use_sliding_window=True, sliding_window=5, attention_bias=True
    ),
    "gemma2": transformers.Gemma2Config(
        **SIZES,
        head_dim=10,
        sliding_window=5,
        query_pre_attn_scalar=7,
        attn_logit_softcapping=1.5,
        final_logit_softcapping=2.5,
    ),
    "gemma2-without-caps": transformers.Gemma2Config(
        **SIZES, head_dim=10, sliding_window=5, attn_logit_softcapping=None, final_logit_softcapping=None
    ),
    "olmo2": transformers.Olmo2Config(**SIZES),
    "phi3": transformers.Phi3Config(
        **SIZES,
        sliding_window=5,
        resid_pdrop=0.1,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5},
    ),
    "gptj": transformers.GPTJConfig(
        vocab_size=53,
        bos_token_id=51,
        eos_token_id=52,
        n_embd=40,
        n_head=5,
        n_layer=3,
        n_inner=28,
        n_positions=37,
        rotary_dim=6,
    ),
    "opt": transformers.OPTConfig(
        vocab_size=53,
        bos_token_id=51,
        eos_token_id=52,
        pad_token_id=None,
        hidden_size=40,
        num_attention_heads=5,
        ffn_dim=28,
        num_hidden_layers=3,
        max_position_embeddings=37,
    ),
}
