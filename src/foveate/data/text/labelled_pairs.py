"""Pairs of texts with a label each, read together by one encoder: `[CLS] a [SEP] b [SEP]` (Devlin et al. 2019)."""

from dataclasses import dataclass

from foveate.data.dataset import Dataset
from foveate.data.table import FIRST, LABEL, SECOND
from foveate.data.text.files import Paths
from foveate.data.text.preferences import read_pairs


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
    return read_pairs(paths, LabelledPair, (LABEL, FIRST, SECOND))
