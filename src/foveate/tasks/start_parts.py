"""What a model can begin from of one of another family: the words and layers that both have."""

from collections.abc import Iterable, Mapping
from typing import Any

PARTS_OF = {
    ("rnn-language", "rnn-classifier"): {"reader.embedding.": "embedding.", "reader.recurrent.": "recurrent."},
    ("bert", "rnn-classifier"): {"reader.embedding.": "embedding."},
}
"""Names of tensors of the second family, and of those of the first that they begin from."""


def part_names(names: Iterable[str], parts: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, str]:
    """The name of each tensor of a part in a model, and in the body that it begins from.

    Layers that read backward stay as they are where the body has none.
    """
    found = {}
    for name in names:
        for own, there in parts.items():
            place = there + name.removeprefix(own)
            if name.startswith(own) and not (name.endswith("_reverse") and place not in body):
                found[name] = place
    return found


def part_sizes(begun: str, config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recurrent classifier, which has these values, that the part of a trained model decides.

    `begun` and `config` are the family and the config of that model.
    """
    if begun != "rnn-language":
        return {"embedding": config.width}
    kept = {name: getattr(config, name) for name in ("embedding", "layers", "cell", "width")}
    if values.get("bidirectional", True):  # then layers above the first would read what no language model has
        kept |= {"layers": 1, "width": 2 * config.width}
    return kept
