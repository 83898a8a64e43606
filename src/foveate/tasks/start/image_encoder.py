"""The image encoder of a trained model, for another model that has such an encoder."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from foveate.errors import UserError

PARTS = {"places.encoder": "places", "image_encoder": "image_encoder", "backbone": "backbone"}
"""Where models have their image encoder, and the part of the model that has also the layer that joins positions."""


def encoder_path(names: Mapping[str, object]) -> str | None:
    """Where the image encoder is among the names of a model's tensors; None where there is none of a larger model."""
    return next((path for path in PARTS if any(name.startswith(f"{path}.") for name in names)), None)


def fill_image_encoder(model: nn.Module, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Give a model the image encoder of another one, and, where both have it alike, the layer that joins positions.

    `tensors` are those of the other model, which are in `folder`. Raises UserError where its encoder does not fit.
    """
    state = model.state_dict()
    own, other = encoder_path(state), encoder_path(tensors)
    if own is None or other is None:
        raise UserError(f"{folder} and the model have no image encoder in common")
    wanted, given = _below(state, own), _below(tensors, other)
    for name, tensor in wanted.items():
        if name not in given:
            raise UserError(f"{folder} has no tensor '{name}' of an image encoder: it is another one than the model's")
        if given[name].shape != tensor.shape:
            shapes = f"{tuple(given[name].shape)}, but {tuple(tensor.shape)} in the model"
            raise UserError(f"{folder}: '{name}' of the image encoder is {shapes}: give the model its sizes")
    taken = {f"{own}.{name}": given[name] for name in wanted}
    further = {f"{PARTS[own]}.{name}": tensor for name, tensor in _below(tensors, PARTS[other]).items()}
    taken |= {name: one for name, one in further.items() if name in state and state[name].shape == one.shape}
    model.load_state_dict(state | taken)


def _below(tensors: Mapping[str, Tensor], path: str) -> dict[str, Tensor]:
    """The tensors of a part of a model, by their names in it."""
    return {name.removeprefix(f"{path}."): one for name, one in tensors.items() if name.startswith(f"{path}.")}
