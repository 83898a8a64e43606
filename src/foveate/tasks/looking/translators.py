"""The viewer of foveate's translators, which read the source and their own translation."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from foveate import tasks
from foveate.sight import look
from foveate.tasks.looking.inputs import check_length, make_title, require_text
from foveate.tasks.looking.naming import DecoderNames, encoder_decoder_names, model_name, token_names
from foveate.tasks.translator import END_SIGN, Translator
from foveate.viewer.protocol import Input, InputKind, LookResult

START_SIGN = "<start>"


class TranslatorViewer:
    """A trained translator; the look is at its decoder while it reads the translation."""

    takes: InputKind = "text"

    def __init__(self, folder: Path, device: str) -> None:
        self.translator: Translator = tasks.load(folder, device)
        self.name = model_name(self.translator.description, folder)

    def smallest_input(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The model, and its smallest input."""
        return self.translator.model, self.translator.inputs([], [])

    def look(self, given: Input, max_length: int, sites: Sequence[str] | None = None) -> LookResult:
        """Translate a text, as one sentence, then look at the model while it reads source and translation."""
        translator, text = self.translator, require_text(given, self.name)
        (read,) = translator.source_tokenizer.encode([text])
        check_length(len(read) + 1, max_length, "the text")
        prediction = translator.run(text)
        (written,) = translator.target_tokenizer.encode([prediction.text])
        with torch.inference_mode(), look(translator.model, sites=sites) as sight:
            translator.model(**translator.inputs(read, written))
        source = [*translator.source_tokenizer.pieces(read), END_SIGN]
        target = translator.target_tokenizer.pieces(written)
        writer = DecoderNames(
            token_names([START_SIGN, *target]), token_names([*target, END_SIGN]), "decoder", len(target) + 1
        )
        notes = [self.name, f"Output: {prediction.text}"]
        if not prediction.ended:
            notes.append("The translation reached the length limit.")
        if translator.too_long([text]):
            notes.append("The text is longer than all training texts; the translation may be poor.")
        return LookResult(
            sight, encoder_decoder_names(sight, token_names(source), writer), make_title(text), [*notes, *sight.notes]
        )
