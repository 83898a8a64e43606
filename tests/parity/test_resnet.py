"""ResNet against torchvision's, and against the paper's counts and its argument about depth (He et al. 2016)."""

import pytest
import torch
from image_references import assert_same, torchvision
from torch import nn

from foveate import create
from foveate.interop.keys import resnet as keys

BLOCKS = {"basic": torchvision.models.resnet.BasicBlock, "bottleneck": torchvision.models.resnet.Bottleneck}


@pytest.mark.parametrize(
    ("block", "blocks"),
    [("basic", (1, 2, 1, 1)), ("bottleneck", (2, 1, 1, 1))],
)
def test_as_torchvision(block: str, blocks: tuple[int, ...]) -> None:
    model = create("resnet18", classes=7, block=block, blocks=blocks)
    reference = torchvision.models.ResNet(BLOCKS[block], list(blocks), num_classes=7)
    assert_same(model, reference, keys.torchvision(model.config), (37, 53))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet18", 11_689_512),
        ("resnet34", 21_797_672),
        ("resnet50", 25_557_032),
        ("resnet101", 44_549_160),
        ("resnet152", 60_192_808),
        # resnet34 without its three projections and their norms
        ("plain34", 21_797_672 - 64 * 128 - 128 * 256 - 256 * 512 - 2 * (128 + 256 + 512)),
    ],
)
def test_as_many_parameters_as_the_public_models(name: str, count: int) -> None:
    model = create(name, device="meta", classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@pytest.mark.parametrize(("blocks", "names"), [(3, ("resnet20", "plain20")), (9, ("resnet56", "plain56"))])
def test_as_many_layers_and_parameters_as_in_section_4_2(blocks: int, names: tuple[str, str]) -> None:
    """6 n + 2 layers with weights; shortcuts have none."""
    count = 9 * (3 * 16 + 2 * blocks * 16 * 16) + 2 * 16 * (2 * blocks + 1)
    for width in (32, 64):
        count += 9 * (width // 2 * width + (2 * blocks - 1) * width * width) + 2 * width * 2 * blocks
    count += 64 * 10 + 10
    for name in names:
        model = create(name, device="meta", classes=10)
        layers = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
        assert len(layers) == 6 * blocks + 2
        assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_the_padded_shortcut_by_hand() -> None:
    """Where a branch gives 0: every second place of what was there, and then channels of zeros."""
    model = create("resnet20", classes=5).eval()
    block = model.stages[1][0]
    nn.init.zeros_(block.branch[1].norm.weight)
    x = torch.rand(2, 16, 7, 5)
    y = block(x)
    assert torch.equal(y[:, :16], x[:, :, [0, 2, 4, 6]][:, :, :, [0, 2, 4]])
    assert y.shape == (2, 32, 4, 3)
    assert not y[:, 16:].any()


@pytest.mark.parametrize("name", ["resnet20", "plain20"])
def test_a_net_deepened_by_identity_layers_equals_the_shallower_one(name: str) -> None:
    """So a deeper net cannot be worse in principle. A residual block is the identity when its last norm multiplies by
    0, in training too. A plain block must copy each channel through both kernels, and is one only for fixed statistics.
    """
    shallow, deep = create(name, classes=5, blocks=(1, 2, 1)), create(name, classes=5, blocks=(3, 2, 1))
    pixels = torch.randn(7, 3, 13, 11)
    shallow(pixels)  # in training, so that the statistics are no longer 0 and 1
    missing, unexpected = deep.load_state_dict(shallow.state_dict(), strict=False)
    assert not unexpected
    assert {key[:11] for key in missing} == {"stages.0.1.", "stages.0.2."}
    with torch.no_grad():
        for block in deep.stages[0][1:]:
            if name == "resnet20":
                block.branch[1].norm.weight.zero_()
            else:
                for layer in block[0]:
                    nn.init.dirac_(layer.convolution.weight)
                    layer.norm.running_var.fill_(1 - layer.norm.eps)
    modes = (True, False) if name == "resnet20" else (False,)
    for training in modes:
        found, expected = deep.train(training)(pixels).logits, shallow.train(training)(pixels).logits
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
