"""A large text on its way to batches: time and memory of each step.

    python benchmarks/streaming.py gettext-debian+debian-descriptions+libreoffice-help-all

Memory is what the process holds after a step, and its peak so far, both beyond what it held once the library was there.
The last two steps are what resuming costs: skipping to the last batch of an epoch, by batches that have the text as
tokens already and by new ones, as in a new process.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from foveate.data.buckets import BucketedBatches
from foveate.data.sources import open_source
from foveate.data.tokens.tokenizers import train_bpe
from foveate.forms.processor import Processor
from foveate.forms.translation import SourceText, Translation

VOCABULARY, BATCH_TOKENS, LONGEST = 8000, 4096, 128


def held() -> int:
    """Bytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def step(name: str, before: int) -> Iterator[list[str]]:
    """Times what is done inside; what it appends to the list is told with it."""
    told: list[str] = []
    start, processor = time.perf_counter(), time.process_time()
    yield told
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    memory = f"{(held() - before) / 2**20:5.0f} MB held, {max(0, peak() - before) / 2**20:5.0f} MB at most"
    print(f"{name:32} {seconds:7.1f} s ({processor:6.1f} s of processor time)  {memory}  {' '.join(told)}", flush=True)


def main(name: str) -> None:
    before = held()
    with step("count", before) as told:
        text = open_source(name).train
        told.append(f"{text.check().kept:,} pairs")
    with step(f"learn {VOCABULARY:,} subwords", before):
        tokenizer = train_bpe(chain.from_iterable(text), VOCABULARY)

    def batches() -> BucketedBatches:
        reads = SourceText(tokenizer=tokenizer, max_length=LONGEST)
        pairs = reads.buckets(text, Processor(reads, Translation(tokenizer=tokenizer)))
        return BucketedBatches(pairs, BATCH_TOKENS, seed=1)

    first = batches()
    for epoch in (0, 1):
        with step(f"epoch {epoch + 1}", before) as told:
            tokens = [batch.total_weight for batch in first.epoch(epoch)]
            told.append(f"{sum(tokens):,} target tokens in {len(tokens):,} batches")
    for kind, some in (("same", first), ("new", None)):
        with step(f"skip to the last batch, {kind}", before):
            assert next((some or batches()).epoch(1, skip=len(tokens) - 1)).total_weight == tokens[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="text by name: see `foveate data`")
    main(parser.parse_args().source)
