"""The recurrent translators against the papers' equations, written as plain loops over sentences, steps and words.

Sutskever et al. 2014 (one fixed vector), Bahdanau et al. 2015 (score before the step), Luong et al. 2015 (score after
it, with and without input feeding; local windows), Xu et al. 2015 (hard attention, as it is after training), Raffel et
al. 2017 (monotonic attention, likewise). The cells are PyTorch's, in numpy.
"""

import numpy as np
import pytest
import torch

from foveate import create

Vector = np.ndarray

SOURCES = [[4, 5, 6, 7, 8, 9, 2], [9, 16, 5, 2], [2]]
TARGETS = [[1, 4, 12, 6, 7], [1, 8, 4], [1, 9, 9, 4]]

WAYS = {
    "fixed, first": {"score": "none"},
    "fixed, every": {"score": "none", "fixed_vector": "every"},
    "bahdanau": {"score_from": "before"},
    "luong": {"score_from": "after"},
    "luong, fed": {"score_from": "after", "input_feeding": True},
}


def sigmoid(x: Vector) -> Vector:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"tanh": np.tanh, "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0)}


class Equations:
    """A translator that reads its numbers from a model's parameters and shares none of its code."""

    def __init__(self, weights: dict[str, torch.Tensor], config: dict) -> None:
        self.w = {name: value.double().numpy() for name, value in weights.items()}
        self.config = config

    def linear(self, name: str, x: Vector) -> Vector:
        return self.w[f"{name}.weight"] @ x + self.w.get(f"{name}.bias", 0.0)

    def cell(self, name: str, x: Vector, state: list[Vector]) -> list[Vector]:
        """One step of one layer; the state is (h), or (h, c) of an LSTM."""
        h = state[0]
        of_input = self.w[f"{name[0]}.weight_ih_{name[1]}"] @ x + self.w[f"{name[0]}.bias_ih_{name[1]}"]
        of_state = self.w[f"{name[0]}.weight_hh_{name[1]}"] @ h + self.w[f"{name[0]}.bias_hh_{name[1]}"]
        if self.config["cell"] == "vanilla":
            return [np.tanh(of_input + of_state)]
        if self.config["cell"] == "gru":
            (ri, zi, ni), (rh, zh, nh) = np.split(of_input, 3), np.split(of_state, 3)
            reset, update = sigmoid(ri + rh), sigmoid(zi + zh)
            return [(1 - update) * np.tanh(ni + reset * nh) + update * h]
        i, f, g, o = np.split(of_input + of_state, 4)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]

    def read(self, words: list[int]) -> tuple[list[Vector], list[list[Vector]]]:
        """The encoding of each word, and the last state of each layer."""
        if self.config["reverse_source"]:
            encoded, last = self.read_in_order(words[::-1])
            return encoded[::-1], last
        return self.read_in_order(words)

    def read_in_order(self, words: list[int]) -> tuple[list[Vector], list[list[Vector]]]:
        x = [self.w["source_embedding.weight"][word] for word in words]
        states = 2 if self.config["cell"] == "lstm" else 1
        if self.config["encoder"] == "embeddings":
            return x, [[sum(x) / len(x)] * states] * self.config["layers"]
        both, last = self.config["encoder"] == "bidirectional", []
        for layer in range(self.config["layers"]):
            forth, end = self.run(("encoder.layer", f"l{layer}"), x, states)
            if both:
                back, other = self.run(("encoder.layer", f"l{layer}_reverse"), x[::-1], states)
                forth = [np.concatenate(pair) for pair in zip(forth, back[::-1], strict=True)]
                end = [np.concatenate(pair) for pair in zip(end, other, strict=True)]
            x = forth
            last.append(end)
        return x, last

    def run(self, name: tuple[str, str], x: list[Vector], states: int) -> tuple[list[Vector], list[Vector]]:
        state = [np.zeros(self.w[f"{name[0]}.weight_hh_{name[1]}"].shape[1])] * states
        outputs = []
        for each in x:
            state = self.cell(name, each, state)
            outputs.append(state[0])
        return outputs, state

    def advance(self, x: Vector, state: list[list[Vector]]) -> list[list[Vector]]:
        """One step of the decoder's stack."""
        new = []
        for layer, own in enumerate(state):
            new.append(self.cell(("decoder.recurrent.layer", f"l{layer}"), x, own))
            x = new[-1][0]
        return new

    def context(self, query: Vector, encoded: list[Vector], step: int, place: int) -> tuple[Vector, int]:
        """What a step attends to, and the place where it stopped, of the one before (if it is monotonic)."""
        scores = np.array([self.score(query, key) for key in encoded])
        scores = scores + self.window(query, len(encoded), step)
        if self.config["select"] == "monotonic":
            ahead = [at for at in range(place, len(encoded)) if scores[at] + self.w["decoder.select.offset"] > 0]
            return (encoded[ahead[0]], ahead[0]) if ahead else (np.zeros_like(encoded[0]), place)
        if self.config["select"] == "hard":
            return encoded[int(scores.argmax())], place
        weights = np.exp(scores)
        return sum(weight * value for weight, value in zip(weights / weights.sum(), encoded, strict=True)), place

    def window(self, query: Vector, length: int, step: int) -> Vector:
        """What is added to the scores: -inf outside of the window; Luong et al., section 3.2."""
        places, radius = np.arange(length), self.config["window_radius"]
        if self.config["window"] == "none":
            return np.zeros(length)
        if self.config["window"] == "local-m":
            return np.where(abs(places - min(step, length - 1)) <= radius, 0.0, -np.inf)
        hidden = np.tanh(self.linear("decoder.window.place.0", query))
        centre = (length - 1) * sigmoid(self.linear("decoder.window.place.2", hidden)[0])
        bell = -((places - centre) ** 2) / (2 * (radius / 2) ** 2)
        return np.where(abs(places - centre) <= radius, bell, -np.inf)

    def score(self, query: Vector, key: Vector) -> float:
        kind = self.config["score"]
        if kind == "additive":
            g = {"tanh": np.tanh, "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0)}[
                self.config["score_activation"]
            ]
            hidden = g(self.linear("decoder.score.query", query) + self.linear("decoder.score.key", key))
            return self.w["decoder.score.direction"] @ hidden
        if kind == "biaffine":
            return key @ self.w["decoder.score.weight"] @ query
        return key @ query / (np.sqrt(len(query)) if kind == "scaled-dot" else 1)

    def bridge(self, part: Vector) -> Vector:
        return np.tanh(self.linear("bridge", part)) if self.config["bridge"] else part

    def readout(self, state: Vector, context: Vector, word: Vector) -> Vector:
        """Bahdanau et al., A.2.2: a maxout unit is the greater one of two neighbours in U s + V E y + C c."""
        if self.config["maxout"] is None:
            return np.tanh(self.linear("decoder.combine", np.concatenate([state, context])))
        pieces = self.linear("decoder.readout.pieces", np.concatenate([state, context, word]))
        return np.array([max(pieces[unit : unit + 2]) for unit in range(0, len(pieces), 2)])

    def translate(self, source: list[int], target: list[int]) -> Vector:
        """The logits after each target word."""
        encoded, last = self.read(source)
        state = [[self.bridge(part) for part in layer] for layer in last]
        fixed, fed = state[-1][0], np.zeros_like(state[-1][0])
        logits, place = [], 0
        for step, word in enumerate(target):
            x = self.w["target_embedding.weight"][word]
            if self.config["score"] == "none":
                every = self.config["fixed_vector"] == "every"
                state = self.advance(np.concatenate([x, self.linear("decoder.fixed", fixed)]) if every else x, state)
                answer = state[-1][0]
            elif self.config["score_from"] == "before":
                c, place = self.context(state[-1][0], encoded, step, place)
                state = self.advance(np.concatenate([x, c]), state)
                answer = self.readout(state[-1][0], c, x)
            else:
                state = self.advance(np.concatenate([x, fed]) if self.config["input_feeding"] else x, state)
                c, place = self.context(state[-1][0], encoded, step, place)
                answer = fed = np.tanh(self.linear("decoder.combine", np.concatenate([state[-1][0], c])))
            logits.append(self.linear("output", answer))
        return np.array(logits)


