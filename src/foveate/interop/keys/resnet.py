"""torchvision's names for a ResNet: `torchvision.models.resnet18` and the others."""

from foveate.models.vision.resnet import ResNetConfig


def torchvision(config: ResNetConfig) -> dict[str, str]:
    """For networks with projections, which are the published ones."""
    names = {"stem.0.convolution": "conv1", "stem.0.norm": "bn1", "output": "fc"}
    bottleneck = config.block == "bottleneck"
    for stage, count in enumerate(config.blocks):
        for block in range(count):
            ours, theirs = f"stages.{stage}.{block}", f"layer{stage + 1}.{block}"
            for layer in range(3 if bottleneck else 2):
                names[f"{ours}.branch.{layer}.convolution"] = f"{theirs}.conv{layer + 1}"
                names[f"{ours}.branch.{layer}.norm"] = f"{theirs}.bn{layer + 1}"
        if stage or bottleneck:
            names[f"stages.{stage}.0.shortcut.convolution"] = f"layer{stage + 1}.0.downsample.0"
            names[f"stages.{stage}.0.shortcut.norm"] = f"layer{stage + 1}.0.downsample.1"
    return names
