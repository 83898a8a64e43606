"""How much of the batches of a language model or a translator is padding.

python benchmarks/padding.py sotu
python benchmarks/padding.py sotu --words 400 --batch 8192
python benchmarks/padding.py train.en train.fr --batch 2048
"""

import argparse
from pathlib import Path

from foveate.data.buckets import BucketedBatches
from foveate.forms.processor import Processor
from foveate.tasks import find_task
from foveate.tasks.task import open_examples

LENGTHS = {"tokens": "lengths", "source": "source_lengths", "target": "target_lengths"}
"""Which input tells the lengths of another."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help="prose by name (see `foveate data`), or two files of a translator")
    parser.add_argument("--words", type=int, help="words of a passage")
    parser.add_argument("--batch", type=int, help="tokens of a batch")
    asked = parser.parse_args()
    task = find_task("translate" if len(asked.data) == 2 else "language")
    batch = asked.batch or task.examples.batch
    if task.name == "language":
        words = asked.words or task.reads.passage_words
        own = {"model": "gpt-tiny", "source": asked.data[0], "passage_words": words, "max_length": batch - 1}
    else:
        files = tuple(map(Path, asked.data))
        own = {"model": "transformer-tiny", "data": files, "validation": files, "lowercase": True}
    recipe = task.recipe(batch=batch, **own)
    train, _ = open_examples(task, recipe)
    reads = recipe.reads.learn(train, recipe.architecture)
    processor = Processor(reads, recipe.writes.learn(train, reads, recipe.architecture))
    batches = list(BucketedBatches(reads.buckets(train, processor), batch, 1).epoch(0))
    for name, lengths in LENGTHS.items():
        rows = [one.inputs for one in batches if lengths in one.inputs]
        if rows:
            places, real = sum(one[name].numel() for one in rows), sum(int(one[lengths].sum()) for one in rows)
            print(f"{name}: {real:,} of {train.report} in {len(batches):,} batches, {1 - real / places:.2%} padding")


if __name__ == "__main__":
    main()
