"""A look at a translator while it reads a source and the translation that it wrote."""

from collections.abc import Sequence

from foveate.forms.inputs import check_length, make_title, require_text
from foveate.forms.naming import DecoderNames, encoder_decoder_names, token_names
from foveate.sight import look
from foveate.tasks.answers.translations import END_SIGN, translation_inputs
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.protocols import START_SIGN
from foveate.viewer.protocol import Input, LookResult


def look_at_translation(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """Translate a text, as one sentence, then look at the model while it reads source and translation."""
    processor, text = predictor.processor, require_text(given, predictor.name)
    (read,) = processor.source.encode([text])
    check_length(len(read) + 1, max_length, "the text")
    prediction = predictor.run(text)
    (written,) = processor.target.encode([prediction.text])
    with look(predictor.model, sites=sites) as sight:
        predictor.forward(translation_inputs(predictor, read, written))
    source = [*processor.source.pieces(read), END_SIGN]
    target = processor.target.pieces(written)
    writer = DecoderNames(
        token_names([START_SIGN, *target]), token_names([*target, END_SIGN]), "decoder", len(target) + 1
    )
    notes = [predictor.name, f"Output: {prediction.text}"]
    if not prediction.ended:
        notes.append("The translation reached the length limit.")
    if predictor.longer_than_training([text]):
        notes.append("The text is longer than all training texts; the translation may be poor.")
    names = encoder_decoder_names(sight, token_names(source), writer)
    return LookResult(sight, names, make_title(text), [*notes, *sight.notes])
