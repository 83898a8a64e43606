"""The rules that make weights of scores, by the names that configs and flags have for them."""

from typing import Literal

from foveate.attention import Entmax, Sigmoid, Soft, Sparsemax, Weighing

WeighingName = Literal["softmax", "sigmoid", "sparsemax", "entmax"]

WEIGHINGS: dict[WeighingName, Weighing] = {
    "softmax": Soft(),
    "sigmoid": Sigmoid(),
    "sparsemax": Sparsemax(),
    "entmax": Entmax(),
}
