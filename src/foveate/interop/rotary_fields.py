"""Rotary positions in a `config.json`: their base, and how they were scaled for longer texts."""

import math
from typing import Any

from foveate.errors import UserError
from foveate.interop.layout import ConfigReader
from foveate.nn.rotary import RotaryScaling

KINDS = {name: name for name in ("default", "linear", "llama3", "yarn")}

KNOWN = (
    *("type", "rope_type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings"),
    *("low_freq_factor", "high_freq_factor", "beta_slow", "beta_fast", "truncate", "finetuned"),
    *("attention_factor", "mscale", "mscale_all_dim"),
)
"""The fields of the table that may be there."""

LENGTH = "original_max_position_embeddings"


def read_rotary(read: ConfigReader, base: float, length: int) -> dict[str, Any]:
    """Our fields of rotary positions, from "rope_parameters" or as older files have them; `base` and `length` are the
    model's usual ones. UserError for a kind that our models do not have."""
    scaled = read.inside("rope_scaling", "rope_parameters")
    scaled.only(KNOWN)
    kind = scaled.choice("rope_type" if scaled.has("rope_type") else "type", "default", KINDS)
    base = read.get("rope_theta", read.get("rotary_emb_base", base))
    fields: dict[str, Any] = {"rotary_base": float(scaled.get("rope_theta", base))}
    if kind == "default":
        return fields
    values: dict[str, Any] = {"kind": kind, "factor": scaled.get("factor", 0.0)}
    if kind != "linear":
        known = read.get("max_position_embeddings", length)
        values["original_length"] = read.get(LENGTH, scaled.get(LENGTH, known))
    if kind == "llama3":
        values |= {"low": scaled.get("low_freq_factor", 1.0), "high": scaled.get("high_freq_factor", 4.0)}
    if kind == "yarn":
        values |= {"low": scaled.get("beta_slow", 0.0) or 1.0, "high": scaled.get("beta_fast", 0.0) or 32.0}
        values |= {"whole": scaled.get("truncate", True), "size": _yarn_size(scaled, values["factor"])}
    try:
        return {**fields, "rotary_scaling": RotaryScaling(**values)}
    except UserError as error:
        raise read.error(error) from None


def read_share(read: ConfigReader, default: float) -> float:
    """The share of each head's width that turns."""
    older = read.get("rotary_pct", read.get("partial_rotary_factor", default))
    return float(read.inside("rope_scaling", "rope_parameters").get("partial_rotary_factor", older))


def _yarn_size(scaled: ConfigReader, factor: float) -> float:
    """How much queries and keys grow by, which a file may say in several ways."""
    parts = scaled.get("mscale", 0.0), scaled.get("mscale_all_dim", 0.0)
    over, under = (0.1 * part * math.log(max(factor, 1.0)) + 1 for part in (parts if all(parts) else (1.0, 0.0)))
    return float(scaled.get("attention_factor", 0.0) or over / under)


def write_rotary(config: Any) -> dict[str, Any]:
    """The inverse of `read_rotary`, in fields that all versions of transformers read."""
    fields: dict[str, Any] = {"rope_theta": config.rotary_base}
    scaling: RotaryScaling | None = config.rotary_scaling
    if scaling is None:
        return fields
    values: dict[str, Any] = {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling.kind != "linear":
        values[LENGTH] = scaling.original_length
    if scaling.kind == "llama3":
        values |= {"low_freq_factor": scaling.low, "high_freq_factor": scaling.high}
    if scaling.kind == "yarn":
        values |= {"beta_slow": scaling.low, "beta_fast": scaling.high, "attention_factor": scaling.size}
        values["truncate"] = scaling.whole
    return {**fields, "rope_scaling": values}
