"""The viewer of foveate's matchers, which read two texts separately."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import tasks
from foveate.errors import UserError
from foveate.sight import look
from foveate.tasks.looking.inputs import check_length, make_title, require_text
from foveate.tasks.looking.naming import model_name, token_names
from foveate.tasks.matcher import QUERY, Matcher
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import SidePair


class MatcherViewer:
    """A trained matcher; one learned query attends to each of the two texts."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.matcher: Matcher = tasks.load(folder, device)
        self.name = model_name(self.matcher.description, folder)

    def smallest_input(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and its smallest input."""
        return self.matcher.model, self.matcher.given(".\t.")[0]

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Look at both texts, given as `source<TAB>target` or as two lines."""
        text = require_text(given, self.name).strip("\r\n")
        lines = [line for line in text.splitlines() if line.strip()]
        if "\t" not in text:
            if len(lines) != 2:
                raise UserError(f"{self.name} reads two texts: separate them by a newline or a tab")
            text = "\t".join(lines)
        inputs, pieces = self.matcher.given(text)
        for shown, side in zip(pieces, ("the source", "the target"), strict=True):
            check_length(len(shown), max_length, side)
        with torch.inference_mode(), look(self.matcher.model, sites=sites) as sight:
            self.matcher.model(**inputs)
        source, target = map(token_names, pieces)
        names: dict[str, SidePair] = {}
        for name in sight.sites:
            queries, keys = sight[name].shape[2:]
            # a shared encoder reads the target second; equal texts share a map
            naming = target if name.startswith("target_encoder") or name.endswith("#2") else source
            names[name] = (token_names([QUERY] * queries)(queries), naming(keys))
        notes = [self.name, f"Do they belong together? {self.matcher.run(text).probability:.4f}"]
        if self.matcher.too_long([text]):
            notes.append("A text is longer than all training texts; the answer may be poor.")
        return LookResult(sight, names, make_title(text), [*notes, *sight.notes])
