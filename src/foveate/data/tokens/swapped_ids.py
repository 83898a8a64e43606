"""A tokenizer two of whose tokens have changed their numbers, for programs that give a number a meaning of its own."""

import json
from typing import Any

from tokenizers import Tokenizer

from foveate.data.tokens.library import copy_of
from foveate.files import parse_json


def with_swapped_ids(tokenizer: Tokenizer, first: int, second: int) -> Tokenizer:
    """The tokenizer with the numbers of two tokens exchanged, also where it puts them around texts."""
    table, swapped = parse_json(tokenizer.to_str(), "a tokenizer"), {first: second, second: first}
    words = table["model"]["vocab"]
    if isinstance(words, dict):
        table["model"]["vocab"] = {word: swapped.get(number, number) for word, number in words.items()}
    else:  # of a unigram model, whose numbers are places
        words[first], words[second] = words[second], words[first]
        if (unknown := table["model"].get("unk_id")) is not None:
            table["model"]["unk_id"] = swapped.get(unknown, unknown)
    for token in table["added_tokens"]:
        token["id"] = swapped.get(token["id"], token["id"])
    table["added_tokens"].sort(key=lambda token: token["id"])
    table["post_processor"] = _swapped(table["post_processor"], swapped)
    return copy_of(tokenizer, json.dumps(table))


def _swapped(value: Any, swapped: dict[int, int]) -> Any:
    """A part of a post-processor with other numbers: lists of ids, and pairs of a token and its number."""
    if isinstance(value, dict):
        return {
            name: [swapped.get(number, number) for number in part] if name == "ids" else _swapped(part, swapped)
            for name, part in value.items()
        }
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
        return [value[0], swapped.get(value[1], value[1])]
    return [_swapped(part, swapped) for part in value] if isinstance(value, list) else value
