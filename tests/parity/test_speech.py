"""Models of sound against transformers' and against the papers' equations: the same numbers from the same weights."""

import pytest
import torch
import transformers
from image_references import rename
from torch import Tensor, nn

from foveate import create
from foveate.attention import sinusoidal
from foveate.interop.keys import audio_transformer as audio_keys
from foveate.interop.keys import speech_transformer as speech_keys


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def randomize(model: nn.Module) -> nn.Module:
    """Random numbers for all parameters: norms that start at 1 and biases at 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.uniform_(-0.4, 0.4)
    return model.eval()


def load(reference: nn.Module, theirs: dict[str, Tensor]) -> None:
    assert theirs.keys() == reference.state_dict().keys()
    reference.load_state_dict(theirs)


def assert_same_gradients(model: nn.Module, reference: nn.Module, names: dict[str, str]) -> None:
    gradients = {name: parameter.grad for name, parameter in reference.named_parameters(remove_duplicate=False)}
    own = {name: parameter.grad for name, parameter in model.named_parameters(remove_duplicate=False)}
    for name, gradient in rename(own, names).items():
        assert_same(gradient, gradients[name])


def test_speech_transformer_as_transformers() -> None:
    """Positions are ours in both: theirs are in another order of channels."""
    sizes = {"d_model": 12, "vocab_size": 17, "encoder_layers": 2, "decoder_layers": 3, "conv_channels": 10}
    heads = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in HEADS.items()}
    config = transformers.Speech2TextConfig(**sizes, **heads, input_feat_per_channel=7, dropout=0.0)
    reference = randomize(transformers.Speech2TextForConditionalGeneration(config))
    for side in (reference.model.encoder, reference.model.decoder):
        table = side.embed_positions.weights
        table[2:] = sinusoidal(len(table) - 2, 12).to(table)
    ours = {"bands": 7, "vocabulary": 17, "width": 12, "heads": 3, "feedforward": 11, "convolution": 10}
    model = randomize(create("speech-transformer", **ours, encoder_layers=2, decoder_layers=3, dropout=0.0))
    names = speech_keys.transformers(model.config)
    load(reference, rename(model.state_dict(), names))
    sound, tokens = torch.randn(3, 23, 7, dtype=torch.float64), torch.randint(4, 17, (3, 5))
    found = model(sound, torch.full((3,), 23), tokens).logits
    expected = reference(input_features=sound, decoder_input_ids=tokens).logits
    assert_same(found, expected)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_same_gradients(model, reference, names)


HEADS = {"attention_heads": 3, "ffn_dim": 11}


@pytest.mark.parametrize("frames", [29, 41])
def test_audio_transformer_as_transformers(frames: int) -> None:
    config = transformers.ASTConfig(
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=11,
        patch_size=5,
        frequency_stride=3,
        time_stride=3,
        max_length=frames,
        num_mel_bins=13,
        num_labels=7,
    )
    reference = randomize(transformers.ASTForAudioClassification(config))
    sizes = {"classes": 7, "bands": 13, "frames": frames, "patch": 5, "stride": 3, "epsilon": 1e-12}
    model = randomize(create("audio-transformer", **sizes, width=12, heads=3, feedforward=11, layers=2))
    key_map = audio_keys.key_map(model.config)
    theirs = key_map.to_public(model.state_dict())
    load(reference, theirs)
    back = key_map.to_ours(theirs)
    assert back.keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(back[name], value)
    sound = torch.randn(3, frames, 13, dtype=torch.float64)
    found, expected = model(sound.mT[:, None]).logits, reference(sound).logits
    assert_same(found, expected)
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in reference.named_parameters()}
    own = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, gradient in key_map.to_public(own).items():
        assert_same(gradient, gradients[name])


class Speller:
    """The equations of Listen, Attend and Spell, section 3.2, for one sound; it reads a model's weights."""

    def __init__(self, model: nn.Module) -> None:
        self.state = model.state_dict()
        self.layers, self.score = model.config.layers, model.config.score
        self.radius = model.config.window_radius if model.config.select == "local" else None

    def linear(self, name: str, x: Tensor) -> Tensor:
        bias = self.state.get(f"{name}.bias")
        y = self.state[f"{name}.weight"] @ x
        return y if bias is None else y + bias

    def cell(self, layer: int, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        name, state = "speller.recurrent.layer", self.state
        gates = state[f"{name}.weight_ih_l{layer}"] @ x + state[f"{name}.bias_ih_l{layer}"]
        gates = gates + state[f"{name}.weight_hh_l{layer}"] @ h + state[f"{name}.bias_hh_l{layer}"]
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def energy(self, query: Tensor, key: Tensor) -> Tensor:
        if self.score == "biaffine":
            return key @ self.state["speller.score.weight"] @ query
        hidden = self.linear("speller.score.query", query) + self.linear("speller.score.key", key)
        return self.state["speller.score.direction"] @ hidden.tanh()

    def advance(self, query: Tensor) -> float:
        """How far a local window moves."""
        number = self.linear("speller.window.advance.2", self.linear("speller.window.advance.0", query).tanh())
        return float(number.exp().log1p())

    def write(self, encoded: Tensor, characters: list[int]) -> Tensor:
        context = torch.zeros_like(encoded[0])
        state = [(torch.zeros_like(context), torch.zeros_like(context))] * self.layers
        logits, centre = [], 0.0
        for character in characters:
            x = torch.cat([self.state["embedding.weight"][character], context])
            for layer in range(self.layers):
                state[layer] = self.cell(layer, x, *state[layer])
                x = state[layer][0]
            energies = torch.stack([self.energy(x, key) for key in encoded])
            if self.radius is not None:
                centre = min(centre + self.advance(x), len(encoded) - 1)
                for place in range(len(encoded)):
                    energies[place] -= 2 * (place - centre) ** 2 / self.radius**2
                    if abs(place - centre) > self.radius:
                        energies[place] = -torch.inf
            context = energies.softmax(0) @ encoded
            hidden = self.linear("speller.combine", torch.cat([x, context])).tanh()
            logits.append(self.linear("output", hidden))
        return torch.stack(logits)


@pytest.mark.parametrize(("score", "select"), [("biaffine", "soft"), ("additive", "soft"), ("biaffine", "local")])
def test_las_as_its_equations(score: str, select: str) -> None:
    """The listener has a test of its own, of `PyramidalEncoder`."""
    sizes = {"bands": 7, "vocabulary": 17, "width": 12, "embedding": 10, "pyramids": 2}
    sizes |= {"window_radius": 2} if select == "local" else {}
    model = randomize(create("las", **sizes, score=score, select=select))
    sound, lengths = torch.randn(3, 23, 7, dtype=torch.float64), torch.tensor([23, 14, 9])
    tokens = torch.randint(4, 17, (3, 5))
    with torch.no_grad():
        found = model(sound, lengths, tokens).logits
        encoded, ends = model.listener(sound, lengths)
        for row in range(3):
            expected = Speller(model).write(encoded[row, : ends[row]], tokens[row].tolist())
            assert_same(found[row], expected)


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_as_many_parameters_as_the_public_models() -> None:
    """transformers' defaults are MIT's model for AudioSet and S2T's small model for LibriSpeech."""
    with torch.device("meta"):
        audio = transformers.ASTForAudioClassification(transformers.ASTConfig(num_labels=527))
        speech = transformers.Speech2TextForConditionalGeneration(transformers.Speech2TextConfig())
    sizes = {"classes": 527, "bands": 128, "frames": 1024}
    assert parameters(create("audio-transformer", device="meta", **sizes)) == parameters(audio)
    assert parameters(create("speech-transformer", device="meta", bands=80, vocabulary=10_000)) == parameters(speech)
