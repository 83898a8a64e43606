"""CLIP: captions are read up to their own end, and each image is compared with each caption."""

import torch

from foveate import create
from foveate.contracts import IGNORE, Batch, Output
from foveate.training.objectives.contrastive import Contrastive

SMALL = {"vocabulary": 17, "channels": 2, "embedding": 10, "width": 12, "heads": 3, "layers": 2}
PIXELS = torch.randn(3, 2, 17, 23, generator=torch.Generator().manual_seed(1))
TOKENS = torch.tensor([[1, 4, 12, 2], [1, 8, 2, 0], [1, 9, 2, 0]])
LENGTHS = torch.tensor([4, 3, 3])


def test_logits_are_scaled_cosines() -> None:
    torch.manual_seed(2)
    model = create("clip-tiny", **SMALL).eval()
    images, captions = model.embed_images(PIXELS), model.embed_captions(TOKENS, LENGTHS)
    torch.testing.assert_close(images.norm(dim=1), torch.ones(3))
    found = model(PIXELS, TOKENS, LENGTHS).logits
    for row in range(3):
        for column in range(3):
            cosine = torch.cosine_similarity(images[row], captions[column], 0)
            torch.testing.assert_close(found[row, column], cosine / 0.07)


def test_what_stands_behind_the_end_of_a_caption_changes_nothing() -> None:
    torch.manual_seed(2)
    model = create("clip-tiny", **SMALL).eval()
    other = TOKENS.clone()
    other[1:, 3] = 7
    torch.testing.assert_close(model.embed_captions(TOKENS, LENGTHS), model.embed_captions(other, LENGTHS))


def test_the_contrastive_loss_by_hand() -> None:
    """Without equal captions it is the mean of both cross-entropies; equal captions belong to each other's images."""
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(3))
    places = torch.arange(3)
    batch = Batch({}, {"labels": places[:, None]}, torch.ones(3, dtype=torch.long), "rows")
    entropy = torch.nn.functional.cross_entropy
    expected = (entropy(logits, places, reduction="sum") + entropy(logits.mT, places, reduction="sum")) / 2
    torch.testing.assert_close(Contrastive()(Output(logits), batch).total, expected)
    equal = Batch({}, {"labels": torch.zeros(3, 1, dtype=torch.long)}, batch.weight, "rows")
    torch.testing.assert_close(Contrastive()(Output(logits), equal).total, torch.tensor(0.0), atol=1e-6, rtol=0)
    assert IGNORE not in equal.labels
