"""transformers' names for a speech Transformer: `Speech2TextForConditionalGeneration`."""

from foveate.models.speech.speech_transformer import SpeechTransformerConfig

_BLOCK = {
    "self.query": "self_attn.q_proj",
    "self.key": "self_attn.k_proj",
    "self.value": "self_attn.v_proj",
    "self.output": "self_attn.out_proj",
    "around_self.norm": "self_attn_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}

_CROSS = {
    "cross.query": "encoder_attn.q_proj",
    "cross.key": "encoder_attn.k_proj",
    "cross.value": "encoder_attn.v_proj",
    "cross.output": "encoder_attn.out_proj",
    "around_cross.norm": "encoder_attn_layer_norm",
}


def transformers(config: SpeechTransformerConfig) -> dict[str, str]:
    """For models without an output layer for CTC. Theirs have positions in another order of channels."""
    names = {
        "subsampling.first": "model.encoder.conv.conv_layers.0",
        "subsampling.second": "model.encoder.conv.conv_layers.1",
        "embedding": "model.decoder.embed_tokens",
        "encoder_norm": "model.encoder.layer_norm",
        "decoder_norm": "model.decoder.layer_norm",
        "output": "lm_head",
    }
    for layer in range(config.encoder_layers):
        names |= {f"encoder.{layer}.{ours}": f"model.encoder.layers.{layer}.{name}" for ours, name in _BLOCK.items()}
    for layer in range(config.decoder_layers):
        parts = (_BLOCK | _CROSS).items()
        names |= {f"decoder.{layer}.{ours}": f"model.decoder.layers.{layer}.{name}" for ours, name in parts}
    return names
