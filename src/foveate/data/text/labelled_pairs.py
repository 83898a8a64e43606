"""Pairs of texts with a label each, read together by one encoder: `[CLS] a [SEP] b [SEP]` (Devlin et al. 2019)."""

from dataclasses import dataclass

from foveate.data.dataset import Dataset
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.preferences import read_table


@dataclass(frozen=True)
class LabelledPair:
    """Two texts, and a label of both together."""

    place: str
    label: str
    first: str
    second: str

    def content(self) -> bytes:
        return f"{self.label}\0{self.first}\0{self.second}".encode()


def read_labelled_pairs(paths: Paths) -> Dataset[LabelledPair]:
    """Files of `label<TAB>first<TAB>second` on each line. Raises UserError, which names the line, for any other."""
    paths = as_paths(paths)
    wrong = "two tabs must part a label, a text and another text; none may be empty"
    return read_table(paths, lambda place, parts: LabelledPair(place, *parts), 3, wrong)
