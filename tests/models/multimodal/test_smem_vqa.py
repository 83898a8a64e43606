"""The spatial memory network against its equations, written as plain loops over images, places, words and hops."""

import numpy as np
import pytest
import torch

from foveate import create, look

SMALL = {"vocabulary": 17, "classes": 5, "channels": 2, "width": 7, "longest": 3}
PIXELS = torch.randn(2, 2, 19, 29, generator=torch.Generator().manual_seed(1))
QUESTIONS = torch.tensor([[4, 12, 6, 7, 4], [8, 4, 0, 0, 0]])
LENGTHS = torch.tensor([5, 2])


def softmax(scores: list[float]) -> np.ndarray:
    weights = np.exp(scores)
    return weights / weights.sum()


def answer(w: dict[str, np.ndarray], places: np.ndarray, words: list[int], hops: int) -> np.ndarray:
    """The logits for one image, whose places are (S, V), and one question."""

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    vectors = [w["embedding.weight"][word] for word in words]
    question = w["question_bias"].copy()
    for position, vector in enumerate(vectors):
        question += w["word_weights"][min(position, 2)] * vector
    best = [max(vector @ linear("hops.0.score.key", place) for vector in vectors) for place in places]
    evidence = [linear("evidence.0", place) for place in places]
    seen = question + softmax(best) @ np.stack(evidence)
    for hop in range(1, hops):
        weights = softmax([seen @ known for known in evidence])
        evidence = [linear(f"evidence.{hop}", place) for place in places]
        seen = seen + weights @ np.stack(evidence)
    return linear("output", np.maximum(seen, 0))


@pytest.mark.parametrize(("preset", "hops"), [("smem-vqa-tiny", 2), ("smem-vqa-one-hop-tiny", 1)])
def test_the_equations_of_the_paper(preset: str, hops: int) -> None:
    torch.manual_seed(2)
    model = create(preset, **SMALL).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("places"):
                parameter.normal_(std=0.5)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    places = model.places(PIXELS).detach().double().numpy()
    expected = [answer(weights, places[row], QUESTIONS[row, : LENGTHS[row]].tolist(), hops) for row in range(2)]
    found = model(PIXELS, QUESTIONS, LENGTHS).logits[:, 0].detach().double()
    torch.testing.assert_close(found, torch.from_numpy(np.stack(expected)), atol=2e-5, rtol=2e-5)


def test_each_hop_is_a_site() -> None:
    torch.manual_seed(3)
    model = create("smem-vqa-tiny", **SMALL).eval()
    with torch.inference_mode(), look(model) as sight:
        model(PIXELS, QUESTIONS, LENGTHS)
    assert sight.sites == ["hops.0", "hops.1"]
    places = model.places(PIXELS).shape[1]
    for site in sight.sites:
        weights = sight[site].weights()
        assert weights.shape == (2, 1, 1, places)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 1))
