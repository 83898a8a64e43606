"""Conversations that are packed into rows, beside rows of one conversation each: SmolLM2-135M learns both.

    python benchmarks/packing.py --conversations 200 --batch 2048

The data are names of emoji, one or several in a message, so that lengths differ as those of people do: few long, many
short. Each way gives batches of at most the same number of places; every fourth one is learned from. Prints the share
of places that are padding, and the tokens that are learned from in a second of the processor, in one process on one
thread, the ways in turn. That the loss is the same is tested (tests/tasks/test_conversations.py).
"""

import argparse
import json
import random
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from foveate.data.buckets import BucketedBatches
from foveate.data.sources import open_source
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

EVERY = 4
"""Of this many batches one is learned from."""

RATE = 1e-5


def write_conversations(path: Path, count: int) -> None:
    """Questions about one to some forty emoji, and their names in French."""
    draw = random.Random(1)
    pairs = [*islice(open_source("emoji", "en", "fr", task="translate").train, 1000)]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            chosen = draw.sample(pairs, min(40, 1 + int(draw.lognormvariate(0.5, 1.0))))
            sides = [", ".join(side) for side in zip(*chosen, strict=True)]
            said = [{"role": "user", "content": f"In French: {sides[0]}"}, {"role": "assistant", "content": sides[1]}]
            file.write(json.dumps({"messages": said}) + "\n")


def batches_of(data: Path, start: str, batch: int, pack: bool) -> tuple[BucketedBatches, Any]:
    recipe = find_task("language").recipe(data=data, validation=data, start=start, batch=batch, pack=pack)
    lesson = Lesson(find_task("language"), recipe)
    train, _ = lesson.open()
    processor = lesson.processor_of(train)
    return BucketedBatches(processor.reads.buckets(train, processor), batch, 1), lesson.model_of(processor.sizes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--start", default="smollm2")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    settings = Training(device="cpu", precision="float32", clip=None, weight_decay=0.0)
    with TemporaryDirectory() as folder:
        write_conversations(data := Path(folder) / "chats.jsonl", chosen.conversations)
        ways = {}
        for name, pack in (("one a row", False), ("packed", True)):
            batches, model = batches_of(data, chosen.start, chosen.batch, pack)
            ways[name] = [*batches.epoch(0)], Updater(model.train(), CrossEntropy(), settings)
    figures: dict[str, list[float]] = {name: [0.0, 0.0] for name in ways}
    plans = [[(name, batch, updater) for batch in batches[::EVERY]] for name, (batches, updater) in ways.items()]
    for turn in range(max(map(len, plans))):
        for name, batch, updater in (plan[turn] for plan in plans if turn < len(plan)):
            begin, own = time.process_time(), figures[name]
            updater([batch], RATE, turn + 1)
            own[0] += time.process_time() - begin
            own[1] += tokens_of(batch)
    print(f"{'':12} {'batches':>8} {'padding':>8} {'tokens a second':>16}")
    for name, (batches, _) in ways.items():
        places, tokens = (sum(map(count, batches)) for count in (places_of, tokens_of))
        seconds, learned = figures[name]
        print(f"{name:12} {len(batches):>8} {1 - tokens / places:>8.1%} {learned / seconds:>16.1f}")


def places_of(batch: Any) -> int:
    return int(batch.inputs["tokens"].numel())


def tokens_of(batch: Any) -> int:
    return int(batch.inputs["lengths"].sum())


if __name__ == "__main__":
    main()
