"""How good a model that draws is: what it predicts of hidden tokens, and how well its drawings fit their captions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.nn.functional import cross_entropy

from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.tasks.answers.drawings import BATCH, draw
from foveate.tasks.answers.judges import load_judge
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.match_image import AMONG, caption_ranks, embed_captions, embed_images, recall

DRAWN = 500
"""Captions that are drawn to be judged, at most."""


def hidden_token_losses(
    predictor: Predictor, examples: Sequence[CaptionedImage]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each image: the nats of its hidden tokens, how many are predicted right, and how many there are."""
    prepared = predictor.processor.prepare(Dataset("examples", examples))
    rows: list[np.ndarray] = []
    for begin in range(0, len(prepared), BATCH):
        batch = predictor.processor.batch(
            [prepared[row] for row in range(begin, min(begin + BATCH, len(prepared)))], None
        )
        logits, labels = predictor.forward(batch.inputs).logits.float().cpu(), batch.labels
        nats = cross_entropy(logits.mT, labels, ignore_index=IGNORE, reduction="none")
        parts = nats.sum(1), (logits.argmax(-1) == labels).sum(1), (labels != IGNORE).sum(1)
        rows.append(torch.stack([part.double() for part in parts]).numpy())
    nats, right, count = np.concatenate(rows, 1)
    return nats, right, count


def unigram_metrics(counts: np.ndarray, asked: np.ndarray) -> dict[str, float]:
    """The nats of tokens (N, T) for the counts (T, K) of each place, and how often the most frequent one is right."""
    log_probs = np.log(counts / counts.sum(1, keepdims=True))
    places = np.arange(asked.shape[1])
    right = asked == counts.argmax(1)
    return {"nats": float(-log_probs[places, asked].mean()), "accuracy": 100 * float(right.mean())}


def drawing_recall(predictor: Predictor, examples: Sequence[CaptionedImage], options: Any) -> dict[str, float]:
    """How often the matcher finds the caption of a drawing among 100.

    Beside it stand the same for the real images, and for drawings of other captions (`recall_1_shuffled`).
    """
    judge = load_judge(options.matcher, "match-image", "--matcher")
    chosen = examples[:DRAWN]
    captions = [one.captions[0] for one in chosen]
    tokens = draw(predictor, captions, options)
    pictures = [PIL.Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
                for pixels in predictor.processor.palette.decode(tokens)]  # fmt: skip
    texts = embed_captions(judge, captions)
    drawn, real = embed_images(judge, pictures), embed_images(judge, [one.read() for one in chosen])
    shuffled = _next_in_hundred(len(captions))
    ranks = {
        "": caption_ranks(drawn, texts, captions),
        "_shuffled": caption_ranks(drawn[shuffled], texts, captions),
        "_real_images": caption_ranks(real, texts, captions),
    }
    return {f"recall_1{name}": recall(found)["recall_1"] for name, found in ranks.items()}


def _next_in_hundred(count: int) -> list[int]:
    """For each drawing the number of the next one in its hundred."""
    found: list[int] = []
    for begin in range(0, count, AMONG):
        own = [*range(begin, min(begin + AMONG, count))]
        found += own[1:] + own[:1]
    return found
