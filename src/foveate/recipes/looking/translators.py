"""Looking at foveate's own translators: the source is translated, then both are read once together."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import recipes
from foveate.recipes.looking.inputs import check_length, shortened, text_of
from foveate.recipes.looking.naming import Writer, model_name, tokens, two_sides
from foveate.recipes.translator import END_SIGN, Translator
from foveate.sight import look
from foveate.viewer.protocol import Input, InputKind, LookResult

START_SIGN = "<start>"


class TranslatorViewer:
    """A trained translator; its decoder is looked at while it reads what it wrote."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.translator: Translator = recipes.load(folder, device)
        self.name = model_name(self.translator.description, folder)

    def least(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and the least that it can be given."""
        return self.translator.model, self.translator.inputs([], [])

    def look(self, given: Input, most: int, sites: Sequence[str] | None = None) -> LookResult:
        """Translate a text, then see where the model looks while it reads both. The text is taken as one sentence."""
        translator, text = self.translator, text_of(given, self.name)
        (read,) = translator.source_tokenizer.encode([text])
        check_length(len(read) + 1, most, "the text")
        prediction = translator.run(text)
        (written,) = translator.target_tokenizer.encode([prediction.text])
        with torch.inference_mode(), look(translator.model, sites=sites) as sight:
            translator.model(**translator.inputs(read, written))
        source = [*translator.source_tokenizer.pieces(read), END_SIGN]
        target = translator.target_tokenizer.pieces(written)
        writer = Writer(tokens([START_SIGN, *target]), tokens([*target, END_SIGN]), "decoder", len(target) + 1)
        notes = [self.name, f"It wrote: {prediction.text}"]
        if not prediction.ended:
            notes.append("The translation reached the length limit before it ended.")
        if translator.too_long([text]):
            notes.append("The text is longer than any that the model learned from; the translation may be poor.")
        return LookResult(sight, two_sides(sight, tokens(source), writer), shortened(text), [*notes, *sight.notes])
