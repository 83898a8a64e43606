"""One rule that makes a small config of any config class of transformers, and inputs for any model.

A field is known by its name and by the kind of its default: counts of layers and heads, widths, vocabularies, windows
and ids become small, everything else stays as it is. Configs within configs are made by the same rule.
"""

import dataclasses
import re
from typing import Any

from families.special import CONFIGS, VOCABULARY

WIDTH, HEADS, HEAD_WIDTH = 64, 4, 16

RULES: tuple[tuple[str, Any], ...] = (
    (r"num_kv_shared_layers", 0),
    (
        r"(num_hidden_layers|n_layers?|num_layers|.*_layers|layers|depth|num_blocks|.*_depth|num_hidden_.*layers)",
        "layers",
    ),
    (r"(.*_)?(num_key_value_heads|kv_heads|n_kv_heads|num_kv_heads)", "shared heads"),
    (r"(.*_)?(num_attention_heads|attention_heads|n_heads?|num_heads|heads)", HEADS),
    (
        r"(.*_)?(head_dim|head_width|d_head|d_kv|dim_head|head_size|qk_nope_head_dim|qk_rope_head_dim|v_head_dim|rotary_dim)",
        HEAD_WIDTH,
    ),
    (r"(.*_)?(kv_lora_rank|q_lora_rank|o_lora_rank)", 16),
    (
        r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|hidden_dim|embedding_size|projection_dim|emb_dim|embedding_dim"
        r"|dim_model|model_dim|hidden_dims|projection_size|word_embed_proj_dim|width|out_hidden_size|feat_proj_dim"
        r"|output_dim|projector_dim|d_embed|conditioning_dim)",
        WIDTH,
    ),
    (
        r"(.*_)?(intermediate_size|ffn_dim|d_ff|d_inner|feedforward_dim|dim_feedforward|n_inner|ffn_hidden_size|mlp_dim"
        r"|dim_ff|inner_dim|intermediate_dim|ffn_intermediate_size|mlp_hidden_size|feed_forward_size)",
        48,
    ),
    (r"(.*_)?(vocab_size|codebook_size|num_embeddings)(_per_layer_input)?", VOCABULARY),
    (r"(.*_)?(num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts)", 4),
    (r"(num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts)", 2),
    (r"(n_group|topk_group|num_expert_group|n_groups)", 1),
    (r"(.*_)?(sliding_window|sliding_window_size|attention_chunk_size|window_size|local_window)", "window"),
    (r"(.*_)?(num_queries|num_proposals)", 7),
    (r"(.*_)?(max_position_embeddings|n_positions|max_seq_len|max_sequence_length|seq_length)", "positions"),
)
"""A pattern for the whole name of a field, and what such a number becomes."""

MULTIMODAL = [16, 24, 24]
"""How many frequencies of a head of width 128 are time, height and width where a config does not say it."""

ID = re.compile(r".*_token_(id|index)|.*_(id|index)|.*_token_ids")


