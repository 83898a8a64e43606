"""How much of the batches of a language model is padding.

python benchmarks/padding.py sotu
python benchmarks/padding.py sotu --words 400 --batch-tokens 8192
"""

import argparse

from foveate.tasks.examples.prose_text import LanguageText
from foveate.tasks.language import Language


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="prose by name: see `foveate data`")
    parser.add_argument("--words", type=int, default=LanguageText.passage_words)
    parser.add_argument("--batch-tokens", type=int, default=LanguageText.batch_tokens)
    asked = parser.parse_args()
    sizes = {"batch_tokens": asked.batch_tokens, "max_length": asked.batch_tokens - 1}
    task = Language(examples=LanguageText(asked.source, passage_words=asked.words, **sizes), model="gpt-tiny")
    train, _ = task.open()
    processor = task.fit(train)
    batches = list(task.batches(train, processor).epoch(0))
    places = sum(batch.inputs["tokens"].numel() for batch in batches)
    real = sum(int(batch.inputs["lengths"].sum()) for batch in batches)
    print(f"{train.report}: {real:,} tokens in {len(batches):,} batches, {1 - real / places:.2%} padding")


if __name__ == "__main__":
    main()
