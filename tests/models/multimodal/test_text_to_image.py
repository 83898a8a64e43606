"""The generator of images against a model written out naively, and what it may look at."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from foveate import create
from foveate.errors import UserError
from foveate.sight import look

SMALL = {"vocabulary": 17, "codes": 11, "side": 4, "embedding": 5, "width": 12, "heads": 3, "feedforward": 7}
IMAGE = torch.randint(12, (2, 16), generator=torch.Generator().manual_seed(1))
TOKENS, LENGTHS = torch.tensor([[1, 4, 12, 6, 7], [1, 8, 4, 0, 0]]), torch.tensor([5, 3])


def model(merge: int = 2) -> torch.nn.Module:
    torch.manual_seed(2)
    found = create("text-to-image-tiny", **SMALL, merge=merge, layers=2).eval()
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return found


def naive(w: dict[str, Tensor], image: list[int], words: list[int], merge: int) -> Tensor:
    """The logits of one image of 4 x 4 tokens for a caption without padding."""

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (12,), w[f"{name}.weight"], w[f"{name}.bias"])

    def attention(name: str, x: Tensor, source: Tensor) -> Tensor:
        q, k, v = linear(f"{name}.query", x), linear(f"{name}.key", source), linear(f"{name}.value", source)
        heads = []
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            heads.append(torch.softmax(q[:, part] @ k[:, part].T / 2, -1) @ v[:, part])
        return linear(f"{name}.output", torch.cat(heads, 1))

    def block(name: str, x: Tensor, source: Tensor) -> Tensor:
        y = norm(f"{name}.around_self.norm", x)
        x = x + attention(f"{name}.self", y, y)
        x = x + attention(f"{name}.cross", norm(f"{name}.around_cross.norm", x), source)
        y = norm(f"{name}.around_feedforward.norm", x)
        return x + linear(f"{name}.feedforward.outer", F.gelu(linear(f"{name}.feedforward.inner", y)))

    side = 4 // merge
    squares = [
        [image[4 * (merge * row + a) + merge * column + b] for a in range(merge) for b in range(merge)]
        for row in range(side)
        for column in range(side)
    ]
    embedded = torch.stack([w["image_embedding.weight"][square].reshape(-1) for square in squares])
    places = linear("merge", embedded) + w["image_positions.positions.table"]
    text = w["text_embedding.weight"][words] + w["text_positions.positions.table"][: len(words)]
    for layer in range(2):
        text = block(f"blocks.{layer}.text", text, norm(f"blocks.{layer}.places_norm", places))
        places = block(f"blocks.{layer}.image", places, norm(f"blocks.{layer}.words_norm", text))
    parts = torch.relu(linear("split", norm("norm", places)))
    logits = torch.empty(16, 11, dtype=places.dtype)
    for number, part in enumerate(parts):
        for inside, vector in enumerate(part.reshape(merge**2, 5)):
            row, column = divmod(number, side)
            a, b = divmod(inside, merge)
            logits[4 * (merge * row + a) + merge * column + b] = linear("output", vector)
    return logits


def test_it_computes_what_a_naive_model_computes() -> None:
    for merge in (1, 2):
        made = model(merge).double()
        weights = {name: value.detach() for name, value in made.state_dict().items()}
        found = made(IMAGE, TOKENS, LENGTHS).logits
        assert found.shape == (2, 16, 11)
        for row, length in enumerate(LENGTHS.tolist()):
            expected = naive(weights, IMAGE[row].tolist(), TOKENS[row, :length].tolist(), merge)
            torch.testing.assert_close(found[row], expected, atol=1e-9, rtol=1e-9)


def test_padding_of_a_caption_changes_nothing() -> None:
    made, other = model(), TOKENS.clone()
    other[1, 3:] = 9
    torch.testing.assert_close(made(IMAGE, TOKENS, LENGTHS).logits, made(IMAGE, other, LENGTHS).logits)


def test_words_look_at_places_and_places_at_words() -> None:
    made = model()
    with look(made) as sight:
        made(IMAGE, TOKENS, LENGTHS)
    assert sight["blocks.0.text.cross"].shape == (2, 3, 5, 4)
    assert sight["blocks.1.image.cross"].shape == (2, 3, 4, 5)
    assert float(sight["blocks.1.image.cross"].weights()[1, :, :, 3:].abs().max()) == 0


def test_a_side_that_cannot_be_merged() -> None:
    with pytest.raises(UserError, match="a side of 5 tokens cannot be merged by 2"):
        create("text-to-image-tiny", **{**SMALL, "side": 5})