class Small:
    """Makes small configs, of this many layers; with `wide`, widths and heads stay as they are."""

    def __init__(self, layers: int, wide: bool = False) -> None:
        self.layers, self.wide = layers, wide
        self._ids: dict[int, int] = {}

    def config(self, kind: type, like: Any = None) -> Any:
        """A config of this class, with the fields in which `like` differs from the defaults of its class."""
        needed = CONFIGS.get(kind.model_type, {})
        default = kind(**needed)
        values = {part.name: self._default(part) for part in dataclasses.fields(kind) if part.init}
        given = {name: value for name, value in values.items() if not name.startswith("_")}
        if like is not None:
            given |= {name: vars(like)[name] for name in given if vars(like).get(name) != vars(default).get(name)}
        like = default if like is None else like
        given = {name: value for name, value in given.items() if not self._of_each_layer(value, like)}
        found = {name: self._number(name, value, given) for name, value in given.items()}
        for name in kind.sub_configs:
            inner = getattr(like, name, None)
            if dataclasses.is_dataclass(inner):
                found[name] = self.config(type(inner), inner)
        if "mrope_section" in getattr(kind, "ignore_keys_at_rope_validation", ()) and not self.wide:
            found["rope_parameters"] = _with_short_sections(getattr(default, "rope_parameters", None) or {})
        if like is not default and getattr(like, "_out_features", None):
            found |= self._with_stages(like.out_features, found)
        found |= needed
        return kind(**{name: value for name, value in found.items() if name not in values or value != values[name]})

    def _with_stages(self, names: list[str], found: dict[str, Any]) -> dict[str, Any]:
        """The fields by which a backbone gives as many of its stages as before."""
        layers = found.get("num_hidden_layers")
        numbers = [int(name.removeprefix("stage")) for name in names if name != "stem"]
        if not isinstance(layers, int) or max(numbers, default=0) <= layers:
            return {"out_features": names}
        layers = max(layers, len(names))
        last = range(layers - len(names) + 1, layers + 1)
        return {"num_hidden_layers": layers, "out_features": [f"stage{number}" for number in last], "out_indices": None}

    def _of_each_layer(self, value: Any, config: Any) -> bool:
        """Whether a list has an entry for each layer, of which there are fewer now."""
        layers = getattr(config, "num_hidden_layers", None)
        return isinstance(value, (list, tuple)) and len(value) == layers and layers > self.layers

    @staticmethod
    def _default(part: dataclasses.Field) -> Any:
        if part.default_factory is not dataclasses.MISSING:
            return part.default_factory()
        return None if part.default is dataclasses.MISSING else part.default

    def _number(self, name: str, value: Any, defaults: dict[str, Any]) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
            return value
        if name in ("image_size", "img_size", "input_size"):
            return self._image(value, defaults)
        if ID.fullmatch(name) or "token_id" in name:
            if isinstance(value, (list, tuple)):
                return [self._id(each) if isinstance(each, int) else each for each in value]
            return self._id(value)
        if not isinstance(value, int):
            return value
        for pattern, new in RULES:
            if re.fullmatch(pattern, name):
                return self._by(new, value, name, defaults)
        return value

    @staticmethod
    def _image(value: Any, defaults: dict[str, Any]) -> Any:
        """Pictures of a few patches; where layers differ in resolution, of 256 pixels at most."""
        patch = defaults.get("patch_size")
        several = any(
            isinstance(defaults.get(name), (list, tuple)) for name in ("depths", "hidden_sizes", "embed_dims")
        )
        size = 6 * patch if isinstance(patch, int) and patch > 4 and not several else 256
        return min(value, size) if isinstance(value, int) else type(value)(min(each, size) for each in value)

    def _by(self, rule: Any, value: int, name: str, defaults: dict[str, Any]) -> int:
        if rule == "layers":
            return min(value, self.layers)
        if rule == "window":
            return 6 if value > 32 and "patch_size" not in defaults else value
        if rule == "positions":
            return min(value, 2048)
        if self.wide and rule not in (VOCABULARY, 7, 4, 2, 1, 0):
            return value
        if rule == "shared heads":
            heads = defaults.get(name.replace("key_value", "attention").replace("kv_", ""))
            return 1 if value == 1 else HEADS if value == heads else HEADS // 2
        return min(value, rule)

    def _id(self, value: int) -> int:
        """A token's number within the vocabulary; different ones stay different."""
        if value < VOCABULARY // 2:
            return value
        return self._ids.setdefault(value, VOCABULARY - 1 - len(self._ids) % (VOCABULARY // 2))


def _with_short_sections(rope: dict[str, Any]) -> dict[str, Any]:
    """How many of a head's frequencies belong to time, height and width, for a head that has become small."""
    frequencies = int(HEAD_WIDTH * rope.get("partial_rotary_factor", 1)) // 2
    section = rope.get("mrope_section", MULTIMODAL)
    small = [part * frequencies // sum(section) for part in section]
    small[0] += frequencies - sum(small)
    return {**rope, "mrope_section": small}
