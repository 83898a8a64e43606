"""torchvision's names for an AlexNet."""

from foveate.models.vision.alexnet import AlexNetConfig

_FEATURES = {0: 0, 4: 3, 8: 6, 10: 8, 12: 10}
"""torchvision has no layers of response normalization."""


def torchvision(config: AlexNetConfig) -> dict[str, str]:
    """For the preset `alexnet-one-tower`, which is the published one."""
    names = {f"features.{ours}": f"features.{theirs}" for ours, theirs in _FEATURES.items()}
    return names | {"head.first": "classifier.1", "head.second": "classifier.4", "head.output": "classifier.6"}
