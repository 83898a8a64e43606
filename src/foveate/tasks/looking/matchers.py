"""A look at foveate's matchers, which read two texts separately."""

from collections.abc import Sequence

import torch

from foveate.errors import UserError
from foveate.forms.inputs import check_length, make_title, require_text
from foveate.forms.naming import token_names
from foveate.sight import look
from foveate.tasks.answers.pair_reading import QUERY, pair_inputs
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import SidePair


def look_at_pair(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
    """A look at both texts, given as `source<TAB>target` or as two lines: one learned query attends to each of them.

    Raises UserError for what is no pair, and for a model that does not attend.
    """
    text = require_text(given, predictor.name).strip("\r\n")
    lines = [line for line in text.splitlines() if line.strip()]
    if "\t" not in text:
        if len(lines) != 2:
            raise UserError(f"{predictor.name} reads two texts: separate them by a newline or a tab")
        text = "\t".join(lines)
    inputs, pieces = pair_inputs(predictor, text)
    for names_of_side, side in zip(pieces, ("the source", "the target"), strict=True):
        check_length(len(names_of_side), max_length, side)
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.model(**inputs)
    if not sight.sites:
        raise nothing_to_see(predictor, predictor.name)
    source, target = map(token_names, pieces)
    names: dict[str, SidePair] = {}
    for name in sight.sites:
        queries, keys = sight[name].shape[2:]
        # a shared encoder reads the target second; equal texts share a map
        naming = target if name.startswith("target_encoder") or name.endswith("#2") else source
        names[name] = (token_names([QUERY] * queries)(queries), naming(keys))
    notes = [predictor.name, f"Do they belong together? {predictor.run(text).probability:.4f}"]
    if predictor.longer_than_training([text]):
        notes.append("A text is longer than all training texts; the answer may be poor.")
    return LookResult(sight, names, make_title(text), [*notes, *sight.notes])
