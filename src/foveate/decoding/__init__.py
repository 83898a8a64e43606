"""Decoding with any model that is a `Generator` (`foveate.contracts`), and scoring of known outputs."""

from foveate.decoding.at_once import batches_at_once, decode_all
from foveate.decoding.beam import beam
from foveate.decoding.generation import Generated, generate
from foveate.decoding.greedy import greedy
from foveate.decoding.sampling import sample
from foveate.decoding.scoring import score, step_scores
from foveate.decoding.settings import Decoding, decode
from foveate.decoding.unmasking import Unmasking, unmask

__all__ = [
    "Decoding",
    "Generated",
    "Unmasking",
    "batches_at_once",
    "beam",
    "decode",
    "decode_all",
    "generate",
    "greedy",
    "sample",
    "score",
    "step_scores",
    "unmask",
]
