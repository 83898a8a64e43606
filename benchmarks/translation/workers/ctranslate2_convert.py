"""A foveate Transformer converted for CTranslate2, as its users convert a model once, in the precision in which it is
to compute: FOLDER CONVERTED PRECISION [forced]."""

import sys
from pathlib import Path

import layout
from ctranslate2.converters.transformers import BartLoader


def main(folder: str, converted: str, precision: str, *forced: str) -> None:
    model = layout.model(Path(folder), forced=bool(forced))
    model.config.normalize_before = isinstance(model, layout.PegasusForConditionalGeneration)
    model.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(model)
    names = ["<pad>", "<s>", "</s>", "<unk>", *(f"t{token}" for token in range(4, model.config.vocab_size))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    spec.optimize(quantization=precision)
    Path(converted).mkdir()
    spec.save(converted)


main(*sys.argv[1:])
