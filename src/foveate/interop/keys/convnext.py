"""timm's names for a ConvNeXt: `convnext_tiny` and the others."""

from foveate.models.vision.convnext import ConvNeXtConfig

_BRANCH = {"convolution": "conv_dw", "norm": "norm", "inner": "mlp.fc1", "outer": "mlp.fc2", "scale": "gamma"}


def timm(config: ConvNeXtConfig) -> dict[str, str]:
    """For every ConvNeXt."""
    names = {"norm": "head.norm", "output": "head.fc"}
    for stage, count in enumerate(config.blocks):
        for part in range(2):
            names[f"reductions.{stage}.{part}"] = f"stages.{stage}.downsample.{part}" if stage else f"stem.{part}"
        for block in range(count):
            for ours, theirs in _BRANCH.items():
                names[f"stages.{stage}.{block}.branch.{ours}"] = f"stages.{stage}.blocks.{block}.{theirs}"
    return names
