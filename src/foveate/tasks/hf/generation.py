"""What `generation_config.json` says of a model that reads a text and writes another: obeyed, or refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.decoding import Decoding
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError, show_value
from foveate.files import read_json
from foveate.interop.layout import ConfigReader
from foveate.tasks.hf.translation_tokenizers import single_id

GENERATION = "generation_config.json"

REFUSED: dict[str, tuple[Any, ...]] = {
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0.0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1.0),
    "exponential_decay_length_penalty": (None,),
    "sequence_bias": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "guidance_scale": (None, 1, 1.0),
    "typical_p": (None, 1.0),
    "epsilon_cutoff": (None, 0.0),
    "eta_cutoff": (None, 0.0),
    "top_h": (None,),
    "penalty_alpha": (None, 0.0),
    "renormalize_logits": (None, False),
    "stop_strings": (None,),
    "dola_layers": (None,),
    "watermarking_config": (None,),
}
"""Settings that foveate does not obey, each with the values that change nothing."""

ENDS_BY_FORCE = ("bart", "mbart", "marian", "pegasus")
"""Models that end at the greatest length where their `config.json` is silent on it."""

EARLY = {True: "yes", False: "no", None: "no", "never": "never"}


@dataclass
class Generation:
    """How a folder's model is asked to write."""

    values: Mapping[str, Any]
    """Those of `config.json`, and of `generation_config.json` where there is one."""
    decoding: Decoding
    rules: TokenRules


def read_generation(folder: Path, part: Mapping[str, Any] | None = None, fixed: bool = False) -> Generation:
    """`part` is the table in `config.json` of the part that writes, which says what the files do not; `fixed`, its
    values count more than theirs. Raises UserError for a setting that foveate does not obey, or that cannot be."""
    where = folder / GENERATION
    config = _said(part or {}) | _said(read_json(folder / run_dir.CONFIG))
    values = read_json(where) if where.is_file() else _older(config)
    if fixed:
        values = {**values, **(part or {})}
    for name, idle in REFUSED.items():
        if values.get(name) not in idle:
            raise UserError(f"{where} has {name} {show_value(values[name])}, which foveate does not obey")
    read, merged = ConfigReader(values, str(where)), config | _said(values)
    rules = TokenRules(
        first=single_id(values, "forced_bos_token_id", folder),
        last=single_id(values, "forced_eos_token_id", folder),
        end=single_id(merged, "eos_token_id", folder),
        min_length=_min_length(read),
        no_repeat_ngram_size=read.get("no_repeat_ngram_size", 0),
        repetition_penalty=read.get("repetition_penalty", 1.0),
        never=_never(values, single_id(merged, "eos_token_id", folder), where),
        never_first=_ids(values.get("begin_suppress_tokens"), "begin_suppress_tokens", where),
    )
    decoding = _decoding(values, read, where)
    decoding.check()
    return Generation(merged, decoding, rules)


def _decoding(values: Mapping[str, Any], read: ConfigReader, where: Path) -> Decoding:
    beams, samples = read.get("num_beams", 1), read.get("do_sample", False)
    if samples and beams > 1:
        raise UserError(f"{where} has do_sample and num_beams {beams}: foveate samples without beams")
    early = values.get("early_stopping")
    if not (early is None or isinstance(early, bool) or early == "never"):
        raise UserError(f"{where} has early_stopping {show_value(early)}; it can be true, false or 'never'")
    found = Decoding(
        method="sample" if samples else "beam" if beams > 1 else "greedy",
        width=max(beams, 1),
        n_best=read.get("num_return_sequences", 1),
        early_stopping=EARLY[early],  # type: ignore[arg-type]
        max_new_tokens=read.get("max_new_tokens", None) or (read.get("max_length", 1) - 1 or None),
    )
    if beams > 1:
        found.length_penalty = _number(values, "length_penalty", 1.0, where)
    if samples:
        found.temperature, found.top_k = read.get("temperature", 1.0), read.get("top_k", 50) or None
        found.top_p, found.min_p = _number(values, "top_p", 1.0, where), _optional(values, "min_p", where)
    return found


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not null."""
    return {name: value for name, value in values.items() if value is not None}


def _min_length(read: ConfigReader) -> int:
    """Counted with the start token, which new tokens are not."""
    new = read.get("min_new_tokens", None)
    return read.get("min_length", 0) if new is None else new + 1


def _older(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the `config.json` of a folder without a file for them."""
    forced = {"forced_eos_token_id": config.get("eos_token_id")} if config.get("model_type") in ENDS_BY_FORCE else {}
    return forced | dict(config)


def _number(values: Mapping[str, Any], name: str, default: float, where: Path) -> float:
    value = values.get(name, default)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{where} has the {name} {show_value(value)}, which cannot be")
    return float(value)


def _optional(values: Mapping[str, Any], name: str, where: Path) -> float | None:
    return None if values.get(name) is None else _number(values, name, 0.0, where)


def _never(values: Mapping[str, Any], end: int | None, where: Path) -> tuple[tuple[int, ...], ...]:
    """Bad words, but for the end alone, and suppressed tokens."""
    words = values.get("bad_words_ids") or []
    if not isinstance(words, list):
        raise UserError(f"{where} has the bad_words_ids {show_value(words)}, which are not lists of tokens")
    found = [_ids(word, "bad_words_ids", where) for word in words]
    suppressed = _ids(values.get("suppress_tokens"), "suppress_tokens", where)
    return tuple(word for word in found if word and word != (end,)) + tuple((token,) for token in suppressed)


def _ids(value: Any, name: str, where: Path) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(type(one) is int and one >= 0 for one in value):
        raise UserError(f"{where} has the {name} {show_value(value)}, which are not tokens")
    return tuple(value)
