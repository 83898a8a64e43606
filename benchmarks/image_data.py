"""How much of a training's time images take: preparing batches, and waiting for them.

    python benchmarks/image_data.py                      # resnet20 on fashion-mnist
    python benchmarks/image_data.py --data photos        # your own images: decoded first, then read from the cache

Trains for some steps, and prints the time of reading the images (the first and the second time), of preparing a batch
alone, of a step, and of waiting for the next batch, which a thread prepares during the step.
Exits with status 1 when training waits for more than 5 % of its time.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import torch

from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.images.labelled import labelled_images
from foveate.data.sources import open_source
from foveate.tasks.classify_image import TASK
from foveate.tasks.learning import Lesson
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

MOST = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    named = asked.data is None
    learn = open_source("fashion-mnist", task="classify-image").train if named else labelled_images([asked.data])
    lesson = Lesson(TASK, TASK.recipe(model=asked.model, size=asked.size, device="cpu"))
    processor = lesson.processor_of(learn)
    for number in ("first", "second"):
        begin = time.perf_counter()
        batches = BucketedBatches(OneBucket(learn, processor), asked.batch, 1)
        print(f"reading {len(learn):,} images, the {number} time: {time.perf_counter() - begin:.2f} s")
    begin = time.process_time()
    count = sum(1 for _ in itertools.islice(batches.epoch(0), 20))
    prepared = (time.process_time() - begin) / count
    model = lesson.model_of(processor.sizes()).train()
    update = Updater(model, CrossEntropy(), Training(device="cpu"))
    waited, steps, start = 0.0, 0, time.perf_counter()
    iterator = batches.epoch(1)
    while steps < asked.steps:
        begin = time.perf_counter()
        batch = next(iterator, None)
        if batch is None:
            iterator = batches.epoch(1)
            continue
        waited += time.perf_counter() - begin if steps else 0.0  # nothing is ahead of the first one
        update([batch], 1e-3, steps + 1)
        steps += 1
    total = time.perf_counter() - start
    print(f"preparing a batch of {asked.batch}: {1000 * prepared:.1f} ms of the processor")
    print(f"a step: {1000 * total / steps:.1f} ms; waiting for data: {100 * waited / total:.2f} % of the time")
    if waited > MOST * total:
        sys.exit(f"training waits for data for more than {100 * MOST:.0f} % of its time")


if __name__ == "__main__":
    main()
