"""The decoder of detectors with deformable attention: each layer predicts classes and boxes, and the next one looks
around these boxes (Zhu et al. 2021, section 4.1)."""

from collections.abc import Callable, Iterable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.nn.deformable_attention import DeformableDecoderBlock
from foveate.nn.detection_layers import box_layers, class_logits
from foveate.nn.feature_maps import FeatureMaps

Positions = Callable[[Tensor], Tensor]
"""The positions of queries, from the points or boxes that they look around."""

CLOSE = 1e-5
"""How close to the edge of an image a box is before the sigmoid."""


class DeformableDecoder(nn.Module):
    """Layers with an output each; without `refines` all layers have one output, and look around the same points."""

    def __init__(self, blocks: Iterable[DeformableDecoderBlock], width: int, classes: int, refines: bool) -> None:
        super().__init__()
        self.blocks, self.refines = nn.ModuleList(blocks), refines
        outputs = range(len(self.blocks) if refines else 1)
        self.output = nn.ModuleList(class_logits(width, classes, no_object=False) for _ in outputs)
        self.box = nn.ModuleList(box_layers(width, corrects=True) for _ in outputs)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        maps: FeatureMaps,
        source: Float[Tensor, "B S C"],
        around: Float[Tensor, "B T D"],
        positions: Positions,
        mask: Bool[Tensor, "B 1 T T"] | None = None,
    ) -> list[tuple[Float[Tensor, "B T N"], Float[Tensor, "B T 4"]]]:
        """The logits and the boxes of each layer. `around` are points or boxes, as shares of the image."""
        layers = []
        for number, block in enumerate(self.blocks):
            own = number if self.refines else 0
            x = block(x, maps, source, around, positions(around), mask)
            boxes = corrected(self.box[own](x), around)
            layers.append((self.output[own](x), boxes))
            around = boxes.detach() if self.refines else around
        return layers


def corrected(change: Float[Tensor, "B T 4"], around: Float[Tensor, "B T D"]) -> Float[Tensor, "B T 4"]:
    """Points without a size, or boxes, after a change before the sigmoid."""
    known = around.logit(CLOSE)
    return (change + F.pad(known, (0, 4 - known.shape[-1]))).sigmoid()
