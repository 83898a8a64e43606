"""Large parallel text in the cache: split and shuffled once, then streamed from one file for each part."""

import tempfile
from array import array
from pathlib import Path

import numpy as np

from foveate.data.sources.splits import Splits
from foveate.data.splits import sides
from foveate.data.text.parallel_corpus import ParallelText
from foveate.errors import UserError

PARTS = ("train", "dev", "test")


def write_parts(pairs: ParallelText, held_out: float, folder: Path) -> None:
    """Splits the pairs into `train.tsv`, `dev.tsv` and `test.tsv`; they are never held in memory.

    `held_out` of them are for dev, as many for test, and no sentence of one part stands in another. The order is random
    and always the same: training takes its batches from a stretch of the text, which should be like every other. What
    was left out of the pairs is listed in `report.txt`. Raises UserError when there are too few pairs.
    """
    ends = array("q", [0])
    with tempfile.TemporaryFile(dir=folder) as lines:
        for source, target in pairs:
            ends.append(ends[-1] + lines.write(f"{source}\t{target}\n".encode()))
        order = np.random.default_rng(0).permutation(len(ends) - 1)
        side = np.array(sides(pairs, held_out))
        if len(set(side.tolist())) < len(PARTS):
            raise UserError(f"{pairs.name}: {len(side)} pairs are too few to hold some out to validate and to test on")
        for part in PARTS:
            with (folder / f"{part}.tsv").open("wb") as file:
                for line in order[side[order] == part].tolist():
                    lines.seek(ends[line])
                    file.write(lines.read(ends[line + 1] - ends[line]))
    (folder / "report.txt").write_text(pairs.report + "\n", encoding="utf-8")


def read_parts(folder: Path, name: str) -> Splits[ParallelText]:
    """Reads what `write_parts` wrote."""
    texts = (ParallelText.from_tsv(folder / f"{part}.tsv", f"{name}.{part}") for part in PARTS)
    return Splits(*texts)
