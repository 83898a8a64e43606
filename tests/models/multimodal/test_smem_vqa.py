"""The spatial memory network against its equations, written as plain loops over images, places, words and hops."""

import pytest
import torch
from torch import Tensor

from foveate import create, look

SMALL = {"vocabulary": 17, "classes": 5, "channels": 2, "width": 7, "longest": 3}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
QUESTIONS = torch.tensor([[4, 12, 6, 7, 4], [8, 4, 0, 0, 0]])
LENGTHS = torch.tensor([5, 2])


def softmax(scores: list[Tensor]) -> Tensor:
    weights = torch.stack(scores).exp()
    return weights / weights.sum()


def answer(w: dict[str, Tensor], places: Tensor, words: list[int], hops: int, scale: float) -> Tensor:
    """The logits for one image, whose places are (S, V), and one question."""

    def linear(name: str, x: Tensor) -> Tensor:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    vectors = [w["embedding.weight"][word] for word in words]
    question = w["question_bias"]
    for position, vector in enumerate(vectors):
        question = question + w["word_weights"][min(position, 2)] * vector
    best = [max(vector @ linear("hops.0.score.key", place) for vector in vectors) for place in places]
    evidence = [linear("evidence.0", place) for place in places]
    seen = question + softmax(best) @ torch.stack(evidence)
    for hop in range(1, hops):
        weights = softmax([scale * (seen @ known) for known in evidence])
        evidence = [linear(f"evidence.{hop}", place) for place in places]
        seen = seen + weights @ torch.stack(evidence)
    return linear("output", seen.clamp(min=0))


@pytest.mark.parametrize(("score", "hops"), [("dot", 2), ("scaled-dot", 2), ("scaled-dot", 1)])
def test_the_equations_of_the_paper(score: str, hops: int) -> None:
    torch.manual_seed(2)
    model = create("smem-vqa-tiny", **SMALL, hop_score=score, hops=hops).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    weights = dict(model.named_parameters())
    places = model.places(PIXELS)
    scale = 7**-0.5 if score == "scaled-dot" else 1.0
    expected = [answer(weights, places[row], QUESTIONS[row, : LENGTHS[row]].tolist(), hops, scale) for row in range(2)]
    found = model(PIXELS, QUESTIONS, LENGTHS).logits[:, 0]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-9, rtol=0)
    gradients = [torch.autograd.grad(one.square().sum(), [*weights.values()]) for one in (found, torch.stack(expected))]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-8)


def test_each_hop_is_a_site() -> None:
    torch.manual_seed(3)
    model = create("smem-vqa-tiny", **SMALL).double().eval()
    with torch.inference_mode(), look(model) as sight:
        model(PIXELS, QUESTIONS, LENGTHS)
    assert sight.sites == ["hops.0", "hops.1"]
    places = model.places(PIXELS).shape[1]
    for site in sight.sites:
        weights = sight[site].weights()
        assert weights.shape == (2, 1, 1, places)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 1, dtype=torch.float64))
