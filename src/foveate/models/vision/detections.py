"""What a detector found: a class and a box for each of its queries, layer by layer."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Output


@dataclass(kw_only=True)
class Detections(Output):
    """The detections of Q queries: logits (B, Q, N), of no object last, and a box."""

    boxes: Float[Tensor, "B Q 4"]
    """Centre x, centre y, width and height, as shares of the image's width and height."""
    earlier: tuple["Detections", ...] = ()
    """The same of the decoder's earlier layers, to train them too."""
    denoised: "Detections | None" = None
    """The same of the denoising queries: Q is groups times objects."""
    places: "Detections | None" = None
    """In training, the same of all places of the feature maps, several of which learn each object."""


def detections(layers: list[tuple[Tensor, Tensor]], queries: int) -> Detections:
    """The logits and boxes of all layers as one output, those of denoising queries apart."""
    parts = []
    for logits, boxes in layers:
        noisy = Detections(logits=logits[:, queries:], boxes=boxes[:, queries:]) if logits.shape[1] > queries else None
        parts.append(Detections(logits=logits[:, :queries], boxes=boxes[:, :queries], denoised=noisy))
    *earlier, last = parts
    last.earlier = tuple(earlier)
    return last
