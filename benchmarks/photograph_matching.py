"""A CLIP that tells which of 160 captions belongs to a photograph, on the maps of `photograph_captions.py`.

    python benchmarks/photograph_matching.py FLICKR8K --out runs/photographs

It learns the same pairs: captions with the map of their photograph, or of the one that is lent to them. Prints how
often the first caption of a test photograph fits best, and is among the five and ten that do; beside it the same for
the captions of the nearest photograph, by the cosine of their words.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import photograph_captions as captions
import torch
from torch import Tensor

import foveate
from foveate.contracts import Batch
from foveate.data.dataset import Dataset
from foveate.forms.caption_match import CaptionFit
from foveate.forms.form import Changes
from foveate.training import Training
from foveate.training.objectives.contrastive import Contrastive
from foveate.training.update import Updater

WIDTHS = {"embedding": 128, "width": 128, "image_positions": "none"}


def recall(scores: Tensor) -> list[float]:
    """In percent, how often the caption of a photograph is among the one, five and ten that fit best, (I, I)."""
    ranks = (scores > scores.diagonal()[:, None]).sum(1)
    return [100 * float((ranks < most).float().mean()) for most in (1, 5, 10)]


def fit(model: Any, writes: Any, part: captions.Photographs, directions: Tensor) -> Tensor:
    """How well each photograph fits the first caption of each."""
    with torch.inference_mode():
        images = model.eval().embed_images(captions.turn(part.maps, directions))
        texts = model.embed_captions(**writes.read([writes.prepare(one)[0] for one in part.examples]))
        return images @ texts.mT


def by_nearest(writes: Any, part: captions.Photographs, known: captions.Photographs) -> Tensor:
    """How well the captions of the nearest known photograph fit the first caption of each photograph."""
    near = [known.examples[number] for number in captions.find_nearest(part, known)]
    counted = [captions.count_words(writes, [tokens]) for one in known.examples for tokens in writes.prepare(one)]
    rare = captions.rarity(writes, np.stack(counted))
    own = np.stack([captions.count_words(writes, writes.prepare(one)) for one in near])
    asked = np.stack([captions.count_words(writes, writes.prepare(one)[:1]) for one in part.examples])
    return torch.from_numpy(captions.cosines(np.log1p(own) * rare, asked * rare))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/photographs"))
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    train, validation, test = captions.read_parts(asked.folder, asked.out)
    directions = captions.principal_directions(train.maps)
    text = captions.read_text(asked.folder, train)
    sizes = {**WIDTHS, "image_encoder": captions.STAND_IN}
    writes: Any = CaptionFit(vocabulary=captions.VOCABULARY)
    config = foveate.create("clip-tiny", **sizes, vocabulary=1, device="meta").config
    writes = writes.learn(Dataset("captions", [*train.examples, text], "images"), None, config)
    model: Any = foveate.create("clip-tiny", **sizes, vocabulary=len(writes.tokenizer))
    model.places.encoder = captions.KnownMaps(captions.DIRECTIONS)

    settings = Training(device="cpu", precision="float32", weight_decay=0.05)
    updater, begin, best = (
        Updater(model.train(), Contrastive(), settings),
        time.process_time(),
        (-1.0, model.state_dict()),
    )
    pairs = captions.photograph_batches(writes, train, text, directions, asked.batch, asked.seed)
    for step in range(1, asked.steps + 1):
        tokens, maps = next(pairs)
        inputs, targets, weight = writes.tensors(tokens, Changes(), None)
        rate = 1e-3 * captions.schedule(step, asked.steps)
        updater([Batch({"pixels": maps, **inputs}, targets, weight, "")], rate, step)
        if step % captions.EVERY == 0:
            found = sum(recall(fit(model, writes, validation, directions)))
            if found > best[0]:
                best = found, {name: value.clone() for name, value in model.state_dict().items()}
            model.train()
    model.load_state_dict(best[1])
    ways = {
        f"`clip-tiny`, {time.process_time() - begin:.0f} processor seconds": fit(model, writes, test, directions),
        "words of the nearest photograph's captions": by_nearest(writes, test, train),
    }
    print("| the caption of a photograph among 160 | first | in 5 | in 10 |\n| --- | ---: | ---: | ---: |")
    for name, scores in ways.items():
        print(f"| {name} | {' | '.join(f'{share:.1f}' for share in recall(scores))} |", flush=True)


if __name__ == "__main__":
    main()
