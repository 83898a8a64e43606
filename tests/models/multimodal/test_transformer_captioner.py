"""The Transformer captioner: the translator's decoder, with the places of an image as its source."""

import torch

from foveate import create
from foveate.attention import sinusoidal

SMALL = {"width": 12, "heads": 3, "feedforward": 11, "decoder_layers": 2, "dropout": 0.0, "norm": "pre"}
PIXELS = torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(1))
TARGET = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 11, 3]])


def test_it_is_the_decoder_of_a_translator_over_patches() -> None:
    torch.manual_seed(2)
    model = create("vit-captioner-tiny", vocabulary=17, **SMALL).eval()
    translator = create("transformer-tiny", src_vocab=5, tgt_vocab=17, encoder_layers=1, **SMALL).eval()
    shared = {
        "target_embedding" + name[len("embedding") :] if name.startswith("embedding") else name: value
        for name, value in model.state_dict().items()
        if name.startswith(("embedding", "decoder", "output"))
    }
    assert translator.load_state_dict(shared, strict=False).unexpected_keys == []
    grid = model.image_encoder.grid(PIXELS)
    assert grid.shape == (2, 128, 2, 3)
    places = torch.stack([model.project(grid[:, :, row, column]) for row in (0, 1) for column in (0, 1, 2)], 1)
    translator.encode = lambda source, mask: places
    expected = translator(torch.zeros(2, 6, dtype=torch.long), torch.tensor([6, 6]), TARGET).logits
    torch.testing.assert_close(model(PIXELS, TARGET).logits, expected, atol=2e-5, rtol=0)


def test_places_of_a_cnn_have_the_waves_of_their_row_and_column() -> None:
    model = create("captioner-transformer-tiny", vocabulary=17, encoder_layers=None, **SMALL).eval()
    grid, places = model.image_encoder.grid(PIXELS), model.encode(PIXELS)
    assert grid.shape[2:] == (2, 3)
    waves = torch.cat([sinusoidal(2, 6)[1], sinusoidal(3, 6)[2]])
    torch.testing.assert_close(places[:, 5], model.project(grid[:, :, 1, 2]) + waves, atol=2e-5, rtol=0)
