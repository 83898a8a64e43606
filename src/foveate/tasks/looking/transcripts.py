"""A look at a model that writes what is said: each character over the time of the sound."""

from collections.abc import Sequence

import torch

from foveate.data.sounds.files import decode_sound
from foveate.data.sounds.speech_processor import SpeechProcessor
from foveate.data.tokens.character_tokens import encode
from foveate.errors import UserError
from foveate.forms.inputs import check_length, require_file
from foveate.forms.naming import DecoderNames, encoder_decoder_names, token_names
from foveate.sight import look
from foveate.tasks.answers.transcripts import Search, transcribe_sounds
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.looking.unseen import nothing_to_see
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import Audio


def look_at_transcript(predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None) -> LookResult:
    """A look at a transcriber while it reads a sound and the transcript that it writes.

    Raises UserError for an input that is no sound, or one that is longer than any in training.
    """
    name, processor = predictor.name, predictor.processor
    assert isinstance(processor, SpeechProcessor)
    file = require_file(given, name, "audio")
    sound = decode_sound(file.data, file.name)
    if sound.seconds > processor.longest:
        raise UserError(
            f"{file.name} lasts {sound.seconds:,.1f} seconds, but the longest sound that {name} learned from "
            f"{processor.longest:,.1f}: cut it"
        )
    spectrogram = processor.spectrogram(sound)
    check_length(len(spectrogram), max_length, "the spectrogram", "frames")
    ((text, _),) = transcribe_sounds(predictor, [sound], Search())
    target = torch.tensor([[processor.special.start, *encode(text, processor.characters)]])
    with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
        predictor.forward({**processor.inputs([spectrogram]), "target": target})
    if not sight.sites:
        raise nothing_to_see(predictor, name)
    heard = Audio.of(spectrogram.T, sound.seconds)
    writer = "speller" if any(site.startswith("speller") for site in sight.sites) else "decoder"
    decoder = DecoderNames(token_names(["[START]", *text]), token_names([*text, "[END]"]), writer, 1 + len(text))
    names = encoder_decoder_names(sight, lambda count: heard, decoder)
    return LookResult(sight, names, file.name, [name, f"Transcript: {text}", *sight.notes])
