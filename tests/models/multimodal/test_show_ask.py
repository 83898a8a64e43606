"""Show, Ask, Attend, and Answer against its equations, written as plain loops over images, places and glimpses."""

import numpy as np
import torch

from foveate import create

SMALL = {"vocabulary": 17, "classes": 5, "channels": 2, "embedding": 5, "width": 7, "hidden": 6, "classifier": 11}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1))
QUESTIONS = torch.tensor([[4, 12, 6, 7], [8, 4, 0, 0]])
LENGTHS = torch.tensor([4, 2])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def answer(w: dict[str, np.ndarray], places: np.ndarray, words: list[int], glimpses: int | None) -> np.ndarray:
    """The logits for one image, whose places are (S, V), and one question."""

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return w[f"{name}.weight"] @ x + w.get(f"{name}.bias", 0.0)

    h = c = np.zeros(7)
    for word in words:
        x, cell = np.tanh(w["embedding.weight"][word]), "question.layer."
        gates = w[f"{cell}weight_ih_l0"] @ x + w[f"{cell}bias_ih_l0"] + w[f"{cell}weight_hh_l0"] @ h
        i, f, g, o = np.split(gates + w[f"{cell}bias_hh_l0"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    places = np.stack([place / np.linalg.norm(place) for place in places])
    seen = [places.mean(0)]
    if glimpses:
        seen = []
        for number in range(glimpses):
            # the hidden layer of the first glimpse is that of all
            query, direction = linear("glimpses.0.score.query", h), w[f"glimpses.{number}.score.direction"]
            scores = [direction @ np.maximum(query + linear("glimpses.0.score.key", place), 0) for place in places]
            weights = np.exp(scores) / np.exp(scores).sum()
            seen.append(weights @ places)
    return linear("output", np.maximum(linear("hidden", np.concatenate([h, *seen])), 0))


def check(preset: str, glimpses: int | None) -> None:
    torch.manual_seed(2)
    model = create(preset, **SMALL).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    places = model.places(PIXELS).detach().double().numpy()
    expected = [
        answer(weights, places[row], QUESTIONS[row, : LENGTHS[row]].tolist(), glimpses) for row in range(len(places))
    ]
    found = model(PIXELS, QUESTIONS, LENGTHS).logits[:, 0].detach().double()
    torch.testing.assert_close(found, torch.from_numpy(np.stack(expected)), atol=2e-5, rtol=2e-5)


def test_the_equations_of_the_paper() -> None:
    check("show-ask-tiny", 2)


def test_without_attention_the_mean_of_all_places_is_read() -> None:
    check("show-ask-mean-tiny", None)
