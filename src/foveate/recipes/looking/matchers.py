"""Looking at foveate's own matchers: two texts, each read by itself."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import recipes
from foveate.errors import UserError
from foveate.recipes.looking.inputs import check_length, shortened, text_of
from foveate.recipes.looking.naming import model_name, tokens
from foveate.recipes.matcher import QUERY, Matcher
from foveate.sight import look
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import SidePair


class MatcherViewer:
    """A trained matcher; one learned query looks at each of the two texts."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.matcher: Matcher = recipes.load(folder, device)
        self.name = model_name(self.matcher.description, folder)

    def least(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and the least that it can be given."""
        return self.matcher.model, self.matcher.given(".\t.")[0]

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        """See where the model looks in either text of one `source<TAB>target`, or of two lines."""
        text = text_of(given, self.name).strip("\r\n")
        lines = [line for line in text.splitlines() if line.strip()]
        if "\t" not in text:
            if len(lines) != 2:
                raise UserError(f"{self.name} reads two texts: give each a line of its own, or part them by a tab")
            text = "\t".join(lines)
        inputs, pieces = self.matcher.given(text)
        for shown, side in zip(pieces, ("the source", "the target"), strict=True):
            check_length(len(shown), most, side)
        with torch.inference_mode(), look(self.matcher.model, sites=sites) as sight:
            self.matcher.model(**inputs)
        source, target = map(tokens, pieces)
        names: dict[str, SidePair] = {}
        for name in sight.sites:
            queries, keys = sight[name].shape[2:]
            # one encoder for both texts reads the target second; texts that are the same share a map
            naming = target if name.startswith("target_encoder") or name.endswith("#2") else source
            names[name] = (tokens([QUERY] * queries)(queries), naming(keys))
        notes = [self.name, f"Do they belong together? {self.matcher.run(text).probability:.4f}"]
        if self.matcher.too_long([text]):
            notes.append("A text is longer than any that the model learned from; the answer may be poor.")
        return LookResult(sight, names, shortened(text), [*notes, *sight.notes])
