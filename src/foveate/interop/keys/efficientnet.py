"""timm's names for an EfficientNet-Lite: `tf_efficientnet_lite0` and the others."""

from foveate.models.vision.efficientnet import EXPANSIONS, STRIDES, EfficientNetConfig

_LAYERS = "conv_pw", "conv_dw", "conv_pwl"

_LAYERS_WITHOUT_EXPANSION = "conv_dw", "conv_pw"


def timm(config: EfficientNetConfig) -> dict[str, str]:
    """A block's layers have a name more where they are added to its input."""
    names = {"stem.convolution": "conv_stem", "stem.norm": "bn1", "output": "classifier"}
    names |= {"features.convolution": "conv_head", "features.norm": "bn2"}
    width = config.stem_width
    for stage, (count, outer) in enumerate(zip(config.blocks, config.widths, strict=True)):
        for block in range(count):
            added = width == outer and (block > 0 or STRIDES[stage] == 1)
            branch = f"stages.{stage}.{block}" + (".branch" if added else "")
            layers = _LAYERS if EXPANSIONS[stage] > 1 else _LAYERS_WITHOUT_EXPANSION
            for number, layer in enumerate(layers):
                names[f"{branch}.{number}.convolution"] = f"blocks.{stage}.{block}.{layer}"
                names[f"{branch}.{number}.norm"] = f"blocks.{stage}.{block}.bn{number + 1}"
            width = outer
    return names
