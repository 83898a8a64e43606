"""How a model gives whole texts labels, whether it was trained here or comes from a Hugging Face folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from foveate.contracts import Picture, Tokenizer
from foveate.data import text_batches
from foveate.data.text.batches import surroundings
from foveate.errors import one_line
from foveate.forms.checks import check_positions
from foveate.sight import look
from foveate.tasks.answers.labelling import choose_label
from foveate.tasks.examples.text_task import TOKENS_TOGETHER
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


def label_texts(
    model: nn.Module, tokenizer: Tokenizer, labels: Mapping[str, int], texts: Sequence[str]
) -> list[Decision]:
    """The decision about each text; an empty one gets no label. Raises TextError for one that is too long to read."""
    device = next(model.parameters()).device
    places = [place for place, text in enumerate(texts) if text.strip()]
    tokens = tokenizer.encode([texts[place] for place in places])
    begin, end = surroundings(tokenizer)
    check_positions(model, texts, zip(places, map(len, tokens), strict=True), len(begin) + len(end))
    found = [Decision(text, "", 0.0) for text in texts]
    for rows, inputs in text_batches(tokens, tokenizer, TOKENS_TOGETHER):
        with torch.inference_mode():
            logits = model(**{name: value.to(device) for name, value in inputs.items()}).logits
        for row, shares in zip(rows, logits[:, 0].float().softmax(-1).tolist(), strict=True):
            place = places[row]
            found[place] = Decision(texts[place], *choose_label(labels, shares))
    return found


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
