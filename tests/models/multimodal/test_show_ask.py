"""Show, Ask, Attend, and Answer against its equations, written as plain loops over images, places and glimpses."""

import numpy as np
import pytest
import torch

from foveate import create

SMALL = {"vocabulary": 17, "classes": 5, "channels": 2, "embedding": 5, "width": 7, "hidden": 6, "classifier": 11}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1))
QUESTIONS = torch.tensor([[4, 12, 6, 7], [8, 4, 0, 0]])
LENGTHS = torch.tensor([4, 2])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def answer(w: dict[str, np.ndarray], places: np.ndarray, words: list[int], kind: dict[str, object]) -> np.ndarray:
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
    norm = np.linalg.norm if kind["place_norm"] == "length" else lambda place: np.sqrt((place**2).mean())
    places = np.stack([place / norm(place) for place in places])
    seen = [places.mean(0)]
    if kind["glimpses"]:
        asking, seen = h, []
        for number in range(2):
            if seen and kind["stacked"]:
                asking = asking + linear(f"after.{number - 1}", seen[-1])
            if kind["score"] == "scaled-dot":
                query, part = linear(f"glimpses.{number}.query", asking), f"glimpses.{number}.key"
                scores = [query @ linear(part, place) / np.sqrt(len(query)) for place in places]
            else:  # the hidden layer of the first glimpse is that of all
                query, direction = linear("glimpses.0.score.query", asking), w[f"glimpses.{number}.score.direction"]
                scores = [direction @ np.maximum(query + linear("glimpses.0.score.key", place), 0) for place in places]
            weights = np.exp(scores) / np.exp(scores).sum()
            seen.append(weights @ places)
    logits = linear("output", np.maximum(linear("hidden", np.concatenate([h, *seen])), 0))
    if not kind["product"]:
        return logits
    return logits + linear(
        "product.output", linear("product.question", h) * linear("product.seen", np.concatenate(seen))
    )


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("show-ask-tiny", {"place_norm": "length"}),
        ("show-ask-tiny", {}),
        ("show-ask-tiny", {"stacked": True, "place_norm": "length"}),
        ("show-ask-stacked-tiny", {}),
        ("show-ask-mean-tiny", {}),
    ],
)
def test_the_equations_of_the_paper(preset: str, changes: dict[str, object]) -> None:
    torch.manual_seed(2)
    model = create(preset, **SMALL, **changes).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    places = model.places(PIXELS).detach().double().numpy()
    kind = vars(model.config)
    expected = [answer(weights, places[row], QUESTIONS[row, : LENGTHS[row]].tolist(), kind) for row in range(2)]
    found = model(PIXELS, QUESTIONS, LENGTHS).logits[:, 0].detach().double()
    torch.testing.assert_close(found, torch.from_numpy(np.stack(expected)), atol=1e-4, rtol=2e-5)
