"""How a model gives whole texts labels, whether it was trained here or comes from a Hugging Face folder."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from foveate.contracts import Picture, Tokenizer
from foveate.data.text.batches import surroundings
from foveate.errors import one_line
from foveate.sight import look
from foveate.tasks.protocols import START_SIGN, ModelInputs
from foveate.viewer import Alignment, plot_alignments


@dataclass
class Decision:
    """What a classifier says about a text."""

    text: str
    label: str
    """The most probable label; empty for a text without any character to read."""
    probability: float
    """Its probability."""
    probabilities: dict[str, float] = field(default_factory=dict)
    """That of every label."""

    @property
    def line(self) -> str:
        """The label, a tab, and its probability."""
        return f"{one_line(self.label)}\t{self.probability:.3f}" if self.label else ""


def read_whole_text(model: nn.Module, tokenizer: Tokenizer, text: str) -> ModelInputs:
    """What a model is given to read a text as a whole, and names of its places."""
    (tokens,) = tokenizer.encode([text])
    begin, end = surroundings(tokenizer)
    ids, device = [*begin, *tokens, *end], next(model.parameters()).device
    inputs: dict[str, Tensor] = {
        "tokens": torch.tensor([ids], device=device),
        "lengths": torch.tensor([len(ids)], device=device),
    }
    pieces = tokenizer.pieces(ids) if end else [START_SIGN, *tokenizer.pieces(tokens)]
    return ModelInputs(inputs, pieces, len(pieces))


def plot_decision(model: nn.Module, reading: ModelInputs, decision: Decision) -> Picture | None:
    """Where a model looked in a text when it decided, as one row; None if it does not attend.

    That is the last site: the pooling, or the last layer of an encoder whose first place (or mean) decides.
    """
    with torch.inference_mode(), look(model) as sight:
        model(**reading.inputs)
    if not sight.sites:
        return None
    site = sight.sites[-1]
    heads = sight[site].weights()[0]
    weights = heads.mean(0)
    rows = weights[:1] if getattr(model.config, "pooling", None) == "first" else weights.mean(0, keepdim=True)
    title = site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads"
    label = f"{decision.label} {decision.probability:.2f}"
    return plot_alignments([Alignment(rows.cpu(), [label], reading.pieces, title)])
