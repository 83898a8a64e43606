"""What a model can begin from of one of another family: the words and layers that both have."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

PARTS_OF = {
    ("rnn-language", "rnn-encoder"): ("embedding.", "recurrent."),
    ("bert", "rnn-encoder"): ("embedding.",),
}
"""What the names of the tensors begin with that the second family takes from the first."""


def part_names(names: Iterable[str], parts: tuple[str, ...], body: Container[str]) -> list[str]:
    """The names of the tensors of these parts; layers that read backward stay as they are where the body has none."""
    return [name for name in names if name.startswith(parts) and (name in body or not name.endswith("_reverse"))]


def part_sizes(begun: str, config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recurrent encoder, which has these values, that the part of a trained model decides.

    `begun` and `config` are the family and the config of that model.
    """
    if begun != "rnn-language":
        return {"embedding": config.width}
    kept = {name: getattr(config, name) for name in ("embedding", "layers", "cell", "width")}
    if values.get("bidirectional", True):  # then layers above the first would read what no language model has
        kept |= {"layers": 1, "width": 2 * config.width}
    return kept
