"""torchvision's names for a GoogLeNet."""

from foveate.models.vision.googlenet import INCEPTIONS, GoogLeNetConfig

_STEM = {"0": "conv1", "3": "conv2", "4": "conv3"}

_BRANCHES = {
    "0.0": "branch1",
    "1.0": "branch2.0",
    "1.1": "branch2.1",
    "2.0": "branch3.0",
    "2.1": "branch3.1",
    "3.1": "branch4.1",
}

_AUXILIARY = {"4a": "aux1", "4d": "aux2"}


def torchvision(config: GoogLeNetConfig) -> dict[str, str]:
    """For the preset `googlenet-batch-norm`, which is the published one."""
    layers = {f"stem.{ours}": theirs for ours, theirs in _STEM.items()}
    for module in INCEPTIONS:
        for ours, theirs in _BRANCHES.items():
            layers[f"inceptions.{module}.branches.{ours}"] = f"inception{module}.{theirs}"
    names = {"output": "fc"}
    for ours, theirs in _AUXILIARY.items() if config.auxiliary else ():
        layers[f"auxiliary.{ours}.reduction"] = f"{theirs}.conv"
        names |= {f"auxiliary.{ours}.hidden": f"{theirs}.fc1", f"auxiliary.{ours}.output": f"{theirs}.fc2"}
    for ours, theirs in layers.items():
        names |= {f"{ours}.convolution": f"{theirs}.conv", f"{ours}.norm": f"{theirs}.bn"}
    return names
