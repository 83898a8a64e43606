"""torchvision's names for a VGG network."""

from foveate.models.vision.vgg import VGGConfig


def torchvision(config: VGGConfig) -> dict[str, str]:
    """For networks without batch norm."""
    names = {"head.first": "classifier.0", "head.second": "classifier.3", "head.output": "classifier.6"}
    number = 0
    for stage, count in enumerate(config.blocks):
        for layer in range(count):
            names[f"stages.{stage}.{layer}.0"] = f"features.{number}"
            number += 2  # ReLU is a module of its own
        number += 1  # max pooling
    return names
