"""Recurrent captioners against the equations of Show, Attend and Tell, written as plain loops over images and steps."""

import numpy as np
import pytest
import torch
from torch import Tensor

from foveate import create
from foveate.contracts import GridEncoder
from foveate.decoding import beam
from foveate.errors import UserError
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.models.vision.image_encoder import image_encoder
from foveate.special_tokens import LEARNED

Vector = np.ndarray

SMALL = {"vocabulary": 17, "channels": 2, "embedding": 5, "width": 7, "dropout": 0.0}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1))
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 11, 3]])


def captioner(preset: str = "show-attend-tell-tiny", **values: object) -> torch.nn.Module:
    torch.manual_seed(2)
    model = create(preset, **{**SMALL, **values}).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    return model


def sigmoid(x: Vector) -> Vector:
    return 1 / (1 + np.exp(-x))


class Equations:
    """A captioner that reads its numbers from a model's parameters and shares none of its code."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.w = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def linear(self, name: str, x: Vector) -> Vector:
        return self.w[f"{name}.weight"] @ x + self.w.get(f"{name}.bias", 0.0)

    def lstm(self, x: Vector, h: Vector, c: Vector) -> tuple[Vector, Vector]:
        layer = "decoder.recurrent.layer"
        of_input = self.w[f"{layer}.weight_ih_l0"] @ x + self.w[f"{layer}.bias_ih_l0"]
        of_state = self.w[f"{layer}.weight_hh_l0"] @ h + self.w[f"{layer}.bias_hh_l0"]
        i, f, g, o = np.split(of_input + of_state, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def attend(self, h: Vector, places: Vector, hard: bool) -> tuple[Vector, Vector]:
        score = "decoder.score"
        scores = [
            self.w[f"{score}.direction"]
            @ np.tanh(self.linear(f"{score}.query", h) + self.linear(f"{score}.key", place))
            for place in places
        ]
        weights = np.exp(scores) / np.exp(scores).sum()
        if hard:
            weights = np.eye(len(weights))[weights.argmax()]
        return sigmoid(self.linear("decoder.gate", h)) * (weights @ places), weights

    def logits(self, places: Vector, words: list[int], hard: bool = False) -> tuple[Vector, Vector]:
        """The logits of all steps, and the sum of the weights over them."""
        h, c = (np.tanh(self.linear(f"first.{number}", places.mean(0))) for number in (0, 1))
        found, received = [], 0
        for word in words:
            x = self.w["embedding.weight"][word]
            context, weights = self.attend(h, places, hard)
            h, c = self.lstm(np.concatenate([x, context]), h, c)
            both = self.linear("decoder.combine", np.concatenate([h, context])) + self.linear("decoder.word", x)
            found.append(self.linear("output", np.tanh(both)))
            received = received + weights
        return np.stack(found), received

    def logits_without_attention(self, places: Vector, words: list[int]) -> Vector:
        h, c = (np.tanh(self.linear(f"first.{number}", places.mean(0))) for number in (0, 1))
        fixed, found = self.linear("decoder.fixed", h), []
        for word in words:
            h, c = self.lstm(np.concatenate([self.w["embedding.weight"][word], fixed]), h, c)
            found.append(self.linear("output", h))
        return np.stack(found)


def close(actual: Tensor, expected: list[Vector]) -> None:
    torch.testing.assert_close(actual.detach().double(), torch.from_numpy(np.stack(expected)), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("preset", ["show-attend-tell-tiny", "show-attend-tell-hard-tiny"])
def test_the_equations_of_the_paper(preset: str) -> None:
    model = captioner(preset)
    by_hand, places = Equations(model), model.places(PIXELS).detach().double().numpy()
    hard = model.config.select == "hard"
    expected = [by_hand.logits(*pair, hard=hard)[0] for pair in zip(places, TARGET.tolist(), strict=True)]
    close(model(PIXELS, TARGET).logits, expected)


def test_without_attention_the_mean_of_the_places_is_an_input_of_every_step() -> None:
    model = captioner("show-tell-tiny")
    by_hand, places = Equations(model), model.places(PIXELS).detach().double().numpy()
    expected = [by_hand.logits_without_attention(*pair) for pair in zip(places, TARGET.tolist(), strict=True)]
    close(model(PIXELS, TARGET).logits, expected)


def test_the_coverage_of_places_in_training_counts_no_padding() -> None:
    model = captioner(coverage=True)
    by_hand, places = Equations(model), model.places(PIXELS).detach().double().numpy()
    assert model(PIXELS, TARGET).coverage is None
    model.decoder.train()
    found = model(PIXELS, TARGET, torch.tensor([5, 3]))
    received = [by_hand.logits(places[0], TARGET[0].tolist())[1], by_hand.logits(places[1], TARGET[1, :3].tolist())[1]]
    close(found.coverage, received)
    close(found.coverage.sum(1), [np.array(5.0), np.array(3.0)])
    close(found.logits[0], [by_hand.logits(places[0], TARGET[0].tolist())[0]][0])


def test_each_place_has_its_row_and_column() -> None:
    torch.manual_seed(3)
    places = ImagePlaces("resnet-light", 2, 64, "sinusoidal").eval()
    grid, found = places.encoder.grid(PIXELS), places(PIXELS)
    assert grid.shape == (2, 96, 3, 4)
    row, column = 2, 1
    angles = [place / 10_000 ** (2 * i / 48) for place in (row, column) for i in range(24)]
    waves = torch.tensor([wave(angle) for angle in angles for wave in (np.sin, np.cos)], dtype=torch.float32)
    expected = places.join(torch.cat([grid[1, :, row, column], waves])).relu()
    torch.testing.assert_close(found[1, row * 4 + column], expected, atol=2e-5, rtol=2e-5)


def test_a_beam_of_one_image_among_others() -> None:
    model = captioner()
    together = beam(model, {"pixels": PIXELS}, LEARNED, 6, width=3)
    alone = beam(model, {"pixels": PIXELS[1:]}, LEARNED, 6, width=3)
    assert together[1][0].tokens == alone[0][0].tokens


@pytest.mark.parametrize("name", ["vgg16", "googlenet-small-images", "vit-light", "resnet20"])
def test_an_image_encoder_has_nothing_that_only_classifies(name: str) -> None:
    encoder = image_encoder(name, channels=3, image_size=32)
    assert isinstance(encoder, GridEncoder)
    grid = encoder.grid(torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(4)))
    assert grid.shape[:2] == (1, encoder.grid_width)
    grid.sum().backward()
    idle = [key for key, value in encoder.named_parameters() if value.grad is None]
    assert idle == []


def test_a_model_of_text_is_no_image_encoder() -> None:
    with pytest.raises(UserError, match=r"^rnn reads no images: it cannot be an image encoder$"):
        captioner(image_encoder="rnn")
