"""Show, Ask, Attend, and Answer against its equations, written as plain loops over images, places and glimpses."""

import pytest
import torch
from torch import Tensor

from foveate import create

SMALL = {"vocabulary": 17, "classes": 5, "channels": 2, "embedding": 5, "width": 7, "hidden": 6, "classifier": 11}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
QUESTIONS = torch.tensor([[4, 12, 6, 7], [8, 4, 0, 0]])
LENGTHS = torch.tensor([4, 2])


def answer(w: dict[str, Tensor], places: Tensor, words: list[int], kind: dict[str, object]) -> Tensor:
    """The logits for one image, whose places are (S, V), and one question."""

    def linear(name: str, x: Tensor) -> Tensor:
        return w[f"{name}.weight"] @ x + w.get(f"{name}.bias", 0.0)

    h = c = torch.zeros(7, dtype=torch.float64)
    for word in words:
        x, cell = w["embedding.weight"][word].tanh(), "question.layer."
        gates = w[f"{cell}weight_ih_l0"] @ x + w[f"{cell}bias_ih_l0"] + w[f"{cell}weight_hh_l0"] @ h
        i, f, g, o = (gates + w[f"{cell}bias_hh_l0"]).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    norm = torch.linalg.norm if kind["place_norm"] == "length" else lambda place: (place**2).mean().sqrt()
    places = torch.stack([place / norm(place) for place in places])
    seen = [places.mean(0)]
    if kind["glimpses"]:
        asking, seen = h, []
        for number in range(2):
            if seen and kind["stacked"]:
                asking = asking + linear(f"after.{number - 1}", seen[-1])
            if kind["score"] == "scaled-dot":
                query, part = linear(f"glimpses.{number}.query", asking), f"glimpses.{number}.key"
                scores = [query @ linear(part, place) / len(query) ** 0.5 for place in places]
            else:  # the hidden layer of the first glimpse is that of all
                query, direction = linear("glimpses.0.score.query", asking), w[f"glimpses.{number}.score.direction"]
                scores = [direction @ (query + linear("glimpses.0.score.key", place)).clamp(min=0) for place in places]
            weights = torch.stack(scores).exp()
            weights = weights / weights.sum()
            seen.append(weights @ places)
    logits = linear("output", linear("hidden", torch.cat([h, *seen])).clamp(min=0))
    if not kind["product"]:
        return logits
    return logits + linear("product.output", linear("product.question", h) * linear("product.seen", torch.cat(seen)))


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
    sizes = {name: size for name, size in SMALL.items() if name != "hidden" or preset != "show-ask-mean-tiny"}
    model = create(preset, **sizes, **changes).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    weights = dict(model.named_parameters(remove_duplicate=False))
    places = model.places(PIXELS)
    kind = vars(model.config)
    expected = [answer(weights, places[row], QUESTIONS[row, : LENGTHS[row]].tolist(), kind) for row in range(2)]
    found = model(PIXELS, QUESTIONS, LENGTHS).logits[:, 0]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-9, rtol=0)
    parameters = [*model.parameters()]
    gradients = [torch.autograd.grad(one.square().sum(), parameters) for one in (found, torch.stack(expected))]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-8)
