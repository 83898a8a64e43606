"""What the folder of a public tokenizer says beside its vocabulary: in `tokenizer_config.json`, `added_tokens.json` and
`chat_template.jinja`.

A setting that changes tokens is obeyed as transformers does, or refused by its name.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from foveate.data.tokens.library import copy_of
from foveate.errors import UserError, show_value
from foveate.files import parse_json, read_json, read_text

CONFIG, ADDED = "tokenizer_config.json", "added_tokens.json"

TEMPLATE, TEMPLATE_FILE = "chat_template", "chat_template.jinja"
"""The setting with the template of a chat, and the file that has it instead in newer folders."""

NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Settings of a BERT's tokenizer, each with its name in the library's normalizer. Other tokenizers do not have them."""

REFUSED: dict[str, tuple[Any, ...]] = {
    "do_basic_tokenize": (False,),
    "split_special_tokens": (True,),
    "never_split": (),
}
"""Settings that change tokens and are not obeyed, each with the values that are refused; all but null where there are
none."""


def read_settings(folder: Path) -> dict[str, Any]:
    """What `tokenizer_config.json` holds, nothing where there is none, and the template in `chat_template.jinja`, which
    counts more, as in transformers."""
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    return config | ({TEMPLATE: read_text(folder / TEMPLATE_FILE)} if (folder / TEMPLATE_FILE).is_file() else {})


def obey_settings(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """The tokenizer as its folder says. Raises UserError, with the setting's name, for what cannot be obeyed."""
    config, where = read_settings(folder), str(folder / CONFIG)
    for name, values in REFUSED.items():
        if (value := config.get(name)) is not None and (not values or value in values):
            raise UserError(f"{where} has {name} {show_value(value)}, which foveate does not obey")
    _check_switches(config, where)
    table = parse_json(tokenizer.to_str(), where, strict=False)
    before = json.dumps(table)
    _normalize(table, config)
    _prefix(table, config, where)
    _surround(table, config, where, tokenizer)
    if json.dumps(table) != before:
        tokenizer = copy_of(tokenizer, json.dumps(table))
    _add_tokens(tokenizer, config, folder)
    return tokenizer


def _check_switches(config: Mapping[str, Any], where: str) -> None:
    for name in (*NORMALIZER, "add_prefix_space", "add_bos_token", "add_eos_token"):
        if not isinstance(value := config.get(name), bool | None):
            raise UserError(f"{where} has {name} {show_value(value)}, but it must be true or false")


def _normalize(table: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Lower case, accents and Chinese characters, which a BERT's tokenizer takes from the config."""
    normalizer = table.get("normalizer")
    if normalizer and normalizer["type"] == "BertNormalizer":
        for name, own in NORMALIZER.items():
            if name in config and (config[name] is not None or name == "strip_accents"):
                normalizer[own] = config[name]


def _prefix(table: dict[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Whether the first word of a text is like a word behind a space."""
    wanted, part = config.get("add_prefix_space"), table.get("pre_tokenizer") or {}
    if wanted is None:
        return
    if part.get("type") == "ByteLevel":
        part["add_prefix_space"] = wanted
    elif part.get("type") == "Metaspace":
        if wanted != (part.get("prepend_scheme") != "never"):
            part["prepend_scheme"] = ("always" if config.get("legacy") else "first") if wanted else "never"
    elif wanted != _has_prefix(table):
        raise UserError(f"{where} has add_prefix_space {wanted}, but its tokenizer does otherwise")


def _has_prefix(table: Mapping[str, Any]) -> bool:
    """Whether a part of the normalizer or of the pre-tokenizer puts a space before a text."""
    pre, normalizer = table.get("pre_tokenizer") or {}, table.get("normalizer") or {}
    parts = [*pre.get("pretokenizers", [pre]), *normalizer.get("normalizers", [normalizer])]
    return any(
        part.get("type") == "Prepend"
        or part.get("add_prefix_space")
        or (part.get("type") == "Metaspace" and part.get("prepend_scheme") != "never")
        for part in parts
    )


def _surround(table: dict[str, Any], config: Mapping[str, Any], where: str, tokenizer: Tokenizer) -> None:
    """The tokens at both ends of a text, where the config decides about them."""
    if "add_bos_token" not in config and "add_eos_token" not in config:
        return
    ends = [_end(config, name, where, tokenizer) for name in ("bos_token", "eos_token")]
    single, pair = list[Any](), list[Any]()
    for number, parts in ((0, (single, pair)), (1, (pair,))):
        for part in parts:
            text = {"Sequence": {"id": "AB"[number], "type_id": number}}
            before, behind = ([{"SpecialToken": {"id": one[0], "type_id": number}}] if one else [] for one in ends)
            part += [*before, text, *behind]
    tokens = {one[0]: {"id": one[0], "ids": [one[1]], "tokens": [one[0]]} for one in ends if one}
    template = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}
    known: Any = table.get("post_processor") or {}
    offsets = [one for one in known.get("processors", [known]) if one.get("type") == "ByteLevel"]
    table["post_processor"] = {"type": "Sequence", "processors": [*offsets, template]}


def _end(config: Mapping[str, Any], name: str, where: str, tokenizer: Tokenizer) -> tuple[str, int] | None:
    """The token at an end of a text and its number; None where the config wants none."""
    if not config.get(f"add_{name}"):
        return None
    value = config.get(name)
    token = value.get("content") if isinstance(value, Mapping) else value
    number = tokenizer.token_to_id(token) if isinstance(token, str) else None
    if number is None:
        raise UserError(f"{where} has add_{name} true, but the tokenizer has no {name}")
    return str(token), number


def _add_tokens(tokenizer: Tokenizer, config: Mapping[str, Any], folder: Path) -> None:
    """The tokens that were added to the vocabulary, under their numbers."""
    for number, token in sorted(_added(config, folder).items()):
        if (known := tokenizer.token_to_id(token.content)) is None:
            tokenizer.add_tokens([token])
            known = tokenizer.token_to_id(token.content)
        if known != number:
            raise UserError(
                f"{folder} adds the token {show_value(token.content)} as number {number:,}, but its vocabulary gives "
                f"it number {known:,}"
            )


def _added(config: Mapping[str, Any], folder: Path) -> dict[int, AddedToken]:
    """The added tokens that the files of a folder name. Raises UserError for what is none."""
    named: Any = read_json(folder / ADDED) if (folder / ADDED).is_file() else {}
    decoder: Any = config.get("added_tokens_decoder") or {}
    try:
        found = {int(number): AddedToken(str(token), normalized=False) for token, number in named.items()}
        for number, values in decoder.items():
            flags = {
                name: bool(values[name])
                for name in ("single_word", "lstrip", "rstrip", "normalized", "special")
                if name in values
            }
            found[int(number)] = AddedToken(str(values["content"]), **flags)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise UserError(f"{folder} has added tokens that are no table of tokens and numbers") from None
    return found


def default_template(config: Mapping[str, Any]) -> Any:
    """The chat template of a `tokenizer_config.json`; of several by name, the one that is called "default"."""
    text = config.get(TEMPLATE)
    if isinstance(text, list):
        return next((one.get("template") for one in text if isinstance(one, dict) and one.get("name") == "default"), "")
    return text