def compare(name: str = "rnn", **choices: object) -> None:
    """A padded batch of three sentences against each sentence by the equations, in double precision."""
    sizes = {"src_vocab": 17, "tgt_vocab": 13, "embedding": 10, "width": 12, "layers": 2}
    model = create(name, **{**sizes, **choices}).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    source, target = (
        torch.tensor([words + [0] * (max(map(len, side)) - len(words)) for words in side])
        for side in (SOURCES, TARGETS)
    )
    with torch.no_grad():
        found = model(source, torch.tensor([len(words) for words in SOURCES]), target).logits.numpy()
    equations = Equations(model.state_dict(), vars(model.config))
    for logits, words, translation in zip(found, SOURCES, TARGETS, strict=True):
        np.testing.assert_allclose(logits[: len(translation)], equations.translate(words, translation), atol=1e-8)


@pytest.mark.parametrize("cell", ["gru", "lstm", "vanilla"])
@pytest.mark.parametrize("way", WAYS)
def test_every_cell_in_every_way(way: str, cell: str) -> None:
    compare(cell=cell, **{"score": "additive", **WAYS[way]})


@pytest.mark.parametrize("score", ["additive", "dot", "scaled-dot", "biaffine"])
@pytest.mark.parametrize("way", ["bahdanau", "luong, fed"])
def test_every_score(way: str, score: str) -> None:
    compare(score=score, **WAYS[way])


