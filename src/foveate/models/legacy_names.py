"""What families, their fields and their tensors were called in run folders of earlier versions."""

from typing import Any

FAMILIES = {
    "rnn-classifier": ("rnn-encoder", "text"),
    "rnn-tagger": ("rnn-encoder", "tokens"),
    "transformer-classifier": ("transformer-encoder", "text"),
    "transformer-tagger": ("transformer-encoder", "tokens"),
}
"""The family that each has become, and its head."""

OUTER = {"rnn-classifier": "reader."}
"""What names of tensors began with."""


def upgrade(description: dict[str, Any]) -> dict[str, Any]:
    """Returns this version's description of a model that an earlier version describes."""
    if description.get("family") not in [*FAMILIES]:
        return description
    family, head = FAMILIES[description["family"]]
    found = {**description, "family": family, "architecture": _fields(description.get("architecture"), head)}
    if isinstance(recipe := found.get("recipe"), dict):
        found["recipe"] = {**recipe, "architecture": _fields(recipe.get("architecture"), head)}
    return found


def _fields(architecture: Any, head: str) -> Any:
    if not isinstance(architecture, dict):
        return architecture
    return {"head": head, **{"classes" if name == "tags" else name: value for name, value in architecture.items()}}
