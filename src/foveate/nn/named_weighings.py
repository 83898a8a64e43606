"""The rules that make weights of scores, by the names that configs and flags have for them."""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

from foveate.attention import Entmax, Sigmoid, Soft, SoftmaxPlusOne, Sparsemax, TalkingHeads, TopK, Weighing

WeighingName = Literal["softmax", "softmax-plus-one", "sigmoid", "sparsemax", "entmax", "top-k"]


@runtime_checkable
class Named(Protocol):
    """The fields of a config that decide the rule."""

    weights: WeighingName
    top_keys: int
    heads: int

    @property
    def mixing(self) -> str: ...


WEIGHINGS: dict[WeighingName, Callable[[Named], Weighing]] = {
    "softmax": lambda config: Soft(),
    "softmax-plus-one": lambda config: SoftmaxPlusOne(),
    "sigmoid": lambda config: Sigmoid(),
    "sparsemax": lambda config: Sparsemax(),
    "entmax": lambda config: Entmax(),
    "top-k": lambda config: TopK(config.top_keys),
}


def weighing(config: Named) -> Weighing:
    """The rule that a config names, of heads that talk or that do not."""
    rule = WEIGHINGS[config.weights](config)
    return TalkingHeads(config.heads, rule) if config.mixing == "talking" else rule