@pytest.mark.parametrize("g", ["relu", "sigmoid"])
def test_every_function_of_the_additive_score(g: str) -> None:
    compare(score="additive", score_activation=g, **WAYS["bahdanau"])


@pytest.mark.parametrize("encoder", ["unidirectional", "embeddings"])
@pytest.mark.parametrize("way", ["fixed, every", "bahdanau", "luong"])
def test_every_encoder(way: str, encoder: str) -> None:
    compare(encoder=encoder, **{"score": "additive", **WAYS[way]})


@pytest.mark.parametrize("select", ["hard", "monotonic"])
@pytest.mark.parametrize("way", ["bahdanau", "luong", "luong, fed"])
def test_every_selection(way: str, select: str) -> None:
    compare(select=select, **{"score": "biaffine", **WAYS[way]})


@pytest.mark.parametrize("window", ["local-m", "local-p"])
@pytest.mark.parametrize("radius", [1, 2])
@pytest.mark.parametrize("way", ["bahdanau", "luong", "luong, fed"])
def test_every_window(way: str, radius: int, window: str) -> None:
    compare(window=window, window_radius=radius, **{"score": "additive", **WAYS[way]})


@pytest.mark.parametrize("select", ["hard", "monotonic"])
def test_a_window_with_a_choice(select: str) -> None:
    compare(window="local-p", window_radius=2, score="dot", select=select, score_from="before")


@pytest.mark.parametrize("way", WAYS)
def test_a_source_read_backwards(way: str) -> None:
    compare(reverse_source=True, encoder="unidirectional", cell="lstm", **{"score": "additive", **WAYS[way]})


@pytest.mark.parametrize("way", ["fixed, first", "luong, fed"])
def test_the_decoder_begins_in_the_state_of_the_encoder(way: str) -> None:
    compare(bridge=False, encoder="unidirectional", cell="lstm", **{"score": "biaffine", **WAYS[way]})


def test_maxout_and_an_encoder_of_another_width() -> None:
    compare(score="additive", score_from="before", maxout=7, encoder_width=14)


@pytest.mark.parametrize("name", ["sutskever-2014", "bahdanau-2015", "luong-2015"])
def test_presets_of_the_papers(name: str) -> None:
    compare(name, **({"maxout": 5, "encoder_width": 14} if name == "bahdanau-2015" else {}))
