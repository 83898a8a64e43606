"""The scores of attention by the names that configs and flags have for them."""

import torch

from foveate.attention import Additive, Biaffine, Dot, ScaledDot, Score
from foveate.errors import UserError, one_of

SCORES = ("additive", "dot", "scaled-dot", "biaffine")


def make_score(name: str, query_width: int, key_width: int, activation: str = "tanh") -> Score:
    """The score of queries and keys of these widths. The additive one is as wide as the queries, and `activation` is
    the name in torch of its function g.

    Raises UserError for a name that there is not, and for a dot product of different widths.
    """
    one_of("score", name, SCORES)
    if name == "additive":
        return Additive(query_width, key_width, query_width, getattr(torch, activation))
    if name == "biaffine":
        return Biaffine(query_width, key_width)
    if query_width != key_width:
        raise UserError(
            f"a dot product needs states and source of the same width, not {query_width} and {key_width}; "
            "make `embedding` equal to `width`, or use the additive or biaffine score"
        )
    return Dot() if name == "dot" else ScaledDot()
