"""Decoding with any model that is a `Generator` (`foveate.contracts`), and scoring of known outputs."""

from foveate.decoding.at_once import batches_at_once, decode_all
from foveate.decoding.beam import beam
from foveate.decoding.generation import ContinuousBatch, Generated, Pending, Writing, can_share, generate, write_alone
from foveate.decoding.greedy import greedy
from foveate.decoding.sampling import sample
from foveate.decoding.scoring import score, step_scores
from foveate.decoding.settings import Decoding, decode
from foveate.decoding.unmasking import Unmasking, unmask

__all__ = [
    "ContinuousBatch",
    "Decoding",
    "Generated",
    "Pending",
    "Unmasking",
    "Writing",
    "batches_at_once",
    "beam",
    "can_share",
    "decode",
    "decode_all",
    "generate",
    "greedy",
    "sample",
    "score",
    "step_scores",
    "unmask",
    "write_alone",
]
