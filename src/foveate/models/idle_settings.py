"""Settings of a model that nothing reads, because of another setting: to change one is a mistake that is reported."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from foveate.errors import UserError, show_value


@dataclass(frozen=True)
class IdleRule:
    """A field that acts only where another field has some values."""

    field: str
    other: str
    acts: tuple[Any, ...] = ()
    """The values of the other field where it acts."""
    idle: tuple[Any, ...] = ()
    """The values where it does nothing; all others let it act."""
    without: str = ""
    """A field that the config does not have, where the rule holds."""

    def is_idle(self, config: Any) -> bool:
        """Returns whether a config has both fields, and the field does nothing."""
        both = hasattr(config, self.other) and hasattr(config, self.field)
        if not both or (self.without and hasattr(config, self.without)):
            return False
        value = getattr(config, self.other)
        return value in self.idle if self.idle else value not in self.acts


SCORED = ("additive", "dot", "scaled-dot", "biaffine")

STATES = ("linear", "retention", "gated-delta", "mamba-2")
"""Layers that keep a state in the place of keys and values."""

OF_ATTENTION = (
    *(
        "key_value_heads",
        "head_width",
        "value_width",
        "head_gate",
        "split",
        "head_widths",
        "weights",
        "top_keys",
        "attention_dropout",
        "window",
    ),
    *("attention_bias", "query_key_norm", "head_score", "score_scale", "score_cap", "score_limit"),
)
"""Fields that decide layers with keys and values alone."""

OF_OWN_KEYS = (
    *(
        "key_value_heads",
        "value_width",
        "head_gate",
        "split",
        "head_widths",
        "query_key_norm",
        "head_score",
        "score_scale",
        "score_cap",
        "score_limit",
    ),
)
"""Fields that decide keys and values which each head projects from the input itself."""

RULES = (
    IdleRule("score_activation", "score", acts=("additive",)),
    IdleRule("fixed_vector", "score", acts=("none",)),
    *(
        IdleRule(name, "score", idle=("none",))
        for name in ("select", "score_from", "input_feeding", "window", "gate", "coverage")
    ),
    *(IdleRule(name, "cell", idle=("none",)) for name in ("embedding", "layers", "bidirectional")),
    IdleRule("input_feeding", "score_from", idle=("before",)),
    IdleRule("maxout", "score", idle=("none",)),
    *(IdleRule(name, "select", idle=("soft", "monotonic")) for name in ("samples", "mean_share")),
    IdleRule("window_radius", "window", idle=("none",)),
    IdleRule("pyramids", "listener", acts=("pyramid",)),
    IdleRule("window_radius", "select", acts=("local",), without="window"),
    *(IdleRule(name, "window", idle=(None,)) for name in ("window_every", "window_layers", "window_rotary_base")),
    IdleRule("window_every", "window_layers", acts=(None,)),
    *(IdleRule(f"rotary_{name}", "positions", acts=("rotary",)) for name in ("width", "base", "scaling", "layers")),
    IdleRule("query_temperature", "positions", acts=("rotary",)),
    IdleRule("query_temperature", "rotary_layers", idle=(None,)),
    IdleRule("temperature_span", "query_temperature", idle=(None,)),
    IdleRule("score_scale", "head_score", idle=("cosine",)),
    IdleRule("top_keys", "weights", acts=("top-k",)),
    *(IdleRule(name, "mixing", idle=STATES) for name in OF_ATTENTION),
    *(IdleRule(name, "mixing", idle=("latent",)) for name in OF_OWN_KEYS),
    IdleRule("value_width", "head_widths", acts=(None,)),
    IdleRule("latent_width", "mixing", acts=("latent",)),
    IdleRule("one_norm", "parallel", acts=(True,)),
    *(IdleRule(name, "head", acts=("words",)) for name in ("output_bias", "logit_cap")),
    IdleRule("first_norm", "norm", acts=("pre",)),
    IdleRule("first_norm", "one_norm", idle=(True,)),
    IdleRule("distance_buckets", "positions", idle=("relative-projected",)),
    IdleRule("text_activation", "head", acts=("text", "pair")),
    IdleRule("label_layer", "head", idle=("words", "vector", "none")),
    IdleRule("position_offset", "positions", acts=("learned", "sinusoidal")),
    IdleRule("waves", "positions", acts=("sinusoidal",)),
    IdleRule("layer_scale", "response_norm", acts=(False,)),
    IdleRule("trained_windows", "version", acts=("v2",)),
    IdleRule("position_join", "positions", acts=("learned", "sinusoidal")),
    *(IdleRule(name, "positions", acts=("learned",)) for name in ("class_position", "antialias")),
    IdleRule("tie", "head", idle=("tokens", "text", "pair", "none")),
    IdleRule("label_bias", "head", idle=("words", "none")),
    IdleRule("pooling", "head", idle=("words", "tokens", "none"), without="patch"),
    *(IdleRule(name, "pooling", acts=("attention",)) for name in ("score", "query", "score_activation")),
    *(IdleRule(name, "head", idle=("tokens",)) for name in ("score", "query", "score_activation")),
    IdleRule("condition_dropout", "condition", idle=(None,)),
    IdleRule("auxiliary_dropout", "auxiliary", idle=(False,)),
    IdleRule("label_width", "head", acts=("label",)),
    IdleRule("mask_length", "mask_share", idle=(0.0,)),
    IdleRule("depth_dropout", "shortcut", idle=("none",)),
    IdleRule("feature_width", "stages", acts=(7,)),
    IdleRule("hop_score", "hops", idle=(1,)),
    *(IdleRule(name, "glimpses", idle=(None,)) for name in ("hidden", "stacked", "score")),
)
"""All that is known of such fields. `tests/models/test_idle_settings.py` tries each field of each preset."""


def idle_settings(config: Any) -> dict[str, IdleRule]:
    """The fields of a config that do nothing, and why."""
    found: dict[str, IdleRule] = {}
    for rule in RULES:
        if rule.is_idle(config):
            found.setdefault(rule.field, rule)
    return found


def check_settings_act(config: Any, changed: Iterable[str]) -> None:
    """Raise UserError where one of the fields that a user changed does nothing."""
    idle = idle_settings(config)
    for name in changed:
        if name in idle:
            other = idle[name].other
            raise UserError(
                f"architecture.{name} does nothing where {other} is {show_value(getattr(config, other))}: "
                f"leave it out, or change {other} too"
            )


def changed_fields(config: Any, before: Any) -> list[str]:
    """The fields in which two configs of one family differ."""
    return [part.name for part in fields(config) if getattr(config, part.name) != getattr(before, part.name, None)]
