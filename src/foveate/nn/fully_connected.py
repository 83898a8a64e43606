"""The fully connected layers that early convolutional networks end with."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.nn.dropout import Dropout


class FullyConnectedHead(nn.Module):
    """Averages a feature map to `side` x `side` places and classifies them by two hidden layers with dropout.

    AlexNet, ZFNet and VGG have it, with a side that the feature map of their own image size has. The average lets them
    read other sizes.
    """

    def __init__(self, width: int, side: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.side = side
        self.first = nn.Linear(width * side * side, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, classes)
        self.dropout = Dropout(dropout)

    def forward(self, grid: Float[Tensor, "B C h w"]) -> Float[Tensor, "B N"]:
        x = F.adaptive_avg_pool2d(grid, self.side).flatten(1)
        x = self.dropout(F.relu(self.first(x)))
        x = self.dropout(F.relu(self.second(x)))
        return self.output(x)
