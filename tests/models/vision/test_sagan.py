"""SAGAN against its equations written out, and where the gradient of each score goes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from foveate import create
from foveate.contracts import Batch
from foveate.errors import UserError
from foveate.training.objectives.adversarial import Hinge

SMALL = {"classes": 3, "channels": 2, "image_size": 12, "noise": 5, "generator": (8, 6, 4), "discriminator": (4, 6, 8)}
SMALL |= {"generator_attends_after": (1,), "discriminator_attends_after": (1,)}
NOISE = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
PIXELS = torch.randn(4, 2, 12, 12, generator=torch.Generator().manual_seed(2))
CLASSES = torch.tensor([0, 2, 1, 2])


def model(**changed: object) -> torch.nn.Module:
    torch.manual_seed(3)
    made = create(
        "sagan-tiny", **{**SMALL, "generator_attends_after": (1,), "discriminator_attends_after": (1,)} | changed
    )
    for name, parameter in made.named_parameters():
        if name.endswith(("scale", "shift", "bias")):
            torch.nn.init.normal_(parameter, std=0.5)
    return made


def spectral(w: dict[str, Tensor], name: str) -> Tensor:
    """A weight divided by its largest singular value."""
    weight = w[f"{name}.parametrizations.weight.original"]
    return weight / torch.linalg.matrix_norm(weight.flatten(1), 2)


class Naive:
    """Both networks in evaluation mode, from a table of weights."""

    def __init__(self, w: dict[str, Tensor]) -> None:
        self.w = w

    def layer(self, name: str, x: Tensor) -> Tensor:
        weight, bias = spectral(self.w, name), self.w.get(f"{name}.bias")
        return F.conv2d(x, weight, bias, padding=weight.shape[-1] // 2) if x.ndim == 4 else x @ weight.T + bias

    def norm(self, name: str, x: Tensor) -> Tensor:
        mean, variance = (self.w[f"{name}.running_{what}"][:, None, None] for what in ("mean", "var"))
        return (x - mean) / (variance + 1e-5).sqrt()

    def conditional(self, name: str, x: Tensor) -> Tensor:
        scale, shift = (self.w[f"{name}.{what}"][CLASSES][..., None, None] for what in ("scale", "shift"))
        return scale * self.norm(f"{name}.norm", x) + shift

    def attention(self, name: str, x: Tensor) -> Tensor:
        q, k, v = (self.layer(f"{name}.{part}", x).flatten(2) for part in ("query", "key", "value"))
        weights = torch.softmax(q.mT @ k, -1)
        found = (v @ weights.mT).unflatten(2, x.shape[2:])
        return x + self.w[f"{name}.scale"] * self.layer(f"{name}.output", found)

    def generate(self, noise: Tensor) -> Tensor:
        x = self.layer("generator.project", noise).view(4, 8, 3, 3)
        for number in range(2):
            name = f"generator.blocks.{number}"
            y = torch.relu(self.conditional(f"{name}.norms.0", x)).repeat_interleave(2, 2).repeat_interleave(2, 3)
            y = self.layer(
                f"{name}.second", torch.relu(self.conditional(f"{name}.norms.1", self.layer(f"{name}.first", y)))
            )
            x = y + self.layer(f"{name}.shortcut", x.repeat_interleave(2, 2).repeat_interleave(2, 3))
            x = self.attention("generator.attention.1", x) if number == 0 else x
        scale, shift = (self.w[f"generator.norm.{what}"][:, None, None] for what in ("weight", "bias"))
        return 2 * torch.tanh(
            self.layer("generator.output", torch.relu(scale * self.norm("generator.norm", x) + shift))
        )

    def score(self, x: Tensor) -> Tensor:
        for number in range(3):
            name = f"discriminator.blocks.{number}"
            y = self.layer(f"{name}.second", torch.relu(self.layer(f"{name}.first", torch.relu(x) if number else x)))
            x = F.avg_pool2d(y + self.layer(f"{name}.shortcut", x), 2, ceil_mode=True)
            x = self.attention("discriminator.attention.1", x) if number == 0 else x
        h = torch.relu(x).sum((2, 3))
        return self.layer("discriminator.output", h)[:, 0] + (
            spectral(self.w, "discriminator.embedding")[CLASSES] * h
        ).sum(1)


def test_both_networks_compute_what_their_equations_say() -> None:
    made = model().double()
    for _ in range(200):  # the power iteration of spectral norm converges, and batch norm has seen something
        made.generator(NOISE.double(), CLASSES)
        made.discriminator(PIXELS.double(), CLASSES)
    made.eval()
    naive = Naive({name: value.detach() for name, value in made.state_dict().items()})
    torch.testing.assert_close(
        made.generator(NOISE.double(), CLASSES), naive.generate(NOISE.double()), atol=1e-4, rtol=1e-3
    )
    found = made.discriminator(PIXELS.double(), CLASSES)[:, 0]
    torch.testing.assert_close(found, naive.score(PIXELS.double()), atol=1e-4, rtol=1e-3)


def test_each_loss_reaches_one_network_alone() -> None:
    made = model()
    output = made(PIXELS, CLASSES)
    parts = {"discriminator": output.logits.sum() + output.generated.sum(), "generator": output.judged.sum()}
    for own, score in parts.items():
        made.zero_grad()
        score.backward(retain_graph=True)
        reached = {name.split(".")[0] for name, p in made.named_parameters() if p.grad is not None and p.grad.any()}
        assert reached == {own}
    torch.testing.assert_close(output.generated, output.judged, atol=1e-2, rtol=1e-2)  # a power iteration apart


def test_the_hinge_loss_by_hand() -> None:
    output = model()(PIXELS, CLASSES)
    output.logits, output.generated, output.judged = (
        torch.tensor([[one], [other]]) for one, other in ((2.0, 0.5), (-0.5, -3.0), (4.0, -1.0))
    )
    loss = Hinge()(output, Batch({}, {}, torch.tensor([1, 1]), "rows"))
    assert float(loss.log["discriminator"]) == pytest.approx(0.5 + 0.5)
    assert float(loss.log["generator"]) == pytest.approx(-3.0)
    assert float(loss.log["told_apart"]) == 2
    assert {"scale_generator_attention_1", "scale_discriminator_attention_1"} <= loss.log.keys()


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(UserError, match="images of 13 pixels cannot be made by doubling 2 times"):
        model(image_size=13)
    with pytest.raises(UserError, match="generator_attends_after names block 3, but there are 2"):
        model(generator_attends_after=(3,))
