"""A BERT-base that reads sentences, beside transformers.

    python benchmarks/sentences.py [--sentences 512] [--layers 12]

Sentences of 8 to 128 random tokens get a label. Ours are read as `foveate run` reads them, longest first; those of
transformers in batches of one size, in the order that they come and sorted by length, each at the best of some sizes.
Rounds alternate; times are CPU times of one thread, and the fastest round counts. The probabilities must be the same.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

import foveate
from foveate.forms.label import LabelAnswer, ShowLabels
from foveate.forms.public_text import TextRow
from foveate.tasks.skill import Skill

SHORTEST, LONGEST = 8, 128
BATCHES = (8, 16, 32, 64)

VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(5, 30522)))


def both(layers: int) -> tuple[Skill, nn.Module]:
    """The same random weights in foveate and in transformers."""
    torch.manual_seed(0)
    theirs = BertForSequenceClassification(BertConfig(num_hidden_layers=layers, num_labels=3)).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        (Path(folder) / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
        return foveate.load(folder), theirs  # type: ignore[return-value]


def sentences(count: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator).tolist()
    return [torch.randint(5, len(VOCABULARY), (length,), generator=generator).tolist() for length in lengths]


@torch.inference_mode()
def peer(model: nn.Module, rows: list[list[int]], batch: int, ordered: bool) -> Tensor:
    """The logits of transformers, in the order of the rows."""
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place])) if ordered else list(range(len(rows)))
    found = torch.empty(len(rows), model.config.num_labels)
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        some = [torch.tensor(rows[place]) for place in places]
        tokens = nn.utils.rnn.pad_sequence(some, batch_first=True)
        mask = nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in some], batch_first=True)
        found[places] = model(tokens, attention_mask=mask).logits
    return found


def fastest(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The fastest of the alternating rounds of each way, in seconds."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    skill, theirs = both(given.layers)
    rows = sentences(given.sentences)
    texts = [TextRow(np.array(row)) for row in rows]
    answers: list[LabelAnswer] = skill.answer_prepared(texts, ShowLabels())  # warms up, too
    shares = torch.tensor([[*one.probabilities.values()] for one in answers])
    apart = (shares - peer(theirs, rows, BATCHES[0], True).softmax(-1)).abs().max()
    ways: dict[str, Callable[[], object]] = {"foveate": lambda: skill.answer_prepared(texts, ShowLabels())}
    for ordered in (True, False):
        for batch in BATCHES:
            name = f"transformers, {'sorted' if ordered else 'unsorted'}, batches of {batch}"
            ways[name] = lambda batch=batch, ordered=ordered: peer(theirs, rows, batch, ordered)  # type: ignore[misc]
    best = fastest(ways, given.rounds)
    tokens = sum(map(len, rows))
    print(f"{len(rows)} sentences, {tokens:,} tokens; probabilities differ by {float(apart):.1e} at most")
    print("| | seconds | sentences/s | foveate's time against it |\n| --- | ---: | ---: | ---: |")
    for name, seconds in best.items():
        ratio = seconds / best["foveate"]
        print(f"| {name} | {seconds:.2f} | {len(rows) / seconds:.1f} | {ratio:.2f} |")
    assert apart < 1e-3, "the same weights give other probabilities"


if __name__ == "__main__":
    main()
